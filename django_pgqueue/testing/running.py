"""``run_jobs``: a worker without processes and threads, inside the test's own transaction.

Each job goes the way that it goes in a worker: claimed, run and settled by the manager's verbs, with
the signals in between.  Only the surroundings differ: see ``transactions``.
"""

import time
from collections.abc import Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any
from unittest import mock
from uuid import uuid4

from asgiref.sync import async_to_sync, sync_to_async
from django.db import DataError, IntegrityError, ProgrammingError, transaction

from .. import announcements, leases, states, stepping
from .. import execution as pipeline
from ..backend import PgQueueBackend
from ..exceptions import QueueError
from ..models import Job
from ..noting import noting
from ..records import DONE, LOCKED, Answer, Claimed
from ..results import get_result
from ..retries import Backoff
from ..worker import atomic, unknown
from ..worker.config import new_identity
from ..worker.outcomes import log_outcome
from . import crashes
from .aliases import connection_of, queue_backend, queues_of
from .inline import InlineExecution
from .reports import JobRun, RanJob
from .steps import InlineSteps
from .transactions import Contained, call_as_worker, contained

LIMIT = 1000
BATCH = 1000
_ROW_ERRORS = (DataError, IntegrityError, ProgrammingError)


class TooManyJobs(AssertionError):
    """A thousand attempts ran and more jobs are ready: some task seems to enqueue itself for ever."""


def run_jobs(
    *,
    backend: str = "default",
    queues: str | Sequence[str] | None = None,
    max_jobs: int | None = None,
    raise_errors: bool = False,
) -> JobRun:
    """Run the jobs of an alias that are due, and those that they enqueue, on this thread.

    What becomes due later (a retry, a snooze, a ``run_after``) waits for ``forward_time`` and the next
    call.  A retry comes due when its backoff's longest delay has passed: the jitter is left out.
    ``queues`` are served strictly in order; the alias's own by default.  ``max_jobs`` stops after so many
    attempts.  ``raise_errors`` raises the first exception that a task raised, after it was recorded.

    Raises TooManyJobs after a thousand attempts when ``max_jobs`` is not given.
    """
    chosen = queue_backend(backend)
    worker = _InlineWorker(chosen, queues_of(chosen, queues))
    options = chosen.settings
    with (
        mock.patch.object(Backoff, "delay", Backoff.ceiling),
        noting(options.log_tail_bytes, options.log_tail_level),
    ):
        return JobRun(worker.run(max_jobs, raise_errors))


async def arun_jobs(**options: Any) -> JobRun:
    """See run_jobs(); for tests that are coroutines."""
    return await sync_to_async(run_jobs, thread_sensitive=True)(**options)


class _InlineWorker:
    """Does in turn what the keeper and a child of a real worker do."""

    def __init__(self, backend: PgQueueBackend, queues: tuple[str, ...]) -> None:
        self.options = backend.settings
        self.queues = queues
        self.connection = connection_of(backend)
        self.identity = new_identity()

    def run(self, max_jobs: int | None, raise_errors: bool) -> list[RanJob]:
        ran: list[RanJob] = []
        self._keep()
        while (max_jobs is None or len(ran) < max_jobs) and (job := self._claim()):
            ran.append(self._run(job))
            error = ran[-1].error
            if raise_errors and error is not None:
                error.add_note(f"raised in run_jobs() by {ran[-1]}")
                raise error
            if max_jobs is None and len(ran) == LIMIT:
                self._refuse_more()
        return ran

    def _refuse_more(self) -> None:
        ready = set(Job.objects.ready_queues(connection=self.connection))
        if ready & (set(self.queues) or ready):
            raise TooManyJobs(
                f"run_jobs() has run {LIMIT} attempts, and more jobs are ready. Does a task enqueue itself "
                "without end? max_jobs= runs a chosen number and stops."
            )

    def _keep(self) -> None:
        # Once, before the first job: a retry with no delay must not run in the run that failed it.
        while len(Job.objects.promote(limit=BATCH, connection=self.connection)) == BATCH:
            pass
        Job.objects.rescue(limit=BATCH, server_up=0.0, jitter=0.0, connection=self.connection)

    def _claim(self) -> Claimed | None:
        for queue in self.queues or Job.objects.ready_queues(connection=self.connection):
            jobs = Job.objects.claim(
                queue,
                limit=1,
                worker_id=self.identity.worker_id,
                lease_token=uuid4(),
                lease=self.options.lease,
                connection=self.connection,
            )
            if jobs:
                return jobs[0]
        return None

    # --- one job

    def _run(self, job: Claimed) -> RanJob:
        execution = self._execution(job)
        steps = InlineSteps(execution, self.connection)
        with crashes.running(job.task_path) as running, stepping.kept_in(steps):
            value, error = call_as_worker(lambda: _attempt(execution), execution)
            execution.finished = max(time.monotonic(), execution.started or 0.0)
            contained(lambda: crashes.reach("end"))
        execution.store_progress()
        steps.store()
        if running.died_at:
            return self._bury(execution, running.died_at)
        if error is None and pipeline.is_atomic(execution):
            execution.decision = value
        elif error is None:
            execution.decision = pipeline.decide_return(execution, value)
        else:
            execution.decision = pipeline.decide_raise(execution, error)
        return self._settle(execution)

    def _execution(self, job: Claimed) -> InlineExecution:
        past = Job.objects.history([job.job_id], connection=self.connection) if job.attempts else {}
        now = time.monotonic()
        execution = InlineExecution(job, self.identity.worker_id, now, tuple(past.get(job.job_id, ())))
        execution.watch(self.connection, self.options.lease)
        execution.started = now
        execution.deadline = now + job.timeout if job.timeout else 0.0
        return execution

    def _settle(self, execution: InlineExecution) -> RanJob:
        unknown.decide([execution], patience=self.options.unknown_task_patience, connection=self.connection)
        try:
            answer = execution.answer or self._write(execution)
        except _ROW_ERRORS as error:
            execution.error = error
            execution.decision = pipeline.failure(execution, error, final=True)
            answer = self._write(execution)
        if answer.result == LOCKED:
            raise QueueError(
                f"another session has locked job {execution.job.job_id}; its outcome is unwritten"
            )
        if answer.result != DONE:
            return self._report(execution, states.LOST, answer.status)
        log_outcome(execution, answer)
        result = pipeline.finished_result(execution, answer.status or "")
        if result is not None:
            call_as_worker(lambda: _announce_end(execution), execution)
        outcome = _OUTCOMES[type(execution.decision)]
        failed = isinstance(execution.decision, (pipeline.Fail, pipeline.Unknown))
        return self._report(execution, outcome, answer.status, execution.error if failed else None)

    def _write(self, execution: InlineExecution) -> Answer:
        now = max(time.monotonic(), execution.finished or 0.0)
        settled = pipeline.settlement(execution, now)
        with transaction.atomic(using=self.connection.alias):
            return Job.objects.settle([settled], worker=self.identity, connection=self.connection)[0]

    def _bury(self, execution: InlineExecution, place: str) -> RanJob:
        held = [(execution.fence, execution.started or 1.0)]
        reason = f"died in a test: {place}"
        rescued = leases.give_back(
            held, worker=self.identity, reason=reason, jitter=0.0, connection=self.connection
        )
        self.identity = new_identity()
        return self._report(execution, states.LOST, rescued[0].status if rescued else None)

    def _report(
        self,
        execution: InlineExecution,
        outcome: str,
        status: str | None,
        error: BaseException | None = None,
    ) -> RanJob:
        job = execution.job
        result = get_result(job.job_id, alias=job.backend, database=self.options.database)
        return RanJob(
            job.job_id, job.task_path, job.queue, execution.number, outcome, status or "", error, result
        )


_OUTCOMES: Mapping[type[Any], str] = {
    pipeline.Complete: states.SUCCEEDED,
    pipeline.Fail: states.FAILED,
    pipeline.PutOff: states.SNOOZED,
    pipeline.Unknown: states.SNOOZED,
    pipeline.End: states.CANCELLED,
}


def _attempt(execution: InlineExecution) -> Any:
    pipeline.prepare(execution)
    _announce("task_started", execution)
    crashes.reach("start")
    if not iscoroutinefunction(execution.task.func):  # type: ignore[union-attr]  # prepared
        return (
            atomic.run(execution, lambda: None) if pipeline.is_atomic(execution) else pipeline.call(execution)
        )
    value, error = async_to_sync(_awaited)(execution)
    if error is not None:
        raise error
    return value


async def _awaited(execution: InlineExecution) -> Contained:
    # Here, and not outside: SystemExit and its like would end the event loop.
    try:
        return await pipeline.call(execution), None
    except BaseException as error:  # noqa: BLE001 - raised again on the caller's thread
        return None, error


def _announce(name: str, execution: InlineExecution) -> None:
    backend = type(execution.task.get_backend())  # type: ignore[union-attr]  # prepared
    announcements.send(name, sender=backend, task_result=execution.result)


def _announce_end(execution: InlineExecution) -> None:
    if execution.error is None:
        _announce("task_finished", execution)
        return
    try:  # Django's own receiver logs the exception that is being handled
        raise execution.error
    except BaseException:  # noqa: BLE001
        _announce("task_finished", execution)
