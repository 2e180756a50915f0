"""What faults act on: a server of the run's own, a proxy and a pooler before it, and seats with workers.

Faults change it only through this class, so that whatever explains a lost lease is noted where it is caused.
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from django_pgqueue.models import Job
from django_pgqueue.records import NewJob

from ..processes.machine import faketime_library
from ..processes.nursery import Nursery
from ..processes.pooler import Pooler
from ..processes.proxy import Proxy
from ..waiting import wait_for, wait_until
from . import recording, tables, tasks
from .history import COMMITTED, UNKNOWN, Trouble
from .worker import Seat

ROLE = "chaos_app"
BACK_WITHIN = 60.0


class Arena:
    """One run's surroundings; made by ``run`` and closed by it."""

    def __init__(
        self, server: Any, url: str, folder: Path, nursery: Nursery, seed: int, say: Callable[[str], None]
    ) -> None:
        self.environ: dict[str, str] = {}
        self.server, self.url, self.folder, self.nursery, self.say = server, url, folder, nursery, say
        self.random = random.Random(seed)
        self.record = folder / "record"
        self.record.mkdir(mode=0o755)
        self.troubles: list[Trouble] = []
        self.forgotten: list[tuple[float, float]] = []
        self.asked: list[list[Any]] = []
        self.seats: list[Seat] = []
        self.spared: list[Seat] = []
        self.proxy: Proxy | None = None
        self.pooler: Pooler | None = None
        self.pooler_missing = ""
        self.disk, self.disk_missing = "", "no small disk was made"
        self.faketime = faketime_library() or ""
        self.faketime_missing = (
            "" if self.faketime else "libfaketime is not installed (Debian: apt-get install faketime)"
        )
        self._count = 0

    # --- setting up

    def seat(
        self, name: str, *, processes: int, threads: int, url: str | None = None, **options: Any
    ) -> Seat:
        """Add a place for a worker; options are settings of its project."""
        self.environ |= {recording.VARIABLE: str(self.record), "PYTHONPATH": ""}
        queues = {"TASKS": {"default": {"QUEUES": []}}}
        seat = Seat(
            name,
            url or self.url,
            processes,
            threads,
            self.nursery,
            self.folder,
            self.environ,
            queues | options,
        )
        self.seats.append(seat)
        return seat

    def through_proxy(self) -> str:
        """Put a proxy before the server and return the URL through it."""
        target = conninfo_to_dict(self.url)
        self.proxy = Proxy(str(target["host"]).split(",")[0], int(str(target["port"]).split(",")[0]))
        return make_conninfo(self.url, host="127.0.0.1", port=self.proxy.port)

    def close(self) -> None:
        """End all that was started here."""
        for seat in self.seats:
            for sitter in seat.sitters:
                sitter.worker.close()
        if self.pooler:
            self.pooler.close()
        if self.proxy:
            self.proxy.close()

    # --- the database

    def admin(self) -> psycopg.Connection:
        """Return a new session of the superuser in the run's database."""
        name = str(conninfo_to_dict(self.url)["dbname"])
        return psycopg.connect(
            make_conninfo(self.server.url, dbname=name, application_name="chaos", connect_timeout=5),
            autocommit=True,
        )

    def settle_down(self) -> None:
        """Wait until the database answers and writes again."""

        def writes() -> bool:
            with (
                suppress(psycopg.Error),
                psycopg.connect(self.url, autocommit=True, connect_timeout=5) as session,
            ):
                session.execute(f"UPDATE {tables.ACCOUNTS} SET balance = balance WHERE id = 0")
                return True
            return False

        wait_until(writes, BACK_WITHIN, "the database did not come back")

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Note that nobody could renew from now until the database writes again."""
        began = time.monotonic()
        try:
            yield
            self.settle_down()
        finally:
            self.troubles.append(Trouble(began, time.monotonic()))

    @contextmanager
    def without_keepers(self) -> Iterator[None]:
        """Note that there was nobody to rescue anything until all seats are taken again."""
        began = time.monotonic()
        try:
            yield
            for seat in self.seats:
                seat.worker.wait_started(seat.processes)
        finally:
            self.troubles.append(Trouble(began, time.monotonic(), frozenset(), nobody_rescues=True))

    def alter(self, **settings: str | None) -> None:
        """ALTER SYSTEM for all sessions, those that are open too; None resets."""
        with self.admin() as session:
            for name, value in settings.items():
                change = "RESET " + name if value is None else f"SET {name} = '{value}'"
                session.execute(f"ALTER SYSTEM {change}")
            session.execute("SELECT pg_reload_conf()")

    # --- jobs of the harness itself

    def ask(self, kind: str, *arguments: Any, queue: str = "default", priority: int = 50) -> str:
        """Enqueue one job, with the caller's own row beside it, and return its tag."""
        self._count += 1
        tag, outcome = f"harness-{kind}-{self._count}", UNKNOWN
        task = getattr(tasks, kind)
        new = NewJob(
            task_path=task.module_path,
            args=json.dumps([tag, *arguments]),
            queue=queue,
            priority=priority,
            max_attempts=tasks.KINDS[kind].budget,
            backoff_base=0.05,
            backoff_cap=0.5,
        )
        with suppress(psycopg.Error):
            with psycopg.connect(self.url, connect_timeout=5) as session:
                session.execute(f"INSERT INTO {tables.ORDERS} (tag) VALUES (%s)", [tag])
                Job.objects.enqueue_many([new], backend="default", connection=session)
            outcome = COMMITTED
        self.asked.append([time.monotonic(), tag, kind, outcome])
        return tag

    def calls(self, tag: str) -> list[list[Any]]:
        """Return what has been recorded of a job's executions: facts of beginnings."""
        return [
            [*fact, pid]
            for pid, fact in recording.read(self.record)
            if fact[1] == recording.BEGAN and fact[2] == tag
        ]

    # --- choosing

    def any_seat(self) -> Seat:
        """Choose one whose worker is up, and that is not spared; when none is, wait for one."""
        hit = [seat for seat in self.seats if seat not in self.spared]
        up = wait_until(lambda: [seat for seat in hit if seat.is_up], 30.0, "no worker is up")
        return self.random.choice(up)

    def pause(self, longest: float) -> None:
        """Let a random time pass, so that what follows comes at no particular instant."""
        wait_for(self.random.uniform(0.0, longest))

    def revive(self, seats: Sequence[Seat] | None = None) -> None:
        """Start a worker on each seat whose worker has ended."""
        for seat in seats or self.seats:
            if not seat.worker.alive:
                seat.start(wait=False)
