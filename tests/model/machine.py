"""The rules: random verbs, each given to a real session and to the model (``sessions``, ``slowness``)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from django_pgqueue import sql
from django_pgqueue.durable import JobStep
from django_pgqueue.models import Job
from django_pgqueue.records import DONE, Cancelled, Consumed, Fence, NewJob, Released, Renewal, WorkerIdentity
from django_pgqueue.states import (
    CANCELLED,
    DEAD,
    ENDED,
    FAILED,
    LIVE,
    READY,
    RELEASED,
    RUNNING,
    SCHEDULED,
    SNOOZED,
    STATUSES,
)
from tests.support import OVER, cancelled, completed, failed, released, snoozed

from .comparison import compare, stored_rows, told_rows
from .sessions import (
    HELD,
    HELD_OPEN,
    HOUR,
    MOST_JOBS,
    WORKERS,
    Place,
    backoffs,
    batches,
    delays,
    keys,
    picks,
    proofs,
    sessions,
    switches,
    workers,
)
from .slowness import SLOW_CLOCK, Slowness, promote_all, prune_all, rescue_all
from .world import SOON, Blocked, Row, Step, born, complete


class VerbsAndModel(Slowness):
    """Every verb as a rule."""

    @initialize()
    def empty_tables(self) -> None:
        for table in (sql.STEP, sql.ATTEMPT, sql.STATE, sql.JOB):
            self.observer.execute(f"DELETE FROM {table}")
        row = self.observer.execute(f"SELECT nextval('{sql.POSITION}')").fetchone()
        assert row is not None
        self.last_position = row[0]
        self._begin_with_some_jobs()

    def _begin_with_some_jobs(self) -> None:
        for budget in (1, 2, 3):
            self.enqueue(me=0, count=1, priority=0, delay=None, budget=budget, backoff=0.0)
        for over in (True, False):
            self.claim(me=0, worker=WORKERS[over], limit=1, over=over)
        self.enqueue_unique(me=0, key="a", follows=False, delay=SOON, budget=1)
        self.enqueue_unique(me=0, key="a", follows=True, delay=None, budget=2)
        self.enqueue_unique(me=0, key="b", follows=False, delay=None, budget=2)
        self.cancel(me=0, jobs=[0], status=READY)

    # --- enqueue, replace

    def _has_room(self) -> bool:
        seen = set(self.world.committed).union(*(session.changed for session in self.world.sessions))
        return len(seen) < MOST_JOBS

    @precondition(_has_room)
    @rule(me=sessions, count=st.integers(1, 3), priority=st.sampled_from([0, 0, 5]), delay=delays,
          budget=st.integers(1, 3), backoff=backoffs)  # fmt: skip
    def enqueue(
        self, me: int, count: int, priority: int, delay: float | None, budget: int, backoff: float
    ) -> None:
        new = _new(priority=priority, delay=delay, max_attempts=budget, backoff_base=backoff)
        if count == 1:
            made = [Job.objects.enqueue(new, backend="default", connection=self.real[me])]
        else:
            made = Job.objects.enqueue_many([new] * count, backend="default", connection=self.real[me])
        self._enter(me, {row.job_id: born(new) for row in made})

    @precondition(_has_room)
    @rule(me=sessions, key=keys, follows=switches, delay=delays, budget=st.integers(1, 2))
    def enqueue_unique(self, me: int, key: str, follows: bool, delay: float | None, budget: int) -> None:
        if follows:
            key, delay = f"{key}{sql.FOLLOWER}", delay or SOON
        new = _new(unique_key=key, delay=delay, max_attempts=budget)
        (session, backend) = (self.real[me], "default")
        try:
            holder = self.world.enqueue_unique(me, new)
        except Blocked:
            self._must_wait(
                me, lambda: Job.objects.enqueue_unique([new], backend=backend, connection=session)
            )
            return
        (made,) = Job.objects.enqueue_unique([new], backend=backend, connection=session)
        assert made.inserted == (holder is None)
        if holder is None:
            self._enter(me, {made.job_id: born(new)})
        else:
            assert made.job_id == holder

    def _enter(self, me: int, rows: dict[int, Row]) -> None:
        self.place.happened["enqueue"] += 1
        known = set(self.world.committed)
        assert not known & rows.keys(), "an id was given twice"
        step = Step(None, dict(rows))
        self._learn_positions(me, step)
        self.world.apply(me, step)

    @precondition(lambda self: self._some(lambda row: row.key is not None and row.status in LIVE))
    @rule(me=sessions, key=keys, follows=switches, later=switches, budget=st.integers(1, 2))
    def replace_waiting(self, me: int, key: str, follows: bool, later: bool, budget: int) -> None:
        # A follower is never ready; and whether a time that is nearly now lies ahead, only the server knows.
        delay = HOUR if later or follows else None
        if follows:
            key = f"{key}{sql.FOLLOWER}"
        new = _new(unique_key=key, delay=delay, max_attempts=budget)

        def act(session: psycopg.Connection) -> int | None:
            row = Job.objects.replace(new, connection=session)
            return row and row.job_id

        self._do("replace_waiting", me, act, lambda: self.world.replace(me, key, new))

    # --- promote, claim

    @precondition(lambda self: self._some(lambda row: row.status == SCHEDULED and row.due))
    @rule(me=sessions)
    def promote(self, me: int) -> None:
        self._do("promote", me, promote_all, lambda: self.world.promote(me, self.world.promotable(me)))

    @precondition(lambda self: self._some(lambda row: row.status == SCHEDULED))
    @rule(me=sessions, jobs=batches)
    def promote_now(self, me: int, jobs: list[int]) -> None:
        ids = self._ids(me, jobs, SCHEDULED)
        self._do(
            "promote_now",
            me,
            lambda s: [row[0] for row in sorted(Job.objects.promote_now(ids, connection=s))],
            lambda: self.world.promote_now(me, ids),
        )

    @precondition(lambda self: self._some(lambda row: row.status == READY))
    @rule(me=sessions, worker=workers, limit=st.integers(1, 3), over=switches)
    def claim(self, me: int, worker: WorkerIdentity, limit: int, over: bool) -> None:
        token = uuid4()

        def act(session: psycopg.Connection) -> list[int]:
            claimed = Job.objects.claim(
                "default",
                limit=limit,
                worker_id=worker.worker_id,
                lease_token=token,
                lease=OVER if over else HOUR,
                connection=session,
            )
            self.fences += [job.fence for job in claimed]
            ranks = {job.job_id: (job.rank, job.position, job.job_id) for job in claimed}
            return sorted(ranks, key=ranks.__getitem__)

        self._do(
            "claim", me, act, lambda: self.world.claim(me, limit, worker.worker_id, token, lease_over=over)
        )

    # --- what holds fences

    def _is_any_running(self) -> bool:
        return self._some(lambda row: row.status == RUNNING)

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, proof=proofs, over=switches)
    def renew(self, me: int, jobs: list[int], proof: str, over: bool) -> None:
        fences = self._fences(me, jobs, proof)
        lease = OVER if over else HOUR

        def predict() -> Step:
            step = self.world.fenced(me, fences, lambda fence, row: replace(row, lease_over=over))
            step.answer = {
                fence: Renewal(said.result, said.result == DONE and self._is_asked(step, fence))
                for fence, said in step.answer.items()
            }
            return step

        self._do("renew", me, lambda s: Job.objects.renew(fences, lease=lease, connection=s), predict)

    def _is_asked(self, step: Step, fence: Fence) -> bool:
        row = step.changed.get(fence.job_id)
        held = row is not None and (row.version, row.token) == (fence.lease_version, fence.lease_token)
        return held and row is not None and row.asked_to_cancel

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, proof=proofs, done=st.integers(1, 9))
    def report_progress(self, me: int, jobs: list[int], proof: str, done: int) -> None:
        reports = [(fence, f'{{"done": {done}}}') for fence in self._fences(me, jobs, proof)]

        def predict() -> Step:
            step = self.world.fenced(
                me, dict(reports), lambda fence, row: replace(row, progress={"done": done})
            )
            return Step(sorted(step.changed), step.changed)

        self._do(
            "report_progress",
            me,
            lambda s: sorted(Job.objects.report_progress(reports, connection=s)),
            predict,
        )

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, proof=proofs, worker=workers)
    def complete(self, me: int, jobs: list[int], proof: str, worker: WorkerIdentity) -> None:
        settled = [completed(fence) for fence in self._fences(me, jobs, proof)]
        self._settle(me, "complete", settled, worker, complete)

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, proof=proofs, worker=workers)
    def consume(self, me: int, jobs: list[int], proof: str, worker: WorkerIdentity) -> None:
        settled = [Consumed(fence) for fence in self._fences(me, jobs, proof)]
        self._do(
            "consume",
            me,
            lambda s: Job.objects.consume(settled, worker=worker, connection=s),
            lambda: self.world.consume(me, [consumed.fence for consumed in settled]),
        )

    @precondition(lambda self: self._is_any_running() and self._is_idle())
    @rule(me=sessions, job=picks, proof=proofs, name=st.sampled_from(["charge", "ship"]))
    def record_step(self, me: int, job: int, proof: str, name: str) -> None:
        # Not inside an open transaction: two of them may share the lock, which this model does not know.
        me = 1 - me if self.world.sessions[me].open else me
        fence = self._fences(me, [job], proof)[0]
        self._do(
            "record_step",
            me,
            lambda s: JobStep.objects.record(fence, name, "1", connection=s),
            lambda: self.world.record_step(me, fence, name),
        )

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, proof=proofs, worker=workers, now=switches, final=switches)
    def fail(
        self, me: int, jobs: list[int], proof: str, worker: WorkerIdentity, now: bool, final: bool
    ) -> None:
        delay = 0.0 if now else HOUR
        settled = [failed(fence, delay=delay, final=final) for fence in self._fences(me, jobs, proof)]
        self._settle(me, "fail", settled, worker, lambda fence, row: row.failed(FAILED, final=final, due=now))

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, proof=proofs, worker=workers, now=switches)
    def snooze(self, me: int, jobs: list[int], proof: str, worker: WorkerIdentity, now: bool) -> None:
        settled = [snoozed(fence, delay=0.0 if now else HOUR) for fence in self._fences(me, jobs, proof)]
        self._settle(
            me, "snooze", settled, worker, lambda fence, row: row.put_back(SNOOZED, SCHEDULED, due=now)
        )

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, proof=proofs, worker=workers, started=switches)
    def release(self, me: int, jobs: list[int], proof: str, worker: WorkerIdentity, started: bool) -> None:
        ago = 2.0 if started else None
        settled = [released(fence, started_ago=ago) for fence in self._fences(me, jobs, proof)]
        outcome = RELEASED if started else None
        self._settle(me, "release", settled, worker, lambda fence, row: row.put_back(outcome, READY))

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, proof=proofs, worker=workers)
    def cancel_held(self, me: int, jobs: list[int], proof: str, worker: WorkerIdentity) -> None:
        settled: list[Cancelled] = [cancelled(fence) for fence in self._fences(me, jobs, proof)]
        self._settle(me, "cancel_held", settled, worker, lambda fence, row: row.ended(CANCELLED, CANCELLED))

    def _settle(
        self,
        me: int,
        verb: str,
        settled: list[Any],
        worker: WorkerIdentity,
        become: Callable[[Fence, Row], Row],
    ) -> None:
        fences = [settlement.fence for settlement in settled]
        self._do(
            verb,
            me,
            lambda s: getattr(Job.objects, verb)(settled, worker=worker, connection=s),
            lambda: self.world.fenced(me, fences, become),
        )

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, worker=workers)
    def settle_what_cannot_bestored_rows(self, me: int, jobs: list[int], worker: WorkerIdentity) -> None:
        """A batch that fails as a whole leaves nothing behind; its transaction is over."""
        fences = self._fences(me, jobs, HELD)
        try:
            Job.objects.complete(
                [completed(fence, return_value="no JSON") for fence in fences],
                worker=worker,
                connection=self.real[me],
            )
        except psycopg.errors.InvalidTextRepresentation:
            self._roll_back(me)
            return
        held = self.world.fenced(me, fences, lambda fence, row: row).changed
        assert not held, "an outcome that is no JSON was stored"

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, worker=workers)
    def release_unheld(self, me: int, jobs: list[int], worker: WorkerIdentity) -> None:
        held = self._ids(me, jobs, RUNNING)
        self._do(
            "release_unheld",
            me,
            lambda s: sorted(
                Job.objects.release_unheld(held, worker_id=worker.worker_id, within=HOUR, connection=s)
            ),
            lambda: self.world.release_unheld(me, worker.worker_id, held),
        )

    # --- rescue

    @precondition(lambda self: self._some(lambda row: row.lease_over))
    @rule(me=sessions)
    def rescue(self, me: int) -> None:
        self._do("rescue", me, rescue_all, lambda: self.world.rescue(me, self.world.expired(me)))

    @precondition(_is_any_running)
    @rule(me=sessions, jobs=batches, proof=proofs, worker=workers, started=switches)
    def rescue_worker(
        self, me: int, jobs: list[int], proof: str, worker: WorkerIdentity, started: bool
    ) -> None:
        ago = 2.0 if started else None
        lost: list[Released] = [released(fence, started_ago=ago) for fence in self._fences(me, jobs, proof)]

        def act(session: psycopg.Connection) -> list[tuple[int, str, int]]:
            rows = Job.objects.rescue_worker(lost, worker=worker, jitter=0.0, connection=session)
            return sorted((row.job_id, row.status, row.attempts) for row in rows)

        self._do("rescue_worker", me, act, lambda: self.world.rescue_worker(me, lost))

    # --- cancel, retry, prune

    @rule(me=sessions, jobs=batches, status=st.sampled_from(sorted(LIVE)))
    def cancel(self, me: int, jobs: list[int], status: str) -> None:
        ids = self._ids(me, jobs, status)

        def act(session: psycopg.Connection) -> tuple[list[int], ...]:
            report = Job.objects.cancel(ids, connection=session)
            return report.cancelled, report.requested, report.skipped

        self._do("cancel", me, act, lambda: self.world.cancel(me, ids))

    @precondition(lambda self: self._some(lambda row: row.status in (DEAD, CANCELLED)))
    @rule(me=sessions, jobs=batches, status=st.sampled_from([DEAD, "cancelled"]))
    def retry(self, me: int, jobs: list[int], status: str) -> None:
        ids = self._ids(me, jobs, status)

        def act(session: psycopg.Connection) -> tuple[list[int], ...]:
            report = Job.objects.retry(ids, connection=session)
            return report.retried, report.skipped, report.conflicts

        self._do("retry", me, act, lambda: self.world.retry(me, ids))

    @precondition(lambda self: self._some(lambda row: row.status in ENDED))
    @rule(me=sessions, status=st.sampled_from(STATUSES))
    def prune(self, me: int, status: str) -> None:
        self._do(
            "prune",
            me,
            prune_all(status),
            lambda: self.world.prune(me, status, self.world.prunable(me, status)),
        )

    @precondition(lambda self: self._some(lambda row: row.status in ENDED))
    @rule(me=sessions, status=st.sampled_from(STATUSES))
    def prune_nothing_that_is_young(self, me: int, status: str) -> None:
        assert Job.objects.prune(status, age=HOUR, limit=100, connection=self.real[me]) == []

    # --- what must hold after every step

    @invariant()
    def rows_are_the_models(self) -> None:
        type(self).place.steps += 1
        compare(stored_rows(self.observer), told_rows(self.world.committed), "committed")
        for me in HELD_OPEN:
            if self.world.sessions[me].open:
                where = f"in the transaction of session {me}"
                compare(stored_rows(self.real[me]), told_rows(self.world.view(me)), where)


@contextmanager
def machine_on(url: str) -> Iterator[type[VerbsAndModel]]:
    """Give the class of machines that work on this database, where the slow session finds its clock."""
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("CREATE SCHEMA pausing")
        session.execute(SLOW_CLOCK)
        try:
            yield type("VerbsAndModel", (VerbsAndModel,), {"place": Place(url)})
        finally:
            session.execute("DROP SCHEMA pausing CASCADE")


def _new(**values: Any) -> NewJob:
    return NewJob(**({"task_path": "tests.tasks.ok", "backoff_cap": HOUR} | values))
