"""The keeper: one process beside the children that looks after leases and the tables.

It is a process of its own so that nothing a task does can keep it from renewing: not a C call that
holds the interpreter, not memory, not a crash.  Three threads, a private connection each: leases (the
main one), maintenance, wake-up.  When it dies the supervisor starts another, which finds everything
it needs in the boards.
"""

import logging
import os
import select
import signal
import threading
import time
from dataclasses import dataclass

import psycopg

from .. import leases, maintenance
from ..carrying import CarryDuty
from ..connections import ROW_ERRORS, PrivateConnection
from ..events import log
from ..records import Fence, Renewal, WorkerIdentity
from ..watching import WatchDuty
from .board import CANCEL_REQUESTED, DEAD, FREE, LIVE, LOST, QUIT, Board, Held
from .config import WorkerConfig, new_identity
from .deaths import LOOK_EVERY, Deaths
from .registrar import Registrar
from .sleepers import Sleepers

TICK = 0.5
PRUNE_EVERY = 30.0
LAST_RESCUE = 5.0
"""Seconds that a keeper told to quit still tries to give back what dead children held."""


@dataclass(frozen=True, slots=True)
class KeeperPipes:
    """Descriptors: ``life`` ends with the supervisor, ``notice`` wakes the keeper, ``children`` one each."""

    life: int
    notice: int
    children: tuple[int, ...]


def run_keeper(config: WorkerConfig, command: Board, boards: list[Board], pipes: KeeperPipes) -> None:
    """Be a keeper until the supervisor says QUIT or is gone; does not return.

    ``command`` is a board of which only the header is used: the keeper's own.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends last, when the supervisor says so
    identity = new_identity()
    registrar = Registrar(config, command, boards, identity)
    command.set_text("worker_id", identity.worker_id)
    command.set("pid", identity.pid or 0)
    keeper = Keeper(config, command, boards, pipes, identity, registrar)
    threading.Thread(target=keeper.maintain, name="pgqueue-maintenance", daemon=True).start()
    threading.Thread(target=keeper.watch, name="pgqueue-watchdog", daemon=True).start()
    if config.notify:
        threading.Thread(target=keeper.sleepers.run, name="pgqueue-wakeup", daemon=True).start()
    keeper.run()
    logging.shutdown()
    os._exit(0)


class Keeper:
    """Renews, rescues, maintains; see the module."""

    def __init__(
        self,
        config: WorkerConfig,
        command: Board,
        boards: list[Board],
        pipes: KeeperPipes,
        identity: WorkerIdentity,
        registrar: Registrar,
    ) -> None:
        self.config = config
        self.command = command
        self.boards = boards
        self.pipes = pipes
        self.identity = identity
        self.leases = self._connection("leases")
        self.tables = self._connection("maintenance")
        self.sleepers = Sleepers(config, boards, pipes.children, self._connection("wakeup"))
        self.deaths = Deaths(boards, identity.host, self.leases, self.sleepers.notice_children)
        self.promoter = maintenance.Promoter()
        self.carrier = CarryDuty()
        self.registrar = registrar
        self.writes_since = self.confirmed = time.monotonic()
        self._orphaned_at: float | None = None
        self._quit_at: float | None = None

    def _connection(self, name: str) -> PrivateConnection:
        return PrivateConnection(
            self.config.database,
            f"{name} {self.identity.worker_id}",
            prepared=self.config.prepared_statements,
        )

    # --- leases

    def run(self) -> None:
        """Renew every heartbeat, and give back at once what a dead child held."""
        log("keeper_started", worker=self.identity.worker_id, pid=self.identity.pid)
        beat_at = time.monotonic()
        retry_at = float("inf")
        while not self._may_end():
            now = time.monotonic()
            if now >= beat_at or now >= retry_at:
                ok, locked = self._beat()
                # Failed beats are repeated soon; locked rows are tried again alone, well within the lease.
                beat_at = now + self.config.heartbeat if ok else now + max(self.leases.pause, 0.1)
                retry_at = now + self.config.heartbeat / 4 if locked else float("inf")
            self._give_back_dead()
            pause = LOOK_EVERY if self.deaths.pending() else TICK
            self._wait(min(beat_at - time.monotonic(), retry_at - time.monotonic(), pause))
        self.registrar.leave(self.leases)
        log("keeper_stopped", worker=self.identity.worker_id)

    def _beat(self) -> tuple[bool, bool]:
        sent = time.monotonic()
        held = [(board, entry) for board in self._live() for entry in board.held()]
        try:
            with self.leases.hot() as connection:
                answers = leases.renew(
                    [e.fence for _, e in held], lease=self.config.lease, connection=connection
                )
        except psycopg.Error:
            self.writes_since = float("inf")
            return False, False
        if self.writes_since == float("inf") or sent - self.confirmed > self.config.lease:
            self.writes_since = sent  # the database was away, or this process stood still
        self.confirmed = sent
        for board in self._live():
            board.set("beat", sent)
        self._tell(held, answers)
        return True, bool(leases.still_locked(answers))

    def _tell(self, held: list[tuple[Board, Held]], answers: dict[Fence, Renewal]) -> None:
        for board, entry in held:
            answer = answers[entry.fence]
            if leases.is_lost(answer):
                board.judge(entry, LOST)
            elif answer.cancel_requested:
                board.judge(entry, CANCEL_REQUESTED)

    def _live(self) -> list[Board]:
        return [board for board in self.boards if board.get("state") == LIVE]

    def _give_back_dead(self) -> None:
        try:
            self.deaths.give_back()
        except psycopg.Error:
            self.writes_since = float("inf")

    def _wait(self, seconds: float) -> None:
        watched = [self.pipes.notice] if self._orphaned_at else [self.pipes.notice, self.pipes.life]
        readable, _, _ = select.select(watched, [], [], max(seconds, 0.0))
        if self.pipes.notice in readable:
            os.read(self.pipes.notice, 4096)
        if self.pipes.life in readable and self._orphaned_at is None:
            self._orphaned_at = time.monotonic()
            log("supervisor_gone", logging.ERROR, worker=self.identity.worker_id)

    def _may_end(self) -> bool:
        if self.command.get("command") == QUIT:
            self._quit_at = self._quit_at or time.monotonic()
            return not self.deaths.pending() or time.monotonic() - self._quit_at > LAST_RESCUE
        if self._orphaned_at is None:
            return False
        # The children notice too and hand back; nobody waits for them any more but this process.
        for board in self._live():
            if not _alive(int(board.get("pid"))):
                board.set_text("reason", "ended after its supervisor")
                board.set("state", DEAD)
        patience = self.config.grace + self.config.lease
        idle = all(board.get("state") == FREE for board in self.boards)
        return idle or time.monotonic() - self._orphaned_at > patience

    # --- maintenance

    def maintain(self) -> None:
        """Promote, rescue, prune, count and register for ever; a thread of its own."""
        duties = [
            maintenance.Duty("promote", min(self.config.poll_interval, 1.0), self.promoter),
            maintenance.Duty("rescue", self.config.lease / 6, self._rescue),
            maintenance.Duty("prune", PRUNE_EVERY, maintenance.Pruner(self.config.retention)),
            maintenance.Duty("register", self.config.heartbeat, self._register),
            WatchDuty(),
            self.carrier,
        ]
        while True:
            duty = min(duties, key=lambda duty: duty.due_at)
            pause = max(min(duty.due_at - time.monotonic(), TICK), self.tables.pause)
            if pause > 0:
                time.sleep(pause)
            if time.monotonic() < duty.due_at:
                continue
            try:
                with self.tables.hot() as connection:
                    duty.run(connection)
            except psycopg.Error as error:
                duty.postpone()
                if isinstance(error, ROW_ERRORS):
                    log("maintenance_failed", logging.ERROR, duty=duty.name, error=error)
                continue
            except Exception as error:  # noqa: BLE001 - one broken duty must not end the others
                duty.postpone()
                log("maintenance_failed", logging.ERROR, exc_info=error, duty=duty.name)
                continue
            self._wake(self.promoter.promoted)
            self._wake(self.carrier.ready)
            if duty.name == "promote":
                self._after_promotion(duty)

    def _wake(self, queues: set[str]) -> None:
        if queues:
            self.sleepers.notice_children()
            self.sleepers.notify_others(sorted(queues), self.tables)
            queues.clear()

    def _after_promotion(self, duty: maintenance.Duty) -> None:
        # What is overdue and was not promoted is locked, or follows a job that runs: the next round.
        if self.promoter.next_in is not None and self.promoter.next_in > 0:
            duty.due_at = min(duty.due_at, time.monotonic() + self.promoter.next_in)

    def _rescue(self, connection: psycopg.Connection) -> int:
        # After an outage or a freeze every lease looks expired, this worker's own among them: whoever lives
        # must have had the time to renew first.
        now, lease = time.monotonic(), self.config.lease
        if now - self.writes_since < lease or now - self.confirmed > lease / 2:
            return 0
        return maintenance.rescue(connection, server_up=self.config.lease)

    def _register(self, connection: psycopg.Connection) -> int:
        if self._orphaned_at is None:
            self.registrar.beat(connection)
        return 0

    def watch(self) -> None:
        """Keep the connections from hanging; a thread of its own."""
        while True:
            time.sleep(TICK)
            for connection in (self.leases, self.tables, self.sleepers.connection):
                connection.give_up_if_stuck()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
