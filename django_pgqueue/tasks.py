"""``Task`` with the queue's options, and the ``task`` decorator.

The options carry the names of Django's own proposals.  ``django_pgqueue.task`` always builds this
class, so that a decorated module also imports and runs when the alias points at the Immediate or
the Dummy backend, as it does in many test settings.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, get_args, overload

from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultMismatch,
)
from .conf import ATTEMPTS_WORDS, is_attempts
from .retries import Backoff, BackoffFunction
from .storable import check_json

P = ParamSpec("P")
R = TypeVar("R")
OnConflict = Literal["return", "raise", "replace"]

if TYPE_CHECKING:

    class _TaskBase(Task[P, R]):
        """Django's Task as its stubs see it."""

else:

    class _TaskBase(Task, Generic[P, R]):
        """Django's Task, made generic: enqueue() has the signature of the task's function."""


@dataclass(frozen=True, slots=True)
class Call(Generic[R]):
    """A task with the arguments of one call, not enqueued yet; what ``PgQueueTask.bind`` returns."""

    task: "PgQueueTask[..., R]"
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)  # no slots: a slotted subclass breaks super() before Python 3.14
class PgQueueTask(_TaskBase[P, R]):
    """A task with a retry policy.

    ``max_attempts``: how many attempts may be charged, the first one included.
    ``backoff``: a ``Backoff``, or a callable ``(exception, task_result) -> seconds | None``.
    ``timeout``: seconds after which an attempt is stopped.
    ``discard_on``: exception classes that end the job at once, ``retry_on``: the only ones that are retried.
    ``metadata``: JSON stored with the job.
    ``unique_key``: at most one live job holds it; a string, or a callable of the task's arguments.
    ``on_conflict``: what enqueueing does when a live job holds the key: ``"return"`` that job's result,
    ``"raise"`` DuplicateJob, or ``"replace"``: a job that waits gets the new arguments and time, one that
    runs is followed by another after its end.
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
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    unique_key: str | Callable[..., str | None] | None = None
    on_conflict: OnConflict = "return"
    atomic: bool = False
    delay: float | None = None

    def __post_init__(self) -> None:
        _normalise(self)
        super().__post_init__()
        if self.delay is not None and not self.get_backend().supports_defer:
            raise InvalidTask("Backend does not support run_after.")

    def using(self, *, run_after: datetime | timedelta | None = None, **changes: Any) -> "PgQueueTask[P, R]":
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

    def get_result(self, result_id: str) -> "TaskResult[P, R]":
        """Return the result with this id.

        Raises TaskResultDoesNotExist, or TaskResultMismatch when it is the result of another task.
        """
        result: Any = self.get_backend().get_result(result_id)
        return self._checked(result)

    async def aget_result(self, result_id: str) -> "TaskResult[P, R]":
        """See get_result()."""
        result: Any = await self.get_backend().aget_result(result_id)
        return self._checked(result)

    def _checked(self, result: "TaskResult[P, R]") -> "TaskResult[P, R]":
        # As Django's own, but an error that the backport's users catch too.
        if result.task.func != self.func:
            raise TaskResultMismatch(f"Task does not match (received {result.task.module_path!r})")
        return result

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Return this task with arguments, for ``enqueue_many``."""
        return Call(self, args, kwargs)

    def enqueue_many(
        self, calls: Iterable[Call[R] | tuple[Any, ...] | Mapping[str, Any]]
    ) -> "list[TaskResult[P, R]]":
        """Enqueue this task once for each item, in the caller's transaction; see ``enqueue_many``.

        An item is a tuple of positional arguments, a mapping of keyword arguments, or what ``bind``
        returned.
        """
        return enqueue_many(_as_call(self, item, index) for index, item in enumerate(calls))


def enqueue_many(calls: Iterable[Call[Any]]) -> list[TaskResult]:
    """Enqueue many calls of any tasks in the caller's transaction, a statement per thousand.

    Results come in order.  Everything is checked before anything is written: a bad item raises
    InvalidTask, InvalidArguments or TypeError with its index.  All tasks must have the same backend.
    """
    listed = list(calls)
    for index, call in enumerate(listed):
        if not isinstance(call, Call):
            raise TypeError(f"item {index}: {call!r} is not a call; use task.bind(...)")
        if call.task.backend != listed[0].task.backend:
            raise InvalidTask(
                f"item {index}: its backend is {call.task.backend!r}, that of item 0 is "
                f"{listed[0].task.backend!r}; enqueue them apart."
            )
    if not listed:
        return []
    backend: Any = listed[0].task.get_backend()
    many = getattr(backend, "enqueue_many", None)
    if many is None:  # the Immediate or Dummy backend of a test
        return [backend.enqueue(call.task, call.args, call.kwargs) for call in listed]
    results: list[TaskResult] = many([(call.task, call.args, call.kwargs) for call in listed])
    return results


def _as_call(task: PgQueueTask[..., R], item: Any, index: int) -> Call[R]:
    if isinstance(item, Call):
        return item
    if isinstance(item, Mapping):
        return Call(task, (), item)
    if isinstance(item, tuple):
        return Call(task, item, {})
    raise TypeError(
        f"item {index}: {item!r} is neither a tuple of arguments nor a mapping of keyword arguments"
    )


def _normalise(task: PgQueueTask[..., Any]) -> None:
    run_after: Any = task.run_after
    if isinstance(run_after, timedelta):  # what Django's documentation allows and its code does not
        object.__setattr__(task, "delay", run_after.total_seconds())
        object.__setattr__(task, "run_after", None)
    for name in ("discard_on", "retry_on"):
        object.__setattr__(task, name, _classes(name, getattr(task, name)))
    for name, (accepts, words) in _RULES.items():
        value = getattr(task, name)
        if value is not None and not accepts(value):
            raise InvalidTask(f"{name} must be {words}, not {value!r}.")
    if task.atomic:
        raise InvalidTask("atomic=True is not built yet: jobs run at least once; make the task idempotent.")
    try:
        check_json(task.metadata, "metadata")
    except ValueError as error:
        raise InvalidTask(f"{error}.") from None


def _classes(name: str, value: Any) -> tuple[type[BaseException], ...] | None:
    if value is None:
        return None
    classes = (value,) if isinstance(value, type) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(item, type) and issubclass(item, BaseException) for item in classes):
        raise InvalidTask(f"{name} must hold exception classes, not {value!r}.")
    return classes


def _is_seconds(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e9


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "max_attempts": (is_attempts, ATTEMPTS_WORDS),
    "delay": (_is_number, "a number of seconds"),
    "metadata": (lambda v: isinstance(v, Mapping), "a dictionary"),
    "timeout": (_is_seconds, "a number of seconds above 0"),
    "backoff": (lambda v: isinstance(v, Backoff) or callable(v), "a Backoff or a callable"),
    "unique_key": (lambda v: isinstance(v, str) or callable(v), "a string or a callable of the arguments"),
    "on_conflict": (lambda v: v in get_args(OnConflict), f"one of {', '.join(get_args(OnConflict))}"),
}


# One set of options, three overloads: bare, with options, and with a first parameter for the context.


@overload
def task(function: Callable[P, R], /) -> PgQueueTask[P, R]: ...
@overload
def task(
    *,
    takes_context: Literal[True],
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    max_attempts: int | None = ...,
    backoff: Backoff | BackoffFunction | None = ...,
    timeout: float | None = ...,
    discard_on: type[BaseException] | Iterable[type[BaseException]] = ...,
    retry_on: type[BaseException] | Iterable[type[BaseException]] | None = ...,
    metadata: Mapping[str, Any] = ...,
    unique_key: str | Callable[..., str | None] | None = ...,
    on_conflict: OnConflict = ...,
) -> Callable[[Callable[Concatenate[Any, P], R]], PgQueueTask[P, R]]: ...
@overload
def task(
    *,
    takes_context: Literal[False] = False,
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    max_attempts: int | None = ...,
    backoff: Backoff | BackoffFunction | None = ...,
    timeout: float | None = ...,
    discard_on: type[BaseException] | Iterable[type[BaseException]] = ...,
    retry_on: type[BaseException] | Iterable[type[BaseException]] | None = ...,
    metadata: Mapping[str, Any] = ...,
    unique_key: str | Callable[..., str | None] | None = ...,
    on_conflict: OnConflict = ...,
) -> Callable[[Callable[P, R]], PgQueueTask[P, R]]: ...


def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a module-level function a task; see ``PgQueueTask`` for the options.

    Raises InvalidTask for a bad option and TypeError for an unknown one or for ``run_after``, which
    belongs to a call: ``.using(run_after=...)``.
    """
    if "run_after" in options or "delay" in options:
        raise TypeError(
            "run_after cannot be fixed at the decorator; use .using(run_after=...) when you enqueue."
        )

    def wrapper(func: Callable[..., Any]) -> PgQueueTask[..., Any]:
        return PgQueueTask(func=func, **options)

    return wrapper if function is None else wrapper(function)
