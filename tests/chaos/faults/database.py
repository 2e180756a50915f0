"""Faults of the server: stopped, crashed, read-only, full, locked, or set up by somebody impatient."""

import time
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg

from django_pgqueue import sql

from ...waiting import wait_for
from ..arena import Arena
from ..history import Trouble
from .registry import fault

READ_ONLY_FOR = 10.0
LONG = 4.0
"""Seconds: longer than a lease."""


@fault("restart the database")
def restart_fast(arena: Arena) -> None:
    """A fast stop and a start, as a minor update does it."""
    with arena.outage():
        arena.server.restart("fast")


@fault("crash the database")
def crash(arena: Arena) -> None:
    """An immediate stop, recovery after up to 2 s."""
    with arena.outage():
        arena.server.stop("immediate")
        arena.pause(2.0)
        arena.server.start()


@fault("kill the postmaster", weight=2)
def kill_postmaster(arena: Arena) -> None:
    """kill -9 of the server's first process, and a start."""
    with arena.outage():
        arena.server.kill9()
        arena.server.start()


@fault("database away for longer than a lease", weight=2)
def long_outage(arena: Arena) -> None:
    """A fast stop, and a start when every lease is over."""
    with arena.outage():
        arena.server.stop("fast")
        wait_for(LONG)
        arena.server.start()


@fault("read-only", weight=2)
def read_only(arena: Arena) -> None:
    """Every new transaction is read-only for 10 s (SQLSTATE 25006), as during a controlled failover."""
    with arena.outage():
        arena.alter(default_transaction_read_only="on")
        wait_for(READ_ONLY_FOR)
        arena.alter(default_transaction_read_only=None)


@fault("connections exhausted", weight=3)
def exhaust_connections(arena: Arena) -> None:
    """Others take every connection, and those of the workers are ended: nobody can connect for 3 s."""
    with arena.outage(), ExitStack() as hogs, arena.admin() as session:
        _end_sessions(session)
        with suppress(psycopg.OperationalError):  # the last one is refused: that is the point
            while True:
                hogs.enter_context(psycopg.connect(arena.url, application_name="chaos", connect_timeout=5))
        _end_sessions(session)
        with suppress(psycopg.OperationalError):
            while True:
                hogs.enter_context(psycopg.connect(arena.url, application_name="chaos", connect_timeout=5))
        wait_for(3.0)


@fault("disk full", weight=3, missing=lambda arena: arena.disk_missing)
def fill_disk(arena: Arena) -> None:
    """The small disk of the queue's tables is filled to the last block for 3 s."""
    with arena.outage():
        ballast = Path(arena.disk) / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"\0" * 65536)
        wait_for(3.0)
        ballast.unlink()


@fault("lock on rows", weight=3)
def lock_rows(arena: Arena) -> None:
    """Somebody holds locks on some running jobs for longer than the lease; the others must not suffer."""
    with arena.admin() as session, session.transaction():
        locked = session.execute(
            f"SELECT job_id FROM {sql.STATE} WHERE status = 'running' LIMIT 3 FOR UPDATE SKIP LOCKED"
        ).fetchall()
        began = time.monotonic()
        wait_for(LONG)
    jobs = frozenset(job for (job,) in locked)
    arena.troubles.append(Trouble(began, time.monotonic(), frozenset(), jobs))


@fault("impatient timeouts", weight=3)
def impatient(arena: Arena) -> None:
    """The administrator sets statement_timeout, lock_timeout and idle timeouts to fractions of a second."""
    names = (
        "statement_timeout",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
        "idle_session_timeout",
    )
    try:
        arena.alter(**dict.fromkeys(names, f"{arena.random.randint(50, 300)}ms"))
        wait_for(LONG)
    finally:
        arena.alter(**dict.fromkeys(names))


def _end_sessions(session: psycopg.Connection) -> None:
    session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name <> 'chaos'"
    )
