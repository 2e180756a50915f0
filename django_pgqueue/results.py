"""From rows to ``TaskResult``: the Tasks API's view of a job.

scheduled and ready are READY, running is RUNNING, succeeded is SUCCESSFUL, dead and cancelled are
FAILED (cancelled with an error that says so).  Results are read on the write alias: a replica may
not have the row yet.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from . import states
from .compat import TaskError, TaskResult, TaskResultDoesNotExist, TaskResultStatus
from .models import Attempt, JobState
from .resolving import task_of

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


def get_result(result_id: Any, *, alias: str, database: str) -> TaskResult:
    """Return the result with this id; raises TaskResultDoesNotExist."""
    job_id = job_id_of(result_id)
    state = (
        JobState.objects.using(database)
        .select_related("job")
        .filter(job_id=job_id, job__backend=alias)
        .first()
    )
    if state is None:
        raise TaskResultDoesNotExist(f"there is no job {job_id} of the backend {alias!r}")
    attempts = Attempt.objects.using(database).filter(job_id=job_id).order_by("number")
    return build_result(state, list(attempts))


def build_result(state: JobState, attempts: Sequence[Attempt]) -> TaskResult:
    """Return the result of a job from its rows."""
    job = state.job
    ended = state.status in states.ENDED
    running_since = [state.claimed_at] if state.status == states.RUNNING and state.claimed_at else []
    starts = [attempt.started_at for attempt in attempts] + running_since
    result = new_result(
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


_ATTRIBUTES = tuple(TaskResult.__dataclass_fields__)


def new_result(**values: Any) -> TaskResult:
    """Return a TaskResult from values that come out of JSON columns.

    Its constructor walks through all arguments to make them plain; these are plain already.
    """
    result = object.__new__(TaskResult)
    values["_return_value"] = None
    for name in _ATTRIBUTES:
        object.__setattr__(result, name, values[name])
    return result


def errors_of(attempts: Iterable[Attempt], state: JobState) -> list[TaskError]:
    """Return the errors of failed and lost attempts, oldest first; a cancelled job has one more."""
    errors = [
        TaskError(exception_class_path=a.exception_class, traceback=a.traceback or a.message)
        for a in attempts
        if a.outcome in _ERROR_OUTCOMES
    ]
    if state.status == states.CANCELLED:
        errors.append(TaskError(exception_class_path=CANCELLED_PATH, traceback="The job was cancelled."))
    return errors
