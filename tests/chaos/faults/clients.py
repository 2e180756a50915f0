"""Faults in the middle of a statement: the client dies, freezes, or loses its backend just there."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from django_pgqueue import sql
from django_pgqueue.connections import IDLE_TIMEOUT

from ...waiting import wait_for
from .. import tables
from ..arena import Arena
from ..history import Trouble
from .processes import PAST_THE_LEASE
from .registry import fault
from .statements import NobodyCame, Waiting, caught, seat_of, workers

FROZEN_FOR = PAST_THE_LEASE + IDLE_TIMEOUT
"""Seconds: past the lease, and past the time for which its open transaction keeps the rows locked."""


@fault("kill in a claim")
def kill_in_claim(arena: Arena) -> None:
    """kill -9 of a child whose claim is with the server: it may be committed for nobody."""
    _kill_in(arena, lambda waiting: waiting.claims)


@fault("kill in a settle")
def kill_in_settle(arena: Arena) -> None:
    """kill -9 of a child whose settle is with the server: committed or not, nobody hears of it."""
    _kill_in(arena, lambda waiting: waiting.settles, sql.ATTEMPT)


@fault("kill in a heartbeat")
def kill_in_heartbeat(arena: Arena) -> None:
    """kill -9 of a keeper whose renewal is with the server."""
    _kill_in(arena, lambda waiting: waiting.renews)


@fault("freeze in a settle", weight=3)
def freeze_in_settle(arena: Arena) -> None:
    """SIGSTOP of a whole worker while its settle is with the server, past the lease: no COMMIT comes."""
    seat = None
    with caught(arena, lambda waiting: waiting.settles, sql.ATTEMPT) as waiting:
        seat = seat_of(arena, waiting.pid)
        if seat is None:
            raise NobodyCame("who waited has just ended")
        pids, began = seat.pids(), time.monotonic()
        seat.worker.freeze()
    with seat.suspended(pids):
        jobs = _held_by(arena, pids)
        wait_for(FROZEN_FOR)
        seat.worker.thaw()
    arena.troubles.append(Trouble(began, time.monotonic(), frozenset(), jobs))


@fault("terminate in a claim")
def terminate_in_claim(arena: Arena) -> None:
    """pg_terminate_backend of a child that waits for its claim."""
    _terminate_in(arena, lambda waiting: waiting.claims)


@fault("terminate in a settle")
def terminate_in_settle(arena: Arena) -> None:
    """pg_terminate_backend of a child that waits for its settle."""
    _terminate_in(arena, lambda waiting: waiting.settles, sql.ATTEMPT)


@fault("terminate idle backends")
def terminate_idle(arena: Arena) -> None:
    """pg_terminate_backend of every backend of workers that is between statements."""
    _terminate(arena, "state = 'idle'", lambda waiting: True)


@fault("terminate the listeners")
def terminate_listeners(arena: Arena) -> None:
    """pg_terminate_backend of the connections that LISTEN, and of no others."""
    _terminate(arena, "true", lambda waiting: waiting.role == "wakeup")


@fault("terminate all backends")
def terminate_all(arena: Arena) -> None:
    """pg_terminate_backend of every session but the harness's: workers, tasks and the enqueuing process."""
    with arena.admin() as session:
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name <> 'chaos'"
        )


def _held_by(arena: Arena, pids: frozenset[int]) -> frozenset[int]:
    """Return the jobs of these processes: their rows may be locked as long as the transaction is open."""
    with arena.admin() as session:
        rows = session.execute(f"SELECT job_id, worker_id FROM {sql.STATE} WHERE worker_id IS NOT NULL")
        return frozenset(job for job, worker in rows if tables.pid_of(worker) in pids)


def _kill_in(arena: Arena, wanted: Callable[[Waiting], bool], table: str = sql.STATE) -> None:
    with caught(arena, wanted, table) as waiting:
        seat = seat_of(arena, waiting.pid)
        if seat:
            with suppress(AssertionError, ProcessLookupError):
                seat.worker.kill_process(waiting.pid, signal.SIGKILL)


def _terminate_in(arena: Arena, wanted: Callable[[Waiting], bool], table: str = sql.STATE) -> None:
    with caught(arena, wanted, table) as waiting:
        with arena.admin() as other:
            other.execute("SELECT pg_terminate_backend(%s)", [waiting.backend])


def _terminate(arena: Arena, condition: str, wanted: Callable[[Waiting], bool]) -> None:
    with arena.admin() as session:
        for waiting in workers(session, condition):
            if wanted(waiting) and waiting.pid != os.getpid():
                session.execute("SELECT pg_terminate_backend(%s)", [waiting.backend])
