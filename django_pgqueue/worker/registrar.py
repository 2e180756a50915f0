"""The worker's line in the registry: who it is, what it is made of, and whether somebody asked it to stop.

For people only.  A worker whose line cannot be written works all the same, and the next beat writes it.
"""

import logging
import os
import signal
import time
from importlib import import_module
from typing import Any

import psycopg

from ..connections import PrivateConnection
from ..events import log
from ..operating import Worker
from ..records import WorkerIdentity
from ..registry import ChildProcess, Registration
from .board import LIVE, RUN, Board
from .config import WorkerConfig
from .memory import resident_megabytes

# By its name: what stands below the package's public face must not import it.
VERSION: str = import_module("django_pgqueue").__version__


class Registrar:
    """Made by a keeper as it starts, in its main thread, before it names itself on its board."""

    def __init__(
        self, config: WorkerConfig, command: Board, boards: list[Board], identity: WorkerIdentity
    ) -> None:
        self._config = config
        self._boards = boards
        self._identity = identity
        self._supervisor = os.getppid()
        # The board outlives a keeper that died: its line is taken over, and so is the time of the beginning.
        self._replaced = command.get_text("worker_id")
        if not command.get("born"):
            command.set("born", time.monotonic())
        self._born = command.get("born")
        self._told = False

    def beat(self, connection: Any) -> None:
        """Write the line; pass a wish that the worker stop on to the supervisor, once, as SIGTERM."""
        if self._replaced:
            Worker.objects.forget(self._replaced, connection=connection)
            self._replaced = ""
        asked = Worker.objects.beat(self._registration(), connection=connection)
        if asked and not self._told and os.getppid() == self._supervisor:
            self._told = True
            log("asked_to_stop", worker=self._identity.worker_id, pid=self._supervisor)
            os.kill(self._supervisor, signal.SIGTERM)

    def leave(self, private: PrivateConnection) -> None:
        """Take the line away; a line that stays is seen to be old, and goes after a day."""
        try:
            with private.guarded() as connection:
                Worker.objects.forget(self._identity.worker_id, connection=connection)
        except psycopg.Error as error:
            log("still_registered", logging.WARNING, worker=self._identity.worker_id, error=error)

    def _registration(self) -> Registration:
        live = [board for board in self._boards if board.get("state") == LIVE and board.get("pid")]
        children = tuple(_child(board) for board in live)
        pids = [self._supervisor, os.getpid(), *(child.pid for child in children)]
        return Registration(
            worker_id=self._identity.worker_id,
            host=self._identity.host,
            pid=self._supervisor,
            started_ago=time.monotonic() - self._born,
            heartbeat=self._config.heartbeat,
            queues=self._config.queues,
            processes=self._config.processes,
            threads=self._config.threads,
            version=VERSION,
            release=self._config.release,
            memory=sum(resident_megabytes(pid) or 0 for pid in pids) or None,
            is_stopping=bool(live) and all(board.get("command") != RUN for board in live),
            children=children,
        )


def _child(board: Board) -> ChildProcess:
    pid = int(board.get("pid"))
    held = sum(1 for _ in board.held())
    return ChildProcess(board.get_text("worker_id"), pid, resident_megabytes(pid), held)
