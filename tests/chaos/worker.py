"""A seat: the place of one worker, with its own way to the database; who sits there changes under faults."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..processes.nursery import Nursery
from ..processes.worker import Worker, environ
from .history import Trouble, WorkerEnd

LEASE, HEARTBEAT, GRACE = 3.0, 0.5, 5.0
RESCUE_EVERY = LEASE / 6
TASKS = "chaos tasks"
"""The application_name of the tasks' own connections; the queue's say who they are."""
SLOW_END = 30.0
KILLED, STOPPED = frozenset({-signal.SIGKILL}), frozenset({0})
UNFORESEEN = (
    *("process_failed", "giving_up", "task_thread_error", "receiver_failed", "watcher_error"),
    *("unknown_task", "settle_impossible", "transaction_left_open"),
)
"""Events that say that code is broken; no fault of the harness may cause one."""


@dataclass(slots=True)
class Sitter:
    """A worker that sits or sat somewhere, and how it may end."""

    worker: Worker
    allowed: frozenset[int] = frozenset()
    probe: str = ""
    stopping: tuple[float, float] | None = None


@dataclass(slots=True)
class Seat:
    """Where a worker is started: arguments, URL, environment. ``sitters`` are all that ever sat here."""

    name: str
    url: str
    processes: int
    threads: int
    nursery: Nursery
    logs: Path
    environ: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)
    sitters: list[Sitter] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)

    @property
    def queue(self) -> str:
        """The queue that only this seat serves, for its probes."""
        return f"probe-{self.name}"

    @property
    def worker(self) -> Worker:
        """Who sits here now."""
        return self.sitters[-1].worker

    def start(self, extra: dict[str, str] | None = None, *, wait: bool = True, fresh: bool = False) -> Worker:
        """Start a worker; ``extra`` is added to its environment, ``fresh`` makes it a new interpreter."""
        words = [
            "--queues",
            f"{self.queue},default",
            "--processes",
            self.processes,
            "--threads",
            self.threads,
        ]
        words += ["--lease", LEASE, "--heartbeat", HEARTBEAT, "--grace", GRACE, "--poll", 0.2]
        env = environ(self.url, **self.options) | self.environ | {"PGAPPNAME": TASKS} | (extra or {})
        log = self.logs / f"{self.name}-{len(self.sitters) + 1}.log"
        worker = Worker([str(word) for word in words], env, log, None if fresh else self.nursery)
        self.sitters.append(Sitter(worker))
        return worker.wait_started(self.processes) if wait else worker

    @property
    def is_up(self) -> bool:
        """True when all processes of the worker that sits here have started."""
        worker = self.worker
        return worker.alive and bool(worker.keeper) and len(worker.children) >= self.processes

    # --- what is done to it

    def pids(self) -> frozenset[int]:
        """The processes of the worker that sits here."""
        return frozenset(self.worker.processes)

    def kill(self) -> None:
        """SIGKILL all processes of the worker."""
        self.sitters[-1].allowed = KILLED
        self.worker.kill()

    def kill_supervisor(self) -> None:
        """SIGKILL the supervisor alone; its processes end by themselves, which is waited for by ``ends``."""
        self.sitters[-1].allowed = KILLED
        self.worker.kill_process(self.worker.pid)

    def stop(self) -> None:
        """SIGTERM, and wait for the end; the code is judged by the checker."""
        self.ask_to_stop()
        self.await_end()

    def ask_to_stop(self) -> None:
        """SIGTERM; before it has set itself up, that ends it as it ends any program."""
        started = self.worker.events("worker_started")
        self.sitters[-1].allowed = STOPPED if started else STOPPED | {-signal.SIGTERM}
        self.sitters[-1].stopping = (time.monotonic(), float("inf"))
        self.worker.signal(signal.SIGTERM)

    def await_end(self) -> None:
        """Wait for the end of a worker that was told to stop; one that goes on is killed, and judged so."""
        until = time.monotonic() + SLOW_END
        while self.worker.alive and time.monotonic() < until:
            signal.sigtimedwait([], 0.02)
        if self.worker.alive:
            self.worker.close()
        self.worker.ended = self.worker.process.poll()
        asked, _ = self.sitters[-1].stopping or (until - SLOW_END, until)
        self.sitters[-1].stopping = (asked, time.monotonic())

    @contextmanager
    def suspended(self, pids: frozenset[int] | None = None) -> Iterator[None]:
        """Note that these processes, or all of the worker, could not renew meanwhile."""
        pids, began = pids or self.pids(), time.monotonic()
        try:
            yield
        finally:
            self.troubles.append(Trouble(began, time.monotonic(), pids))

    # --- the verdict's material

    def ends(self) -> list[WorkerEnd]:
        """How all who sat here stand now."""
        return [
            WorkerEnd(
                f"{self.name}-{number}",
                sitter.worker.process.poll(),
                sitter.allowed,
                bool(sitter.probe),
                tuple(complaints(sitter.worker)),
                sitter.worker.pid,
                sitter.stopping,
                any("at its timeout" in e.fields["because"] for e in sitter.worker.events("killing_child")),
            )
            for number, sitter in enumerate(self.sitters, 1)
        ]


def complaints(worker: Worker) -> list[str]:
    """Return the log lines that no fault explains, at most five: broken code, not broken surroundings."""
    found = [f"{event.name} {event.fields}" for event in worker.events() if event.name in UNFORESEEN]
    if "\nFatal Python error" in worker.text:
        found.append("Fatal Python error")
    return found[:5]
