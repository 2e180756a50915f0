"""The worker's side of wake-up: say that somebody sleeps, listen, and wake the children.

While a child has room and has found its queues empty, this thread holds the shared advisory lock of
each queue; enqueuers that see it send a NOTIFY after their commit.  Having taken the lock, it makes
the children look again for a while: what was enqueued before the lock is found by those looks, what
comes after it is notified (see ``wakeups``).
"""

import contextlib
import os
import select
import time
from collections.abc import Sequence
from typing import LiteralString

import psycopg

from .. import sql
from ..connections import PrivateConnection
from ..events import log
from ..wakeups import SEEN_FOR
from .board import LIVE, Board
from .config import WorkerConfig

TICK = 0.05
IDLE_TICK = 0.5
KEEP_LOCK = 0.25
"""Seconds that the lock stays after the last child fell out of sleep: a busy child dozes for moments."""
LOOK_FOR = 2 * SEEN_FOR
"""Seconds for which those who have just fallen asleep go on looking, once a tick of ``LOOK_TICK``."""
LOOK_TICK = 0.1
PING_EVERY = 15.0
"""Seconds between two signs of life on an otherwise silent connection: one that died says nothing."""


class Sleepers:
    """Knows whether a child of this worker sleeps, and tells the database."""

    def __init__(
        self,
        config: WorkerConfig,
        boards: list[Board],
        children: tuple[int, ...],
        connection: PrivateConnection,
    ) -> None:
        self.boards = boards
        self.children = children
        self.connection = connection
        self._queues = config.queues or ("*",)
        self._notify = config.notify
        self._asleep_at = float("-inf")
        self._listens = False

    def notice_children(self) -> None:
        """Make every child that sleeps look at its queues."""
        for board, pipe in zip(self.boards, self.children, strict=True):
            if board.get("state") == LIVE and board.get("sleeping"):
                with contextlib.suppress(BlockingIOError):  # it has unread notices
                    os.write(pipe, b"!")

    def notify_others(self, queues: Sequence[str], connection: PrivateConnection) -> None:
        """Wake the workers elsewhere that sleep on these queues."""
        if self._notify:
            try:
                with connection.guarded() as raw:
                    raw.execute(sql.NOTIFY_SLEEPERS, {"queues": list(queues)})
            except psycopg.Error:
                return  # they poll

    def run(self) -> None:
        """Listen for ever; a thread of its own."""
        while True:
            if pause := self.connection.pause:
                time.sleep(pause)
            try:
                self._listen()
            except (psycopg.Error, OSError, ValueError) as error:
                self.connection.close()
                if self._listens:
                    log("wakeup_lost", connection=self.connection.name, error=error)
                self._listens = False
                time.sleep(max(self.connection.pause, IDLE_TICK))

    def _listen(self) -> None:
        with self.connection.guarded() as raw:
            raw.execute(sql.LISTEN)
        self._listens = True
        locked = False
        look_until = float("-inf")
        heard_at = time.monotonic()
        self.notice_children()  # what was notified while nobody listened
        while True:
            now = time.monotonic()
            if self._somebody_sleeps():
                self._asleep_at = now
            if (now - self._asleep_at < KEEP_LOCK) != locked:
                locked = not locked
                self._lock(sql.SLEEP if locked else sql.AWAKE)
                heard_at = now
                look_until = time.monotonic() + LOOK_FOR if locked else float("-inf")
            if now < look_until:
                self.notice_children()
            if now - heard_at > PING_EVERY:
                with self.connection.guarded() as raw:
                    raw.execute("SELECT 1")
                heard_at = now
                self.notice_children()  # a notification may have come in with the reply
            tick = LOOK_TICK if now < look_until else IDLE_TICK if locked else TICK
            if self._is_notified(tick):
                self.notice_children()  # before the notification is read: it takes a tenth of a millisecond
                with self.connection.guarded() as raw:
                    list(raw.notifies(timeout=0))

    def _somebody_sleeps(self) -> bool:
        return any(board.get("state") == LIVE and board.get("sleeping") for board in self.boards)

    def _lock(self, statement: LiteralString) -> None:
        with self.connection.guarded() as raw:
            for queue in self._queues:
                raw.execute(statement, {"queue": queue})

    def _is_notified(self, seconds: float) -> bool:
        """Wait; True when something came, which is a notification or the connection's end."""
        # notifies() would keep the connection to itself; select costs nothing while nothing comes.
        return bool(select.select([self.connection.open_now.fileno()], [], [], seconds)[0])
