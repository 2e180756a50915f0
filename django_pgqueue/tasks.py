"""``Task`` with the queue's options, and the ``task`` decorator.

The options carry the names of Django's own proposals.  ``django_pgqueue.task`` always builds this
class, so that a decorated module also imports and runs when the alias points at the Immediate or
the Dummy backend, as it does in many test settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, cast, overload

from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    InvalidTask,
    Task,
)
from .retries import Backoff, BackoffFunction
from .storable import check_json


@dataclass(frozen=True, kw_only=True)  # no slots: a slotted subclass breaks super() before Python 3.14
class PgQueueTask(Task):
    """A task with a retry policy.

    ``max_attempts``: how many attempts may be charged, the first one included.
    ``backoff``: a ``Backoff``, or a callable ``(exception, task_result) -> seconds | None``.
    ``timeout``: seconds after which an attempt is stopped.
    ``discard_on``: exception classes that end the job at once, ``retry_on``: the only ones that are retried.
    ``metadata``: JSON stored with the job.
    ``delay``: seconds from enqueueing, by the database's clock; what a timedelta as ``run_after`` becomes.
    """

    priority: int = DEFAULT_TASK_PRIORITY
    backend: str = DEFAULT_TASK_BACKEND_ALIAS
    queue_name: str = DEFAULT_TASK_QUEUE_NAME
    run_after: datetime | None = None
    max_attempts: int | None = None
    backoff: Backoff | BackoffFunction | None = None
    timeout: float | None = None
    discard_on: tuple[type[BaseException], ...] = ()
    retry_on: tuple[type[BaseException], ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    delay: float | None = None

    def __post_init__(self) -> None:
        _normalise(self)
        super().__post_init__()

    def using(self, *, run_after: datetime | timedelta | None = None, **changes: Any) -> "PgQueueTask":
        """Return a copy with other options; None means unchanged.

        ``run_after`` takes a time, or a timedelta counted from enqueueing by the database's clock.
        """
        unknown = set(changes) - {f.name for f in fields(self)} | ({"func", "takes_context"} & set(changes))
        if unknown:
            raise TypeError(f"using() got unknown options: {', '.join(sorted(unknown))}")
        changes = {name: value for name, value in changes.items() if value is not None}
        if isinstance(run_after, timedelta):
            changes |= {"delay": run_after.total_seconds(), "run_after": None}
        elif run_after is not None:
            changes |= {"run_after": run_after, "delay": None}
        return replace(self, **changes)


def _normalise(task: PgQueueTask) -> None:
    run_after: Any = task.run_after
    if isinstance(run_after, timedelta):  # what Django's documentation allows and its code does not
        object.__setattr__(task, "delay", run_after.total_seconds())
        object.__setattr__(task, "run_after", None)
    for name in ("discard_on", "retry_on"):
        classes = getattr(task, name)
        if isinstance(classes, type):
            classes = (classes,)
        if classes is not None:
            classes = tuple(classes)
            if not all(isinstance(item, type) and issubclass(item, BaseException) for item in classes):
                raise InvalidTask(f"{name} must hold exception classes, not {classes!r}.")
        object.__setattr__(task, name, classes)
    if task.max_attempts is not None and not _is_whole(task.max_attempts, 1):
        raise InvalidTask(
            f"max_attempts must be a whole number from 1 to 2147483647, not {task.max_attempts!r}."
        )
    if task.timeout is not None and not (isinstance(task.timeout, (int, float)) and 0 < task.timeout < 1e9):
        raise InvalidTask(f"timeout must be a number of seconds above 0, not {task.timeout!r}.")
    if task.backoff is not None and not isinstance(task.backoff, Backoff) and not callable(task.backoff):
        raise InvalidTask(f"backoff must be a Backoff or a callable, not {task.backoff!r}.")
    try:
        check_json(task.metadata, "metadata")
    except ValueError as error:
        raise InvalidTask(f"{error}.") from None


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**31


@overload
def task(function: Callable[..., Any], /) -> PgQueueTask: ...
@overload
def task(
    *,
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    takes_context: bool = ...,
    max_attempts: int | None = ...,
    backoff: Backoff | BackoffFunction | None = ...,
    timeout: float | None = ...,
    discard_on: Any = ...,
    retry_on: Any = ...,
    metadata: Mapping[str, Any] = ...,
) -> Callable[[Callable[..., Any]], PgQueueTask]: ...


def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a module-level function a task; see ``PgQueueTask`` for the options.

    Raises InvalidTask for a bad option and TypeError for an unknown one or for ``run_after``, which
    belongs to a call: ``.using(run_after=...)``.
    """
    if "run_after" in options or "delay" in options:
        raise TypeError(
            "run_after cannot be fixed at the decorator; use .using(run_after=...) when you enqueue."
        )

    def wrapper(func: Callable[..., Any]) -> PgQueueTask:
        return PgQueueTask(func=func, **options)

    return cast(Any, wrapper if function is None else wrapper(function))
