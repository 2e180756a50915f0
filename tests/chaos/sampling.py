"""What is seen while a run goes on: rows at some moments, leases that are over, deaths of processes."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

import psycopg

from . import tables
from .history import Death, Overdue, Sighting
from .worker import Seat, Sitter

LOOK_EVERY = 0.5
SCAN_EVERY = 0.15


class Repeated(threading.Thread):
    """A thread that calls a function every so many seconds until it is stopped."""

    def __init__(self, name: str, every: float, call: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._every, self._call = every, call
        self._over = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Repeat; an error ends it, and is raised again by ``stop``."""
        try:
            while not self._over.wait(self._every):
                self._call()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        """End it; raises what ended it before."""
        self._over.set()
        self.join(30.0)
        if self.error:
            raise self.error


class Looks:
    """Looks at rows through sessions of its own; while the database is away there is nothing to see."""

    def __init__(self, connect: Callable[[], psycopg.Connection]) -> None:
        self._connect = connect
        self._session: psycopg.Connection | None = None
        self.sightings: list[Sighting] = []
        self.overdue: list[Overdue] = []
        self._took: deque[float] = deque(maxlen=10)

    def __call__(self) -> None:
        """Look once."""
        at = time.monotonic()
        try:
            self._session = self._session or self._connect()
            self.sightings += tables.sightings(self._session, at)
            overdue = tables.overdue(self._session, at)
            self._took.append(time.monotonic() - at)
            self.overdue += [replace(entry, look=max(self._took)) for entry in overdue]
        except psycopg.Error:
            if self._session:
                self._session.close()
            self._session = None

    def close(self) -> None:
        """Close the session."""
        if self._session:
            self._session.close()


class Deaths:
    """Sees processes of workers come and go."""

    def __init__(self, seats: Iterable[Seat]) -> None:
        self._seats = seats
        self._last_seen: dict[int, tuple[float, Sitter]] = {}
        self.gone: list[tuple[int, float, Sitter]] = []
        self.largest: dict[str, int] = {}

    def __call__(self) -> None:
        """Scan the process table once."""
        now, sessions = time.monotonic(), by_session()
        for seat in self._seats:
            for sitter in list(seat.sitters):
                for pid in sessions.get(sitter.worker.pid, ()):
                    self._last_seen[pid] = (now, sitter)
        for pid, (seen, sitter) in list(self._last_seen.items()):
            if seen < now:
                del self._last_seen[pid]
                self.gone.append((pid, seen, sitter))

    def deaths(self, expected: set[int]) -> list[Death]:
        """Return all deaths; ``expected`` are processes that killed themselves on purpose or were frozen."""
        exact = {pid: at for seat in self._seats for s in seat.sitters for pid, at in s.worker.deaths.items()}
        seen = {pid: (at, sitter) for pid, at, sitter in self.gone}
        return [
            _death(pid, exact.get(pid, at), pid in exact or pid in expected, sitter)
            for pid, (at, sitter) in seen.items()
        ] + [Death(pid, at) for pid, at in exact.items() if pid not in seen]


def _death(pid: int, at: float, caused: bool, sitter: Sitter) -> Death:
    caused = caused or bool(sitter.allowed)
    killed = bool(sitter.worker.events("killing_child", pid=pid))
    return Death(pid, at, foreseen=caused or killed, by_supervisor=killed and not caused)


def by_session() -> dict[int, list[int]]:
    """Return the living processes of each session."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
                if fields[0] != "Z":
                    found.setdefault(int(fields[3]), []).append(int(name))
    return found
