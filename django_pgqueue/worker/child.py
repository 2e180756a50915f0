"""One child process: the engine in the main thread, the runners' threads, and a watcher.

The watcher is the child's ear: it sees a command in the board, a verdict on a lease, a notice from
the keeper, the end of the supervisor (a pipe), a task past its timeout, a connection that hangs.
"""

import faulthandler
import logging
import os
import select
import signal
import threading
import time
from dataclasses import dataclass

from .. import noting
from ..events import log
from . import cleanup
from .board import CANCEL_REQUESTED, LOST, QUIT, RUN, Board
from .config import WorkerConfig, new_identity
from .engine import Engine

TICK = 0.2
"""Seconds between two looks of the watcher."""
LAST_SETTLE = 5.0
"""Seconds that a stopped child's last receivers of ``task_finished`` have."""


@dataclass(frozen=True, slots=True)
class ChildPipes:
    """Descriptors: ``life`` ends with the supervisor, ``notice`` carries wake-up bytes."""

    life: int
    notice: int


def run_child(config: WorkerConfig, board: Board, pipes: ChildPipes, quota: int | None) -> None:
    """Be a child until told to stop.  Does not return: exits with 0, or with 1 when something was left."""
    identity = new_identity()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the group; the supervisor decides
    faulthandler.enable()
    cleanup.keep_connections()
    noting.begin(config.log_tail_bytes, config.log_tail_level)
    board.set_text("worker_id", identity.worker_id)
    board.set("pid", identity.pid or 0)
    engine = Engine(config, board, identity, quota)
    signal.signal(signal.SIGTERM, lambda *_: engine.stop(time.monotonic() + config.grace))
    Watcher(engine, board, pipes).start()
    board.set("ready", 1)
    log("child_started", worker=identity.worker_id, pid=identity.pid, queues=",".join(config.queues) or "*")
    if engine.run():
        engine.runners.close(LAST_SETTLE)
    engine.connection.close()
    engine.second_hand.connection.close()
    log("child_stopped", worker=identity.worker_id, pid=identity.pid, left=len(engine.held))
    logging.shutdown()
    # Threads of tasks that did not end in time must not keep the process: what they held was handed back.
    os._exit(1 if engine.held else 0)


class Watcher:
    """Listens for the others; see the module."""

    def __init__(self, engine: Engine, board: Board, pipes: ChildPipes) -> None:
        self.engine = engine
        self.board = board
        self.pipes = pipes
        self._orphaned = False

    def start(self) -> None:
        """Watch in a thread of its own."""
        threading.Thread(target=self._run, name="pgqueue-watcher", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - without its watcher a child would be deaf
                log("watcher_error", logging.ERROR, exc_info=error)

    def _look(self) -> None:
        watched = [self.pipes.notice] if self._orphaned else [self.pipes.notice, self.pipes.life]
        readable, _, _ = select.select(watched, [], [], TICK)
        if self.pipes.notice in readable:
            os.read(self.pipes.notice, 4096)
            self.engine.wake()
        if self.pipes.life in readable and not self._orphaned:
            self._orphaned = True
            log("supervisor_gone", logging.ERROR, worker=self.engine.identity.worker_id)
            self.engine.stop(time.monotonic() + self.engine.config.grace)
        self._obey()
        self._read_verdicts()
        self.engine.runners.interrupt_overdue(time.monotonic())
        self.engine.connection.give_up_if_stuck()
        self.engine.second_hand.connection.give_up_if_stuck()
        self._enforce_deadline()

    def _obey(self) -> None:
        command = self.board.get("command")
        if command == RUN:
            return
        grace = 0.0 if command == QUIT else self.engine.config.grace
        self.engine.stop(time.monotonic() + grace)

    def _read_verdicts(self) -> None:
        for execution in list(self.engine.held.values()):
            verdict = self.board.verdict(execution.entry, execution.fence)
            if verdict == CANCEL_REQUESTED:
                execution.cancel_requested = True
            # A flag, not a judgement: what was computed is still offered to the database; its fence decides.
            lost = verdict == LOST or self.engine.lease_over(execution)
            if lost and not execution.lease_lost:
                log(
                    "lease_in_doubt",
                    logging.WARNING,
                    job=execution.job.job_id,
                    worker=self.engine.identity.worker_id,
                )
            execution.lease_lost = lost

    def _enforce_deadline(self) -> None:
        stop_by = self.engine.stop_by
        if stop_by is not None and time.monotonic() > stop_by + LAST_SETTLE:
            log(
                "stopped_hard",
                logging.ERROR,
                worker=self.engine.identity.worker_id,
                left=len(self.engine.held),
            )
            logging.shutdown()
            os._exit(1)
