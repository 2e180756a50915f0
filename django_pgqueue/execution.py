"""Running one job, as a pipeline: resolve -> call -> decide -> (elsewhere) settle.

``decide`` is pure: it looks at what the task returned or raised and says what becomes of the job.
Nothing here writes to the database; the settlement that comes out is written later, behind the fence.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from inspect import iscoroutinefunction
from typing import Any

from django.conf import settings
from django.utils.timezone import get_default_timezone, is_naive, make_naive

from . import states
from .compat import AnyResult, AnyTask, TaskResultStatus, normalize_json
from .conf import LEAST_RESULT_LIMIT
from .context import JobContext
from .errors_as_text import class_path, fingerprint, render_traceback
from .exceptions import Cancel, Retry, Snooze, TaskTimeout, UnknownTask, UnstorableResult
from .noting import Notebook, notes_of
from .records import Answer, Cancelled, Claimed, Completed, Failed, Fence, PastAttempt, Settlement, Snoozed
from .resolving import bound_task, resolve_task
from .results import JobError, cancellation, new_result
from .retries import Backoff, storable_delay
from .storable import clean_text, dump_result, safe_str

UNKNOWN_TASK = "django_pgqueue.exceptions.UnknownTask"


@dataclass(slots=True)
class Execution:
    """One attempt in the hands of a worker.  Times are of ``time.monotonic()``, in seconds."""

    job: Claimed
    worker_id: str
    claimed: float
    past: tuple[PastAttempt, ...] = ()
    started: float | None = None
    finished: float | None = None
    task: AnyTask | None = None
    cancel_requested: bool = False
    lease_lost: bool = False
    deadline: float = 0.0
    interrupted: bool = False
    error: BaseException | None = None
    decision: "Decision | None" = None
    entry: int = -1
    progress: str | None = None
    row_locked: bool = False
    notebook: Notebook | None = None
    answer: Answer | None = None
    report: Callable[["Execution"], None] = lambda execution: None
    fence: Fence = field(init=False)
    _result: AnyResult | None = None

    def __post_init__(self) -> None:
        """Make the proof of the claim once; it is asked for at every step."""
        self.fence = self.job.fence

    @property
    def number(self) -> int:
        """The number of this attempt, from 1."""
        return self.job.attempts + 1

    @property
    def result(self) -> AnyResult | None:
        """The result that the task and the signals see; made when first asked for, None without a task."""
        if self._result is None and self.task is not None:
            self._result = running_result(self, self.task)
        return self._result


# --- resolve ---------------------------------------------------------------------------------------


def prepare(execution: Execution) -> None:
    """Resolve the task; raises UnknownTask, or whatever the task's module raises at its import."""
    job = execution.job
    if job.backend not in settings.TASKS:
        raise UnknownTask(f"no worker knows this task: TASKS has no alias {job.backend!r}")
    run_after = project_time(job.run_after) if job.run_after else None
    execution.task = bound_task(resolve_task(job.task_path), job.backend, job.queue, job.priority, run_after)


def is_coroutine(execution: Execution) -> bool:
    """Return whether the job's task is a coroutine function, as far as this code knows it."""
    try:
        return iscoroutinefunction(resolve_task(execution.job.task_path).func)
    except BaseException:  # noqa: BLE001 - whatever its module raises, the attempt itself will tell
        return False


def running_result(execution: Execution, task: AnyTask) -> AnyResult:
    """Return the TaskResult of a job that runs now."""
    job = execution.job
    return new_result(
        task=task,
        id=str(job.job_id),
        status=TaskResultStatus.RUNNING,
        enqueued_at=project_time(job.enqueued_at),
        started_at=project_time(execution.past[0].started_at if execution.past else job.claimed_at),
        finished_at=None,
        last_attempted_at=project_time(job.claimed_at),
        args=json.loads(job.args),
        kwargs=json.loads(job.kwargs),
        backend=job.backend,
        errors=[
            JobError(exception_class_path=past.exception_class, traceback=past.traceback or past.message)
            for past in execution.past
            if past.outcome in states.CHARGED
        ],
        worker_ids=[*(past.worker_id for past in execution.past), execution.worker_id],
    )


def project_time(moment: datetime) -> datetime:
    """Return a database time as the project sees times: naive, in its own zone, under USE_TZ=False.

    A worker's own connection always gives aware times, Django's gives them as the project sees them.
    """
    return moment if settings.USE_TZ or is_naive(moment) else make_naive(moment, get_default_timezone())


def is_atomic(execution: Execution) -> bool:
    """Return whether the task and the completion of its job are to commit together."""
    return bool(getattr(execution.task, "atomic", False))


# --- call ------------------------------------------------------------------------------------------


def call(execution: Execution) -> Any:
    """Run the task's function (a coroutine function gives its coroutine) and return what it returns."""
    assert execution.task is not None  # noqa: S101 - prepare() came first
    job = execution.job
    args = json.loads(job.args)
    kwargs = json.loads(job.kwargs) if job.kwargs != "{}" else {}
    if execution.task.takes_context:
        return execution.task.func(JobContext(execution), *args, **kwargs)
    return execution.task.func(*args, **kwargs)


# --- decide ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Complete:
    """The job succeeded; JSON text of the return value and the value itself."""

    return_value: str
    value: Any


@dataclass(frozen=True, slots=True)
class Fail:
    """The attempt failed; ``final`` ends the job whatever its budget, else it waits ``delay`` seconds."""

    delay: float
    final: bool
    exception_class: str
    message: str
    traceback: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class PutOff:
    """The job is snoozed for ``delay`` seconds."""

    delay: float
    message: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """This worker does not know the task; a newer one may, in ``delay`` seconds."""

    message: str
    delay: float = 5.0


@dataclass(frozen=True, slots=True)
class End:
    """The job ends as cancelled."""

    message: str


Decision = Complete | Fail | PutOff | Unknown | End
NOTHING = Complete("null", None)
"""What most tasks return."""


def decide_return(execution: Execution, value: Any) -> Decision:
    """What becomes of a job whose task returned ``value``.

    A value that JSON cannot hold, or one too large, ends the job: the side effect has happened, and running
    the task again would repeat it.
    """
    if value is None:
        return NOTHING
    try:
        plain = normalize_json(value)
        text = dump_result(plain)
        if len(text) * 4 > LEAST_RESULT_LIMIT:
            check_size(text, execution.task)
        return Complete(text, plain)
    except (TypeError, ValueError, RecursionError) as error:
        # A type that JSON does not have is a TypeError with Django's own backends too.
        refused: type[Exception] = TypeError if isinstance(error, TypeError) else UnstorableResult
        kind = type(value).__name__
        refusal = refused(f"the return value (a {kind}) cannot be stored as JSON: {safe_str(error)}")
        execution.error = refusal
        return failure(execution, refusal, final=True)


def check_size(text: str, task: Any) -> None:
    """Raise ValueError for a result of more than ``max_result_bytes``."""
    limit: int = task.get_backend().settings.max_result_bytes
    if len(text) * 4 > limit and (size := len(text.encode())) > limit:
        raise ValueError(
            f"it takes {size:,} bytes; max_result_bytes allows {limit:,}. Store the data elsewhere and "
            "return its id."
        )


def decide_raise(execution: Execution, error: BaseException) -> Decision:
    """What becomes of a job whose task (or whose task's import) raised ``error``; never raises itself."""
    try:
        return _decide_raise(execution, error)
    except BaseException as broken:  # noqa: BLE001 - an error may be such that looking at it raises
        names = f"{class_path(error)} was raised, and looking at it raised {class_path(broken)}"
        return _decide_raise(execution, RuntimeError(names))


def _decide_raise(execution: Execution, error: BaseException) -> Decision:
    execution.error = error
    if isinstance(error, UnknownTask) and execution.task is None:
        return Unknown(safe_str(error))
    if isinstance(error, Snooze):
        return PutOff(storable_delay(error.delay), clean_text(safe_str(error)))
    if isinstance(error, Cancel):
        return End(clean_text(safe_str(error)))
    return failure(execution, error, final=is_final(execution.task, error))


def is_final(task: Any, error: BaseException) -> bool:
    """True for an error that the task's policy never retries."""
    if isinstance(error, (Retry, TaskTimeout)):
        return False
    if isinstance(error, UnstorableResult):  # of a step: it has been done, and would be done again
        return True
    retry_on = getattr(task, "retry_on", None)
    if isinstance(error, getattr(task, "discard_on", ()) or ()):
        return True
    return retry_on is not None and not isinstance(error, retry_on)


def failure(execution: Execution, error: BaseException, *, final: bool) -> Fail:
    """Return the failure to record for ``error``; never raises, whatever the error is like."""
    delay = 0.0 if final else next_delay(execution, error)  # it may add a note to the error
    text = render_traceback(error)
    return Fail(
        delay=delay,
        final=final,
        exception_class=class_path(error),
        message=clean_text(safe_str(error), limit=4096),
        traceback=text,
        fingerprint=fingerprint(execution.job.task_path, error),
    )


def next_delay(execution: Execution, error: BaseException) -> float:
    """Return the seconds until the next attempt: the error's own word, the task's, or the job's policy."""
    if isinstance(error, Retry) and error.delay is not None:
        return _bounded(error.delay)
    failures = execution.job.failures + 1
    backoff: Any = getattr(execution.task, "backoff", None)
    if callable(backoff) and not isinstance(backoff, Backoff):
        try:
            seconds: Any = backoff(error, execution.result)
            if seconds is not None:
                return storable_delay(seconds)
        except BaseException as broken:  # noqa: BLE001 - a broken policy must not cost the job its outcome
            error.add_note(
                f"django_pgqueue: the task's backoff raised {safe_str(broken)}; the default was used"
            )
    if isinstance(backoff, Backoff):
        return backoff.delay(failures)
    return default_policy(execution).delay(failures)


def default_policy(execution: Execution) -> Backoff:
    """Return the policy that was stored with the job."""
    return Backoff(execution.job.backoff_base, execution.job.backoff_cap)


def _bounded(seconds: float) -> float:
    try:
        return storable_delay(seconds)
    except ValueError:
        return 0.0


# --- to the settlement -----------------------------------------------------------------------------


def settlement(execution: Execution, now: float) -> Settlement:
    """Return what to write for an execution that was decided, with ages counted back from ``now``."""
    fence = execution.fence
    started = now - (execution.started if execution.started is not None else now)
    finished = now - (execution.finished if execution.finished is not None else now)
    notes = notes_of(execution)
    match execution.decision:
        case Complete(return_value=text):
            return Completed(fence, started, finished, text, notes)
        case Fail() as f:
            return Failed(
                fence,
                started,
                finished,
                f.delay,
                f.final,
                f.exception_class,
                f.message,
                f.traceback,
                f.fingerprint,
                notes,
            )
        case PutOff(delay, message):
            return Snoozed(fence, started, finished, delay, message, notes=notes)
        case Unknown(message, delay):
            return Snoozed(fence, started, finished, delay, message, UNKNOWN_TASK, notes)
        case End(message):
            return Cancelled(fence, started, finished, message, notes)
        case None:
            raise AssertionError(f"no settlement for {execution.decision!r}")


def finished_result(execution: Execution, status: str) -> AnyResult | None:
    """Return the final TaskResult of an execution for the signal, or None when the job is not over."""
    result = execution.result
    if status not in states.ENDED or result is None:
        return None
    succeeded = status == states.SUCCEEDED
    _set(result, "status", TaskResultStatus.SUCCESSFUL if succeeded else TaskResultStatus.FAILED)
    _set(result, "finished_at", finished_time(execution))
    if succeeded and isinstance(execution.decision, Complete):
        _set(result, "_return_value", execution.decision.value)
    elif isinstance(execution.decision, Fail):
        f = execution.decision
        result.errors.append(JobError(exception_class_path=f.exception_class, traceback=f.traceback))
    if status == states.CANCELLED:
        reason = execution.decision.message if isinstance(execution.decision, End) else ""
        result.errors.append(cancellation(reason))
    return result


def finished_time(execution: Execution) -> datetime:
    """Return when the execution finished, by the database's clock as far as this process knows it."""
    return project_time(execution.job.claimed_at) + timedelta(
        seconds=(execution.finished or time.monotonic()) - execution.claimed
    )


_set = object.__setattr__
