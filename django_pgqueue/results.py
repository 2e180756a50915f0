"""From rows to ``TaskResult``: the Tasks API's view of a job.

scheduled and ready are READY, running is RUNNING, succeeded is SUCCESSFUL, dead and cancelled are
FAILED (cancelled with an error that says so).  Results are read on the write alias: a replica may
not have the row yet.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.utils.module_loading import import_string

from . import states
from .compat import Task, TaskError, TaskResult, TaskResultDoesNotExist, TaskResultStatus
from .exceptions import UnknownTask
from .models import Attempt, Job, JobState
from .tasks import PgQueueTask

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


@lru_cache(maxsize=4096)
def resolve_task(path: str) -> Task:
    """Return the task at a dotted path.

    Raises UnknownTask when this code has no such module or attribute or when it is not a task;
    whatever an existing module raises at its import goes through.
    """
    module_path = path.rpartition(".")[0]
    if not module_path:
        raise UnknownTask(f"no worker knows this task: {path} is not a dotted path")
    try:
        found = import_string(path)
    except ImportError as error:
        missing = getattr(error, "name", None)
        belongs = missing is None or module_path == missing or module_path.startswith(f"{missing}.")
        if belongs and not isinstance(error.__cause__, (ImportError, type(None))):
            belongs = isinstance(error.__cause__, AttributeError)
        if not belongs:
            raise
        raise UnknownTask(f"no worker knows this task: {path} ({error})") from None
    if not isinstance(found, Task):
        raise UnknownTask(f"no worker knows this task: {path} is a {type(found).__name__}, not a task")
    return found


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


def task_of(job: Job) -> Task:
    """Return the task of a job with the options of its enqueueing.

    A path that this code does not have gives a stand-in, so that a result can be read anywhere.
    """
    try:
        task = resolve_task(job.task_path)
    except Exception:  # noqa: BLE001 - a module may raise anything at import; the result is still readable
        return stand_in(job)
    return bound_task(task, job.backend, job.queue, job.priority, job.run_after)


def bound_task(task: Task, backend: str, queue: str, priority: int, run_after: datetime | None) -> Task:
    """Return ``task`` with the options that a job was enqueued with; not validated again."""
    wanted = {"backend": backend, "queue_name": queue, "priority": priority, "run_after": run_after}
    if all(getattr(task, name) == value for name, value in wanted.items()):
        return task
    bound: Task = object.__new__(type(task))
    for name in type(task).__dataclass_fields__:
        object.__setattr__(bound, name, getattr(task, name))
    for name, value in wanted.items():
        object.__setattr__(bound, name, value)
    return bound


def stand_in(job: Job) -> Task:
    """Return a task that has a path but no code; calling it raises UnknownTask."""

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise UnknownTask(f"no worker knows this task: {job.task_path}")

    missing.__module__, _, missing.__qualname__ = job.task_path.rpartition(".")
    missing.__name__ = missing.__qualname__
    shell = object.__new__(PgQueueTask)
    for name, dataclass_field in PgQueueTask.__dataclass_fields__.items():
        default = dataclass_field.default
        object.__setattr__(shell, name, {} if name == "metadata" else default)
    values = {"func": missing, "takes_context": False, "backend": job.backend, "queue_name": job.queue}
    for name, value in (values | {"priority": job.priority, "run_after": job.run_after}).items():
        object.__setattr__(shell, name, value)
    return shell
