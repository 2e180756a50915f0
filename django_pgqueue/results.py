"""From rows to ``TaskResult``: the Tasks API's view of a job.

scheduled and ready are READY, running is RUNNING, succeeded is SUCCESSFUL, dead and cancelled are
FAILED (cancelled with an error that says so).  Results are read on the write alias: a replica may
not have the row yet.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar, cast

from asgiref.sync import sync_to_async
from django.db import connections

from . import states
from .compat import (
    TASK_REFRESH_ATTRS,
    AnyResult,
    AnyTask,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from .models import Attempt, JobState
from .querying import ROWS_PER_STATEMENT, chunks, queue_connection
from .resolving import task_of
from .waiting import wait_until_ended

STATUS = {
    states.SCHEDULED: TaskResultStatus.READY,
    states.READY: TaskResultStatus.READY,
    states.RUNNING: TaskResultStatus.RUNNING,
    states.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    states.DEAD: TaskResultStatus.FAILED,
    states.CANCELLED: TaskResultStatus.FAILED,
}
CANCELLED_PATH = "django_pgqueue.exceptions.Cancel"
_ERROR_OUTCOMES = (states.FAILED, states.LOST)
_MAX_ID = 2**63 - 1


def job_id_of(result_id: Any) -> int:
    """Return the job id in a result id; raises TaskResultDoesNotExist for anything else."""
    text = str(result_id)
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and 0 < int(text) <= _MAX_ID):
        raise TaskResultDoesNotExist(f"{result_id!r} is not the id of a result of this backend")
    return int(text)


def get_result(result_id: Any, *, alias: str, database: str) -> AnyResult:
    """Return the result with this id; raises TaskResultDoesNotExist."""
    job_id = job_id_of(result_id)
    found = get_results([job_id], alias=alias, database=database)
    if not found:
        raise TaskResultDoesNotExist(f"there is no job {job_id} of the backend {alias!r}")
    return found[job_id]


def get_results(job_ids: Collection[int], *, alias: str, database: str) -> dict[int, AnyResult]:
    """Return the results of those of these jobs that are there; two statements for a thousand."""
    queue_connection(database)  # a readable error where it is not PostgreSQL
    results: dict[int, AnyResult] = {}
    for chunk in chunks(list(job_ids), ROWS_PER_STATEMENT):
        states_now = JobState.objects.using(database).select_related("job")
        there = {state.pk: state for state in states_now.filter(job_id__in=chunk, job__backend=alias)}
        ended: dict[int, list[Attempt]] = {job_id: [] for job_id in there}
        attempts = Attempt.objects.using(database).filter(job_id__in=list(there))
        for attempt in attempts.order_by("job_id", "number") if there else ():
            # One that ended since the state was read would be counted twice.
            if attempt.number <= there[attempt.job_id].attempts:
                ended[attempt.job_id].append(attempt)
        results |= {job_id: build_result(state, ended[job_id]) for job_id, state in there.items()}
    return results


def build_result(state: JobState, attempts: Sequence[Attempt]) -> AnyResult:
    """Return the result of a job from its rows."""
    job = state.job
    ended = state.status in states.ENDED
    running_since = [state.claimed_at] if state.status == states.RUNNING and state.claimed_at else []
    starts = [attempt.started_at for attempt in attempts] + running_since
    result = new_result(
        progress=state.progress,
        task=task_of(job),
        id=str(job.pk),
        status=STATUS[state.status],
        enqueued_at=job.enqueued_at,
        started_at=starts[0] if starts else None,
        finished_at=state.finished_at if ended else None,
        last_attempted_at=starts[-1] if starts else None,
        args=job.args,
        kwargs=job.kwargs,
        backend=job.backend,
        errors=errors_of(attempts, state),
        worker_ids=[a.worker_id for a in attempts]
        + ([state.worker_id] if running_since and state.worker_id else []),
    )
    if state.status == states.SUCCEEDED and attempts:
        object.__setattr__(result, "_return_value", attempts[-1].return_value)
    return result


class Progress(NamedTuple):
    """How far a task says it is; ``total`` is None when it does not know."""

    done: float
    total: float | None
    message: str


class JobError(TaskError):
    """A TaskError that also finds an exception defined inside a class, as ``Model.DoesNotExist`` is."""

    __slots__ = ()

    @property
    def exception_class(self) -> type[BaseException]:
        """The class; raises ImportError when this process lacks it, ValueError when it is no exception."""
        try:
            return super().exception_class
        except ImportError:
            found = _nested_class(self.exception_class_path)
            if found is None:
                raise
            return found


def _nested_class(path: str) -> type[BaseException] | None:
    parts = path.split(".")
    for end in range(len(parts) - 2, 0, -1):
        try:
            found: Any = import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for name in parts[end:]:
            found = getattr(found, name, None)
        return found if isinstance(found, type) and issubclass(found, BaseException) else None
    return None


P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:

    class _ResultBase(TaskResult[P, R], Generic[P, R]):
        """Django's TaskResult as its stubs see it; typed without them, too."""

        @property
        def return_value(self) -> R: ...

else:

    class _ResultBase(TaskResult, Generic[P, R]):
        """Django's TaskResult, made generic."""

        __slots__ = ()


class JobResult(_ResultBase[P, R]):
    """A TaskResult that can be waited for, and that knows how far its task is."""

    _progress: Any = None

    @property
    def progress(self) -> Progress | None:
        """What the task last reported, as of the last refresh."""
        return Progress(**self._progress) if self._progress else None

    def refresh(self) -> None:
        """Read the job again."""
        fresh = self.task.get_backend().get_result(self.id)
        for name in (*TASK_REFRESH_ATTRS, "_progress"):
            object.__setattr__(self, name, getattr(fresh, name))

    async def arefresh(self) -> None:
        """See refresh()."""
        await sync_to_async(self.refresh, thread_sensitive=True)()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the job has ended, at most ``timeout`` seconds, then refresh; True when it has ended.

        Raises RuntimeError inside a transaction: what it enqueued is not visible to any worker yet.
        """
        backend: Any = self.task.get_backend()
        if connections[backend.settings.database].in_atomic_block:
            raise RuntimeError("wait() inside a transaction would wait for itself; wait after the commit.")
        ended = self._block(timeout)
        self.refresh()
        return ended

    async def async_wait(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - the thread ends by it
        """See wait(); the event loop goes on meanwhile, a thread waits."""
        ended = await sync_to_async(self._block, thread_sensitive=False)(timeout)
        await self.arefresh()
        return ended

    def _block(self, timeout: float | None) -> bool:
        options = cast(Any, self.task.get_backend()).settings
        return wait_until_ended(
            int(self.id), database=options.database, timeout=timeout, notify=options.notify
        )


RESULT_FIELDS = (
    *("task", "id", "status", "enqueued_at", "started_at", "last_attempted_at", "finished_at"),
    *("args", "kwargs", "backend", "errors", "worker_ids", "_return_value"),
)
_PUT = [getattr(TaskResult, name).__set__ for name in RESULT_FIELDS]
"""How each field is set past the constructor of a frozen class."""


def new_result(
    *,
    task: AnyTask,
    id: str,
    status: TaskResultStatus,
    enqueued_at: datetime | None,
    started_at: datetime | None,
    last_attempted_at: datetime | None,
    finished_at: datetime | None,
    args: list[Any],
    kwargs: dict[str, Any],
    backend: str,
    errors: list[JobError],
    worker_ids: list[str],
    progress: Any = None,
) -> JobResult[..., Any]:
    """Return a result from values that come out of JSON columns.

    Its constructor walks through all arguments to make them plain; these are plain already.
    """
    result: JobResult[..., Any] = object.__new__(JobResult)
    times = (enqueued_at, started_at, last_attempted_at, finished_at)
    values = (task, id, status, *times, args, kwargs, backend, errors, worker_ids, None)
    for put, value in zip(_PUT, values, strict=True):
        put(result, value)
    if progress is not None:
        object.__setattr__(result, "_progress", progress)
    return result


def cancellation(reason: str) -> JobError:
    """Return the error of a cancelled job; ``reason`` is what its last attempt said, or empty."""
    said = f": {reason}" if reason else "."
    return JobError(exception_class_path=CANCELLED_PATH, traceback=f"The job was cancelled{said}")


def errors_of(attempts: Sequence[Attempt], state: JobState) -> list[JobError]:
    """Return the errors of failed and lost attempts, oldest first; a cancelled job has one more."""
    errors = [
        JobError(exception_class_path=a.exception_class, traceback=a.traceback or a.message)
        for a in attempts
        if a.outcome in _ERROR_OUTCOMES
    ]
    if state.status == states.CANCELLED:
        # An attempt that ended earlier says why it was cancelled then, before somebody retried the job.
        ended_it = attempts and attempts[-1].outcome == states.CANCELLED
        ended_it = ended_it and attempts[-1].finished_at == state.finished_at
        errors.append(cancellation(attempts[-1].message if ended_it else ""))
    return errors
