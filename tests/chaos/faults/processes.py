"""Faults of worker processes: killed, frozen, told to stop, out of memory, deaf."""

import os
import signal
import time
from contextlib import suppress

from ...waiting import wait_for, wait_until
from ..arena import Arena
from ..worker import LEASE, Seat
from .registry import fault

PAST_THE_LEASE = LEASE + 1.5
GIL_HELD = 4.0


@fault("kill a child", weight=12)
def kill_child(arena: Arena) -> None:
    """kill -9 of one child."""
    arena.pause(0.3)
    seat = arena.any_seat()
    if seat.worker.children:
        _kill(seat, arena.random.choice(seat.worker.children))


@fault("kill the keeper", weight=6)
def kill_keeper(arena: Arena) -> None:
    """kill -9 of the process that renews the leases."""
    arena.pause(0.3)
    seat = arena.any_seat()
    if seat.worker.keeper:
        _kill(seat, seat.worker.keeper)


@fault("kill the supervisor", weight=6)
def kill_supervisor(arena: Arena) -> None:
    """kill -9 of the supervisor: its children finish and end by themselves; another worker is started."""
    arena.pause(0.3)
    seat = arena.any_seat()
    seat.kill_supervisor()
    seat.start(wait=False)


@fault("kill a worker", weight=6)
def kill_worker(arena: Arena) -> None:
    """kill -9 of all processes of a worker, as the end of its machine would; another is started."""
    arena.pause(0.3)
    seat = arena.any_seat()
    seat.kill()
    seat.start(wait=False)


@fault("kill all workers", weight=2)
def kill_all(arena: Arena) -> None:
    """kill -9 of every process of every worker at once; others are started."""
    with arena.without_keepers():
        for seat in arena.seats:
            seat.kill()
        for seat in arena.seats:
            seat.start(wait=False)


@fault("freeze a worker", weight=3)
def freeze_worker(arena: Arena) -> None:
    """SIGSTOP of a whole worker past its lease, then SIGCONT: its jobs are others' when it wakes."""
    seat = arena.any_seat()
    with seat.suspended():
        seat.worker.freeze()
        wait_for(PAST_THE_LEASE)
        seat.worker.thaw()


@fault("freeze a child", weight=3)
def freeze_child(arena: Arena) -> None:
    """SIGSTOP of a child past its lease; its supervisor kills it, or SIGCONT wakes it."""
    seat = arena.any_seat()
    if seat.worker.children:
        _freeze(seat, arena.random.choice(seat.worker.children), PAST_THE_LEASE)


@fault("freeze the keeper", weight=3)
def freeze_keeper(arena: Arena) -> None:
    """SIGSTOP of the keeper: its supervisor replaces it."""
    seat = arena.any_seat()
    if seat.worker.keeper:
        _freeze(seat, seat.worker.keeper, 2.0)


@fault("freeze the supervisor", weight=3)
def freeze_supervisor(arena: Arena) -> None:
    """SIGSTOP of the supervisor past the lease: keeper and children go on without it."""
    seat = arena.any_seat()
    os.kill(seat.worker.pid, signal.SIGSTOP)
    wait_for(PAST_THE_LEASE)
    os.kill(seat.worker.pid, signal.SIGCONT)


@fault("stop a worker", weight=10)
def stop_worker(arena: Arena) -> None:
    """SIGTERM at a random instant: it must finish, hand back and exit; another is started."""
    arena.pause(0.5)
    seat = arena.any_seat()
    seat.stop()
    seat.start(wait=False)


@fault("deploy", weight=2)
def deploy(arena: Arena) -> None:
    """SIGTERM of all workers at once, each replaced when it has ended."""
    with arena.without_keepers():
        for seat in arena.seats:
            seat.ask_to_stop()
        for seat in arena.seats:
            seat.await_end()
            seat.start(wait=False)


@fault("hold the interpreter", weight=3)
def hold_interpreter(arena: Arena) -> None:
    """A task that holds the GIL for longer than the lease; its keeper keeps the lease."""
    tag = arena.ask("gil", GIL_HELD)
    with suppress(AssertionError):  # another fault's remains may keep it waiting; then it comes later
        wait_until(lambda: arena.calls(tag), 2.0)
    wait_for(GIL_HELD)


@fault("out of memory", weight=4)
def out_of_memory(arena: Arena) -> None:
    """A task whose child is killed as by the kernel's out-of-memory killer."""
    tag = arena.ask("memory")
    with suppress(AssertionError):
        wait_until(lambda: arena.calls(tag), 2.0)


def _kill(seat: Seat, pid: int) -> None:
    with suppress(AssertionError, ProcessLookupError):  # it may have just ended
        seat.worker.kill_process(pid)


def _freeze(seat: Seat, pid: int, seconds: float) -> None:
    with seat.suspended(frozenset({pid})):
        began = time.monotonic()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            while time.monotonic() < began + seconds and pid in seat.worker.processes:
                wait_for(0.1)
            os.kill(pid, signal.SIGCONT)
