"""One real ``runworkers`` with all its processes: start it, read its log, send signals, end it for certain.

A worker leads a session of its own, so that all its processes can be found and signalled by ids that this
module made, orphans included. It also dies with the test process, even when that one is killed.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from ..waiting import wait_until
from .nursery import ROOT, Nursery

T = TypeVar("T")
START_TIMEOUT = 30.0
_LAUNCHER = """
import ctypes, os, sys
getattr(ctypes.CDLL(None), "prctl", lambda *_: None)(1, 15)  # PR_SET_PDEATHSIG, which survives exec
os.execv(sys.argv[1], sys.argv[1:])
"""
_LINE = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) ([A-Z]+) ([a-z_]+)((?: [a-z_]+=(?:\"(?:[^\"\\]|\\.)*\"|\S*))*)$"
)
_FIELD = re.compile(r" ([a-z_]+)=(\"(?:[^\"\\]|\\.)*\"|\S*)")


def environ(url: str, startup: str = "", **settings: Any) -> dict[str, str]:
    """The environment of a worker on this database, with changed settings and a start-up."""
    return {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
        "TESTS_SETTINGS": json.dumps(settings),
        "TESTS_STARTUP": startup,
    }


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log."""

    time: float
    level: str
    name: str
    fields: dict[str, str]

    @classmethod
    def parse(cls, line: str) -> "Event | None":
        """Return the event in a line, or None for a line of a traceback and the like."""
        match = _LINE.match(line)
        if match is None:
            return None
        at = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC).timestamp()
        fields = {k: json.loads(v) if v.startswith('"') else v for k, v in _FIELD.findall(match[4])}
        return cls(at, match[2], match[3], fields)


class Forked:
    """A process from the nursery, with as much of Popen as is needed."""

    def __init__(
        self, nursery: Nursery, command: Sequence[str], environ: Mapping[str, str], log: Path
    ) -> None:
        log.touch()
        self._nursery = nursery
        self.pid = nursery.start(command, environ, log)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.poll(self.pid)
        return self.returncode

    def wait(self) -> int | None:
        wait_until(lambda: self.poll() is not None, message=f"{self.pid} does not end")
        return self.returncode


def fresh(command: Sequence[str], environ: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """Start ``python -m django`` in a new interpreter."""
    python = [sys.executable, "-m", "django", *command]
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, *python],
            env=environ,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


class Worker:
    """A running ``runworkers``; made by the fixtures, which also end it."""

    COMMAND = "runworkers"

    def __init__(
        self, arguments: Sequence[str], environ: Mapping[str, str], log: Path, nursery: Nursery | None = None
    ) -> None:
        self.arguments = list(arguments)
        self.environ = dict(environ)
        self.log = log
        self.deaths: dict[int, float] = {}  # right before SIGKILL, by pid
        command = [self.COMMAND, *arguments]
        self.process = Forked(nursery, command, environ, log) if nursery else fresh(command, environ, log)
        self.pid = self.process.pid
        self.ended: int | None = None
        self._read = 0  # bytes of the log
        self._events: list[Event] = []

    def __repr__(self) -> str:
        return f"{self.COMMAND} {shlex.join(self.arguments)} (pid {self.pid})"

    # --- what it says

    @property
    def text(self) -> str:
        """Everything it has written."""
        return self.log.read_text(errors="replace")

    def events(self, name: str | None = None, **fields: Any) -> list[Event]:
        """Return the events of this name and with these fields, in order."""
        self._read_on()
        return [
            event
            for event in self._events
            if name in (None, event.name) and all(event.fields.get(k) == str(v) for k, v in fields.items())
        ]

    def _read_on(self) -> None:
        """Parse what was written since the last look, but for a line that is not whole yet."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            lines, newline, _ = log.read().rpartition(b"\n")
        self._read += len(lines) + len(newline)
        parsed = (Event.parse(line) for line in lines.decode(errors="replace").splitlines())
        self._events += [event for event in parsed if event]

    def wait_for(self, name: str, *, count: int = 1, timeout: float = 10.0, **fields: Any) -> list[Event]:
        """Wait until an event was logged so many times, and return them."""
        return self._wait(
            lambda: events if len(events := self.events(name, **fields)) >= count else None,
            timeout,
            f"did not log {name} {fields or ''} {count} times",
        )

    def _wait(self, predicate: Callable[[], T], timeout: float, message: str) -> T:
        try:
            return wait_until(predicate, timeout)
        except AssertionError as error:
            raise AssertionError(f"{self} {message}; {error}:\n{self.text[-6000:]}") from None

    def wait_started(self, processes: int = 1) -> "Worker":
        """Wait until the keeper and so many children are up."""
        self._wait(
            lambda: (
                not self.alive
                or (self.events("keeper_started") and len(self.events("child_started")) >= processes)
            ),
            START_TIMEOUT,
            "did not start",
        )
        assert self.alive, f"{self} ended with {self.process.returncode}:\n{self.text[-4000:]}"
        return self

    # --- its processes

    @property
    def alive(self) -> bool:
        """True while the supervisor runs."""
        return self.process.poll() is None

    @property
    def processes(self) -> list[int]:
        """The pids of the whole session, zombies left out; children of a dead supervisor included."""
        return [
            pid for pid in _pids() if (info := _stat(pid)) and info.session == self.pid and info.state != "Z"
        ]

    @property
    def keeper(self) -> int:
        """The pid of the keeper that runs now, 0 while there is none."""
        living = self.processes
        return next((pid for pid in reversed(self._started("keeper_started")) if pid in living), 0)

    @property
    def children(self) -> list[int]:
        """The pids of the children that run now, oldest first."""
        living = self.processes
        return [pid for pid in self._started("child_started") if pid in living]

    @property
    def child(self) -> int:
        """The pid of the only child."""
        (pid,) = self.children
        return pid

    def _started(self, event: str) -> list[int]:
        return [int(e.fields["pid"]) for e in self.events(event)]

    # --- what is done to it

    def kill_process(self, pid: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to one process of the session; for SIGKILL wait until it is gone."""
        assert pid in self.processes, f"{pid} is not a process of {self}"
        if number == signal.SIGKILL:
            self.deaths[pid] = time.monotonic()
        os.kill(pid, number)
        if number == signal.SIGKILL:
            wait_until(lambda: _gone(pid), message=f"{pid} survived SIGKILL")

    def signal(self, number: int) -> None:
        """Send a signal to the supervisor."""
        os.kill(self.pid, number)

    def signal_all(self, number: int) -> None:
        """Send a signal to every process of the worker at once, as a terminal does."""
        os.killpg(self.pid, number)

    def freeze(self) -> None:
        """SIGSTOP the supervisor, the keeper and the children, and wait until they stand still."""
        self.signal_all(signal.SIGSTOP)
        wait_until(lambda: all(_stat(pid).state == "T" for pid in self.processes), message="not all stopped")

    def thaw(self) -> None:
        """SIGCONT everything."""
        self.signal_all(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL the whole worker, as the end of its machine would."""
        self.deaths |= dict.fromkeys(self.processes, time.monotonic())
        self.close()

    def stop(self, timeout: float = 15.0) -> float:
        """SIGTERM the supervisor and return the seconds from hearing it to the end; it must exit with 0."""
        self.signal(signal.SIGTERM)
        self.wait_end(0, timeout)
        return self.events("worker_stopped")[-1].time - self.events("stopping")[-1].time

    def wait_end(self, code: int, timeout: float = 15.0) -> None:
        """Wait for the end of the worker and of all its processes; it must exit with ``code``."""
        self._wait(lambda: not self.alive, timeout, "did not end")
        assert self.process.returncode == code, (
            f"{self} exited with {self.process.returncode}:\n{self.text[-4000:]}"
        )
        self._wait(lambda: not self.processes, 2.0, "left processes behind")
        self.ended = code

    def close(self) -> None:
        """End what still lives, whatever state it is in."""
        if self.processes:
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: not self.processes, message=f"{self} survived SIGKILL")
        self.ended = self.process.returncode


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    session: int


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> _Stat | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Stat(fields[0], int(fields[3]))


def _gone(pid: int) -> bool:
    info = _stat(pid)
    return info is None or info.state == "Z"
