"""A standby of an embedded server: streaming replication on one machine, and what a failover needs.

with server(settings) as primary, standby(primary, "one") as replica:
    wait_for_standby(primary)
    power_off(primary)
    promote(replica)
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from devtools.account import Account
from devtools.binaries import ServerError
from devtools.postgres import Server


@contextmanager
def standby(
    primary: Server, name: str, settings: Mapping[str, Any] | None = None, port: int | None = None
) -> Iterator[Server]:
    """Run a hot standby of this server; ``name`` is what ``synchronous_standby_names`` may call it.

    ``port`` is where it listens: that of a server that is gone, when it takes its place.
    """
    account = Account()
    s = Server(account.make_directory(), account, settings or {})
    s.port = port or s.port
    try:
        s.adopt(primary)
        copy(primary, s, name)
        s.start()
        yield s
    finally:
        s.close()


def copy(primary: Server, target: Server, name: str) -> None:
    """Copy a running server's data as its standby's. Raises ServerError."""
    connection = f"host={primary.directory} port={primary.port} user=postgres application_name={name}"
    command = [str(primary.bin / "pg_basebackup"), f"--pgdata={target.data}", f"--dbname={connection}"]
    command += ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
    done = subprocess.run(command, capture_output=True, text=True, **target.surroundings())
    if done.returncode:
        raise ServerError(f"pg_basebackup failed:\n{done.stdout}{done.stderr}")


def be_synchronous(primary: Server, names: str) -> None:
    """Let commits wait for these standbys; an empty text lets them wait for none."""
    with psycopg.connect(primary.url, autocommit=True) as session:
        session.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        session.execute("SELECT pg_reload_conf()")


def standby_state(primary: Server, name: str) -> tuple[str, str] | None:
    """Return ``(state, sync_state)`` of a standby, None while it is not connected."""
    with psycopg.connect(primary.url, autocommit=True) as session:
        row = session.execute(
            "SELECT state, sync_state FROM pg_stat_replication WHERE application_name = %s", [name]
        ).fetchone()
    return (row[0], row[1]) if row else None


def cut_off(primary: Server) -> None:
    """Freeze the processes that send to standbys: from now on these hear of no commit."""
    with psycopg.connect(primary.url, autocommit=True) as session:
        for (pid,) in session.execute("SELECT pid FROM pg_stat_replication").fetchall():
            os.kill(pid, signal.SIGSTOP)


def power_off(primary: Server) -> None:
    """Kill all processes of a server at once, as the end of its machine would."""
    backends = _children(primary.pid or 0)
    for pid in (primary.pid or 0, *backends):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)  # none may go on while the others die
    for pid in backends:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    primary.kill9()


def promote(replica: Server) -> None:
    """Make a standby a primary, and return when it takes writes."""
    with psycopg.connect(replica.url, autocommit=True) as session:
        session.execute("SELECT pg_promote(true, 60)")


def _children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found
