"""Catching a worker in the middle of a statement: a table lock makes all of them wait, and one is chosen."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from django_pgqueue import sql

from ...waiting import wait_for
from .. import tables
from ..arena import Arena
from ..worker import Seat

LOCK_HELD = 1.5
"""Seconds for which the lock is held at most; the workers' own lock_timeout is 2 s."""
_WORKER = re.compile(r"django_pgqueue (child|leases|maintenance|wakeup) (\S+)")


class NobodyCame(Exception):
    """The fault hit nothing, and must not be counted."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A backend of a worker that waits for the lock: the server's process, the client's, and what it says."""

    backend: int
    role: str
    pid: int
    statement: str

    @property
    def claims(self) -> bool:
        return self.role == "child" and "worker_id =" in self.statement and "SKIP LOCKED" in self.statement

    @property
    def settles(self) -> bool:
        return self.role == "child" and f"INSERT INTO {sql.ATTEMPT}" in self.statement

    @property
    def renews(self) -> bool:
        return self.role == "leases"


@contextmanager
def caught(arena: Arena, wanted: Callable[[Waiting], bool], table: str = sql.STATE) -> Iterator[Waiting]:
    """Hold a table until somebody waits in the wanted statement; raises NobodyCame."""
    with arena.admin() as session, session.transaction():
        session.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
        yield _await(session, wanted)


def _await(session: psycopg.Connection, wanted: Callable[[Waiting], bool]) -> Waiting:
    for _ in range(int(LOCK_HELD / 0.02)):
        session.execute("SELECT pg_stat_clear_snapshot()")
        found = [waiting for waiting in workers(session, "wait_event_type = 'Lock'") if wanted(waiting)]
        if found:
            return found[0]
        wait_for(0.02)
    raise NobodyCame(f"no worker waited in that statement within {LOCK_HELD:g} s")


def workers(session: psycopg.Connection, condition: str = "true") -> list[Waiting]:
    """Return the backends of workers for which a condition on pg_stat_activity holds."""
    rows = session.execute(
        f"SELECT pid, application_name, query FROM pg_stat_activity WHERE {condition} ORDER BY random()"
    ).fetchall()
    return [
        Waiting(pid, match[1], tables.pid_of(match[2]), query)
        for pid, name, query in rows
        if (match := _WORKER.match(name))
    ]


def seat_of(arena: Arena, pid: int) -> Seat | None:
    """Return the seat whose worker has this process."""
    return next((seat for seat in arena.seats if pid in seat.pids()), None)
