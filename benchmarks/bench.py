"""What all benchmarks share: a durable server, repeated runs, a result for people and for programs."""

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import django
import psycopg

from devtools.postgres import server


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark's outcome; the fields are those of its JSON."""

    name: str
    unit: str
    runs: list[float]
    median: float
    min: float
    max: float
    versions: dict[str, str]
    machine: dict[str, Any]


@contextmanager
def durable_server() -> Iterator[str]:
    """Set DATABASE_URL to an embedded server, unless it names one, and yield it."""
    given = os.environ.get("DATABASE_URL")
    if given:
        yield given
        return
    with server({"max_connections": 200}) as embedded:
        os.environ["DATABASE_URL"] = embedded.url
        yield embedded.url


def prepare_database() -> None:
    """Set Django up and make the tables."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415 - after django.setup()

    call_command("migrate", verbosity=0)


def clear_tables() -> None:
    """Empty the queue's tables."""
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE django_pgqueue_job, django_pgqueue_jobstate, django_pgqueue_attempt")
        cursor.execute("CHECKPOINT")


def run_worker(*arguments: str) -> None:
    """Run ``runworkers`` to its end; raises CalledProcessError when it fails."""
    command = [sys.executable, "-m", "django", "runworkers", "-v0", *arguments]
    subprocess.run(command, check=True)  # noqa: S603 - our own interpreter and command


def measure(name: str, unit: str, once: Callable[[], float], repeat: int) -> Result:
    """Repeat a measurement and say how each went."""
    runs = []
    for number in range(1, repeat + 1):
        runs.append(once())
        print(f"  run {number} of {repeat}: {runs[-1]:,.0f} {unit}", flush=True)  # noqa: T201
    return Result(name, unit, runs, statistics.median(runs), min(runs), max(runs), versions(), machine())


def versions() -> dict[str, str]:
    """Return what took part, the server's durability settings included."""
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version'), current_setting('fsync'),"
            " current_setting('synchronous_commit')"
        )
        postgresql, fsync, commit = cursor.fetchone()
    return {
        "python": platform.python_version(),
        "django": django.get_version(),
        "psycopg": psycopg.__version__,
        "postgresql": postgresql,
        "fsync": fsync,
        "synchronous_commit": commit,
    }


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {"system": platform.platform(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}


def show(result: Result, file: str | None) -> None:
    """Print a result, and write its JSON where asked."""
    print(  # noqa: T201
        f"{result.name}: median {result.median:,.0f} {result.unit} "
        f"(min {result.min:,.0f}, max {result.max:,.0f}, {len(result.runs)} runs)"
    )
    print(f"  {result.versions}\n  {result.machine}")  # noqa: T201
    if file:
        Path(file).write_text(json.dumps(asdict(result), indent=1))
