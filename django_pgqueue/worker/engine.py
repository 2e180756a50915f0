"""The child's engine: settle what has ended, claim what comes next, in one transaction.

One thread owns the child's private connection and goes round: take what the runners finished, write
it (one commit for all of it), claim the next jobs in the same commit, hand them to the runners.  What
ends while a write is under way goes with the next one.  An outcome stays on the list until the
database has said what became of it; nothing computed is lost to a broken connection or run again.
"""

import logging
import time
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import psycopg

from .. import sql, states
from ..connections import ROW_ERRORS, PrivateConnection
from ..events import log
from ..execution import Execution, failure, finished_result
from ..models import Job
from ..records import DONE, LOCKED, Answer, Released, WorkerIdentity
from . import drain
from .board import CAPACITY, Board
from .claims import Claimer
from .config import WorkerConfig
from .outcomes import fields_of, log_outcome
from .prefetch import STALL, Prefetch
from .runners import Runners
from .settling import SecondHand, Settled, write_outcomes

WAKE = None
"""What the watcher puts on the tray to make the engine look now."""
LINGER = 0.002
"""Seconds that a write may wait for company while the runners have enough to do."""
PROGRESS_EVERY = 0.5
"""Seconds between two writes of progress, unless something else is written anyway."""
LOCKED_PAUSE = 0.2
"""Seconds before a row that somebody else had locked is tried again."""
REFUSED_PAUSE = 1.0
"""Seconds that a job is kept from coming straight back while an earlier attempt of it still runs here."""
RESERVE = 64
"""Entries of the board that prefetching leaves alone."""


class Engine:
    """Claims, hands out, settles; see the module."""

    def __init__(
        self, config: WorkerConfig, board: Board, identity: WorkerIdentity, quota: int | None
    ) -> None:
        self.config = config
        self.board = board
        self.identity = identity
        self.connection = PrivateConnection(
            config.database, f"child {identity.worker_id}", prepared=config.prepared_statements
        )
        self.claimer = Claimer(config.queues, worker_id=identity.worker_id, lease=config.lease)
        self.tray: SimpleQueue[Execution | Settled | None] = SimpleQueue()
        self._settle = partial(write_outcomes, worker=identity, config=config)
        self.second_hand = SecondHand(config, identity, self._settle, self.tray)
        self.runners = Runners(config.threads, config.coroutines, board, self.tray, self._may_start)
        self.prefetch = Prefetch(config)
        self.held: dict[int, Execution] = {}
        self.unsettled: list[Execution] = []
        self.quota = quota
        self._quota_given = quota or 0
        self.stop_by: float | None = None
        self.drained = False
        self._free = list(range(CAPACITY - 1, -1, -1))
        self._in_runners = 0
        self._suspect_since: float | None = None
        self._refused: list[tuple[float, Released]] = []
        self._look_at = 0.0
        self._progressed: dict[int, Execution] = {}
        self._progress_at = 0.0

    # --- called by other threads

    def wake(self) -> None:
        """Make the engine look now."""
        self.tray.put(WAKE)

    def _may_start(self, execution: Execution) -> bool:
        if self.stop_by is not None or execution.cancel_requested or execution.lease_lost:
            return False
        return not self.lease_over(execution)

    def lease_over(self, execution: Execution) -> bool:
        """True when the lease may have ended, as far as this process can know."""
        confirmed = max(execution.claimed, self.board.get("beat"))
        return time.monotonic() > confirmed + self.config.lease

    # --- the loop

    def run(self) -> bool:
        """Work until told to stop, drained, or the quota is used up; True when no task is left running."""
        while True:
            self._collect(self._patience())
            self._round()
            if self._done():
                self.board.set("drained", int(self.drained))
                return True
            if self.config.drain and not self.held and drain.is_in_vain(self.connection, self.config.lease):
                self.board.set("in_vain", 1)
                return True
            if self.stop_by is not None and time.monotonic() > self.stop_by:
                self._interrupt_all()
                return False

    def stop(self, by: float) -> None:
        """Stop claiming, hand back what has not started, finish the rest until ``by`` (monotonic)."""
        if self.stop_by is None or by < self.stop_by:
            self.stop_by = by
        self.wake()

    def _done(self) -> bool:
        if self.held or self.unsettled or self._refused:
            return False
        return self.stop_by is not None or self.drained or self.quota == 0

    def _patience(self) -> float:
        if self.connection.pause:
            return self.connection.pause
        if self.stop_by is not None:
            soon = self.unsettled or self.runners.waiting
            return 0.05 if soon else max(min(self.stop_by - time.monotonic(), 0.5), 0.01)
        if self.unsettled or self._refused:
            return LOCKED_PAUSE
        pause = max(self._look_at - time.monotonic(), 0.0) if self._wanted() else self.config.poll_interval
        return min(pause, STALL) if self.runners.waiting else pause

    def _collect(self, patience: float) -> None:
        try:
            self._accept(self.tray.get(timeout=patience) if patience > 0 else self.tray.get_nowait())
            if patience > 0 and self.runners.waiting > self.config.threads:
                time.sleep(LINGER)
            while True:
                self._accept(self.tray.get_nowait())
        except Empty:
            pass

    def _accept(self, item: Execution | Settled | None) -> None:
        if item is None:  # WAKE
            self._look_at = 0.0
            return
        if isinstance(item, Settled):
            self._take_answers(item)
            return
        self._in_runners -= 1
        if item.decision is None and self.stop_by is None and self.quota is not None:
            self.quota += 1  # it never started
        self.prefetch.note(item)
        self.unsettled.append(item)

    def _round(self) -> None:
        if self.quota is not None:
            self.board.set("used", self._quota_given - self.quota)
        if self.connection.pause:
            return
        now = time.monotonic()
        if self.stop_by is not None or self.prefetch.stalled(self.runners, now):
            self._take_back()
        wanted = self._wanted()
        if not wanted:
            self.board.set("sleeping", 0)  # or the busy would be notified of every job
        may_claim = self.stop_by is None and (now >= self._look_at or self.unsettled)
        limit = wanted if may_claim else 0
        if limit and not self._suspect_since:
            self._delegate()
        progress = bool(self._progressed) and now >= self._progress_at
        if not (self.unsettled or self._due_refusals() or limit or progress or self._suspect_since):
            return
        try:
            self._write(limit)
        except ROW_ERRORS as error:
            log("settle_refused", logging.ERROR, error=error, rows=len(self.unsettled))
            self._look_at = now + self.prefetch.poll_pause()
            self._settle_one_by_one()
        except psycopg.Error:
            self._suspect_since = self._suspect_since or now

    def _write(self, limit: int) -> None:
        generation = self.connection.generation
        batch, refusals = list(self.unsettled), self._due_refusals()
        with self.connection.hot() as connection:
            self._reconcile(generation, connection)
            self._write_progress(connection)
            answers = self._settle(batch, connection, refusals=refusals)
            claimed, empty = self._claim(limit, connection) if limit else ([], False)
        # Only now it is durable.
        self._suspect_since = None
        self.second_hand.has_failed = False
        self.unsettled = self.unsettled[len(batch) :]
        self._refused = [waiting for waiting in self._refused if waiting[1] not in refusals]
        self._apply(batch, answers)
        self._start_all(claimed)
        if limit:
            self._note_look(len(claimed), empty)

    def _delegate(self) -> None:
        """Leave what succeeded to the second hand, so that the next jobs need not wait for it."""
        if self.second_hand.wants(self.unsettled):
            self.second_hand.take(self.unsettled)
            self.unsettled = []

    def _take_answers(self, settled: Settled) -> None:
        self.second_hand.is_busy = False
        self._look_at = 0.0
        if settled.answers is None:
            self.second_hand.has_failed = True
            self.unsettled += settled.batch
        else:
            self._apply(settled.batch, settled.answers)

    # --- progress

    def _note_progress(self, execution: Execution) -> None:
        self._progressed[execution.job.job_id] = execution
        if time.monotonic() >= self._progress_at:
            self.wake()

    def _write_progress(self, connection: Any) -> None:
        self._progress_at = time.monotonic() + PROGRESS_EVERY
        if not self._progressed:
            return
        noted, self._progressed = self._progressed, {}
        reports = [(e.fence, e.progress) for e in noted.values() if e.progress is not None]
        Job.objects.report_progress(reports, connection=connection)

    # --- claiming

    def _claim(self, limit: int, connection: Any) -> tuple[list[Execution], bool]:
        self.board.set("claiming", 1)  # until they stand on the board, jobs may be ours that nobody knows of
        asked = time.monotonic()
        jobs, empty = self.claimer.claim(limit, connection=connection)
        again = [job.job_id for job in jobs if job.attempts]
        past = Job.objects.history(again, connection=connection) if again else {}
        worker, report = self.identity.worker_id, self._note_progress
        executions = [
            Execution(job, worker, asked, tuple(past.get(job.job_id, ())), report=report) for job in jobs
        ]
        return executions, empty

    def _wanted(self) -> int:
        if not self.beat_is_fresh():
            return 0
        running = self._in_runners - self.runners.waiting - self.runners.awaiting
        wanted = self.prefetch.wanted(
            idle=self.config.threads - max(running, 0),
            waiting=self.runners.waiting,
            awaiting=self.runners.awaiting,
        )
        if self.quota is not None:
            wanted = min(wanted, self.quota)
        return max(min(wanted, len(self._free) - RESERVE), 0)

    def beat_is_fresh(self) -> bool:
        """False after two missed beats of the keeper: leases taken now might not be renewed."""
        return time.monotonic() - self.board.get("beat") < 2 * self.config.heartbeat + 1.0

    def _start_all(self, executions: list[Execution]) -> None:
        for execution in executions:
            self._start(execution)
        self.board.set("claiming", 0)

    def _start(self, execution: Execution) -> None:
        job = execution.job
        if job.job_id in self.held:
            # An earlier attempt of it still runs here: its lease was lost, and the row came back to us.
            self._refused.append((time.monotonic() + REFUSED_PAUSE, Released(execution.fence, None)))
            return
        execution.entry = self._free.pop()
        self.board.publish(execution.entry, execution.fence)
        self.held[job.job_id] = execution
        self._in_runners += 1
        if self.quota is not None:
            self.quota -= 1
        self.runners.submit(execution)

    def _due_refusals(self) -> list[Released]:
        now = time.monotonic()
        return [refusal for due, refusal in self._refused if due <= now or self.stop_by is not None]

    def _note_look(self, found: int, empty: bool) -> None:
        if not empty:
            self.board.set("sleeping", 0)
            if found == 0:
                self._look_at = time.monotonic() + self.config.poll_interval / 4
            return
        self._look_at = time.monotonic() + self.prefetch.poll_pause()
        self.board.set("sleeping", 1)
        if self.config.drain and not found and not self.held and not self.unsettled:
            self.drained = self._nothing_due()

    def _nothing_due(self) -> bool:
        try:
            with self.connection.hot() as connection:
                Job.objects.promote(limit=1000, connection=connection)
                seconds = Job.objects.next_run_at(connection=connection)
                claimed, empty = self._claim(1, connection)
        except psycopg.Error:
            self._suspect_since = self._suspect_since or time.monotonic()
            return False
        self._start_all(claimed)
        self._look_at = 0.0
        return empty and not claimed and (seconds is None or seconds > 0)

    def _reconcile(self, generation: int, connection: Any) -> None:
        if self.connection.generation != generation:
            self.board.set("backend", connection.info.backend_pid)
            self.claimer.reset()
        if self._suspect_since is not None:
            within = time.monotonic() - self._suspect_since + 60.0
            released = Job.objects.release_unheld(
                list(self.held), worker_id=self.identity.worker_id, within=within, connection=connection
            )
            if released:
                log("released_unheld", jobs=len(released), worker=self.identity.worker_id)

    # --- settling

    def _apply(self, batch: list[Execution], answers: list[Answer]) -> None:
        finished = []
        heard: dict[str, bool] = {}
        for execution, answer in zip(batch, answers, strict=True):
            if answer.result == LOCKED:
                self.unsettled.append(execution)
                continue
            self._retire(execution)
            if answer.result != DONE:
                log("lease_lost", logging.WARNING, **fields_of(execution), outcome_dropped=True)
            elif execution.decision is not None:
                log_outcome(execution, answer)
                status = answer.status or ""
                if status in states.ENDED:
                    if status not in heard:
                        heard[status] = self.runners.is_heard(status)
                    result = finished_result(execution, status) if heard[status] else None
                    if result is not None:
                        finished.append((execution, result))
        if heard:
            self._wake_waiters()
        if finished:
            self.runners.announce(finished)

    def _wake_waiters(self) -> None:
        if self.config.notify:
            with suppress(psycopg.Error), self.connection.guarded() as connection:  # they look once a second
                connection.execute(sql.NOTIFY_WAITERS)

    def _settle_one_by_one(self) -> None:
        # One bad row harms no other; a bad row's outcome is replaced by one that says so.
        for execution in list(self.unsettled):
            for last_try in (False, True):
                try:
                    with self.connection.hot() as connection:
                        answers = self._settle([execution], connection)
                except ROW_ERRORS as error:
                    execution.decision = failure(execution, error, final=True)
                    if last_try:
                        log("settle_impossible", logging.ERROR, exc_info=error, **fields_of(execution))
                        self.unsettled.remove(execution)
                        self._retire(execution)
                except psycopg.Error:
                    return
                else:
                    self.unsettled.remove(execution)
                    self._apply([execution], answers)
                    break

    def _retire(self, execution: Execution) -> None:
        self.board.withdraw(execution.entry)
        self._free.append(execution.entry)
        self.held.pop(execution.job.job_id, None)

    # --- handing back

    def _take_back(self) -> None:
        for execution in self.runners.take_back():
            self._in_runners -= 1
            if self.quota is not None:
                self.quota += 1
            self.unsettled.append(execution)

    def _interrupt_all(self) -> None:
        """Hand back everything, running or not; the process must end right after."""
        settled = {id(execution) for execution in self.unsettled}
        self.unsettled += [execution for execution in self.held.values() if id(execution) not in settled]
        log("interrupted", logging.WARNING, jobs=len(self.held), worker=self.identity.worker_id)
        try:
            with self.connection.hot() as connection:
                batch = list(self.unsettled)
                answers = self._settle(batch, connection, refusals=self._due_refusals())
            self.unsettled = []
            self._apply(batch, answers)
        except psycopg.Error as error:
            log("hand_back_failed", logging.ERROR, error=error, jobs=len(self.held))
