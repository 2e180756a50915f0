"""Faults between workers and database, and of a worker's own clock."""

import time
from contextlib import suppress

from ...waiting import wait_for, wait_until
from ..arena import Arena
from ..history import Trouble
from ..worker import TASKS, Seat
from .processes import PAST_THE_LEASE
from .registry import fault

NOTICED_AFTER = 20.0
"""Seconds after which every silent connection has been given up (the product's own limit is 15)."""


def proxied(arena: Arena) -> Seat:
    """Return the seat whose worker reaches the database through the proxy."""
    return next(seat for seat in arena.seats if seat.name == "proxied")


@fault("frozen network", weight=3)
def freeze_network(arena: Arena) -> None:
    """Packets of one worker vanish for longer than its lease; then all flow again."""
    assert arena.proxy
    with proxied(arena).suspended():
        arena.proxy.freeze()
        wait_for(PAST_THE_LEASE)
        arena.proxy.thaw()


@fault("half-open connections", weight=2)
def forget_connections(arena: Arena) -> None:
    """A firewall forgets the connections of one worker: nothing ever comes on them again, new ones work."""
    assert arena.proxy
    seat = proxied(arena)
    began = time.monotonic()
    arena.proxy.abandon()
    seat.troubles.append(Trouble(began, began + NOTICED_AFTER, seat.pids()))


@fault("connections cut")
def cut_connections(arena: Arena) -> None:
    """All connections of one worker are cut off at once."""
    assert arena.proxy
    for link in list(arena.proxy.links):
        link.cut()


@fault("reply lost", weight=6)
def lose_reply(arena: Arena) -> None:
    """The next reply to a child is swallowed and its connection cut: claimed or settled, and not told."""
    _swallow(arena, "child")


@fault("reply to a heartbeat lost", weight=3)
def lose_beat(arena: Arena) -> None:
    """The next reply to a keeper is swallowed and its connection cut."""
    _swallow(arena, "leases")


@fault("reply to a task lost", weight=6)
def lose_reply_to_task(arena: Arena) -> None:
    """The next reply to a task's own connection is swallowed and that cut: perhaps the one to its COMMIT."""
    _swallow(arena, TASKS)


@fault("pooler killed", weight=3, missing=lambda arena: "" if arena.pooler else arena.pooler_missing)
def kill_pooler(arena: Arena) -> None:
    """kill -9 of the PgBouncer before one worker, and a start."""
    arena.pooler.restart()


@fault("wrong clock", weight=3, missing=lambda arena: arena.faketime_missing)
def wrong_clock(arena: Arena) -> None:
    """A worker is replaced by one whose clock is ten minutes off (libfaketime)."""
    seat = arena.any_seat()
    seat.stop()
    offset = arena.random.choice(("+10m", "-10m"))
    clock = {"LD_PRELOAD": arena.faketime, "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    seat.start(clock | {"TESTS_STARTUP": "faketime"}, fresh=True)


def _swallow(arena: Arena, name: str) -> None:
    assert arena.proxy
    before = arena.proxy.cuts
    arena.proxy.cut_when(name, lambda: True)
    with suppress(AssertionError):
        wait_until(lambda: arena.proxy is not None and arena.proxy.cuts > before, 3.0)
