"""Failover: the primary dies with all its processes, its standby takes over, clients know both addresses.

Two servers change places round after round. With *synchronous* replication nothing may be lost. With
*asynchronous* replication the last second before each failover is kept from the standby on purpose: what was
committed in that second may be missing, each transaction as a whole, and nothing else.
"""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from psycopg.conninfo import make_conninfo

from devtools.postgres import Server, server
from devtools.replication import be_synchronous, cut_off, power_off, promote, standby, standby_state

from ..postgres import major
from ..processes.nursery import Nursery
from ..waiting import wait_for, wait_until
from .arena import Arena
from .measuring import Injected
from .place import SETTINGS, kept_on_error, make_database

STANDBY = "standby"
QUIET = 8.0
"""Seconds of work between two failovers."""
UNHEARD = 1.0
"""Seconds before an asynchronous failover of which the standby hears nothing."""
MODES = ("synchronous", "asynchronous")


class Pair:
    """A primary and its standby, which take turns."""

    def __init__(self, primary: Server, mode: str) -> None:
        self.primary, self.mode = primary, mode
        self.ports = [primary.port]
        self._stack = ExitStack()
        self.replica = self._attach(None)
        self.ports.append(self.replica.port)

    def fail_over(self) -> None:
        """Kill the primary and promote the standby; then make a new standby in the old one's place."""
        dead = self.primary
        power_off(dead)
        promote(self.replica)
        self.primary = self.replica
        self._dead = dead

    def restore(self) -> None:
        """Give the new primary a standby, on the port of the dead server."""
        self.replica = self._attach(self._dead.port)

    def close(self) -> None:
        """End both."""
        self._stack.close()

    def _attach(self, port: int | None) -> Server:
        be_synchronous(self.primary, "")
        replica = self._stack.enter_context(standby(self.primary, STANDBY, SETTINGS, port))
        if self.mode == "synchronous":
            be_synchronous(self.primary, STANDBY)
        wanted = ("streaming", "sync" if self.mode == "synchronous" else "async")
        wait_until(
            lambda: standby_state(self.primary, STANDBY) == wanted, 30.0, "the standby does not follow"
        )
        return replica


@contextmanager
def arena(seed: int, mode: str, say: Callable[[str], None]) -> Iterator[tuple[Arena, Pair]]:
    """Yield an arena on two servers, with two workers whose DSN names both."""
    with ExitStack() as stack:
        folder = stack.enter_context(kept_on_error(say))
        primary = stack.enter_context(server(SETTINGS, version=major()))
        nursery = Nursery()
        stack.callback(nursery.close)
        url = make_database(primary, nursery, folder)
        pair = Pair(primary, mode)
        stack.callback(pair.close)
        hosts, ports = ",".join(["127.0.0.1"] * 2), ",".join(map(str, pair.ports))
        both = make_conninfo(url, host=hosts, port=ports, target_session_attrs="read-write")
        made = Arena(primary, both, folder, nursery, seed, say)
        stack.callback(made.close)
        made.seat("first", processes=2, threads=4)
        made.seat("second", processes=1, threads=8)
        yield made, pair


def failovers(
    arena: Arena, pair: Pair, rounds: int, producer: "subprocess.Popen[bytes]"
) -> Iterator[Injected]:
    """Fail over so many times, with work in between."""
    for _ in range(rounds):
        if producer.poll() is not None:
            return
        unheard_from = time.monotonic()
        if pair.mode == "asynchronous":
            cut_off(pair.primary)
            wait_for(UNHEARD)
        began = time.monotonic()
        with arena.outage():
            pair.fail_over()
            arena.server = pair.primary
        ended = time.monotonic()
        if pair.mode == "asynchronous":
            arena.forgotten.append((unheard_from, ended))
        yield Injected(f"failover, {pair.mode}", began, ended)
        wait_for(QUIET / 2)
        pair.restore()
        wait_for(QUIET / 2)
