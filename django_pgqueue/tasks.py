"""``Task`` with the queue's options, and the ``task`` decorator.

The options carry the names of Django's own proposals.  ``django_pgqueue.task`` always builds this
class, so that a decorated module also imports and runs when the alias points at the Immediate or
the Dummy backend, as it does in many test settings.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    InvalidTask,
    Task,
    TaskResultMismatch,
)
from .retries import Backoff, BackoffFunction
from .task_options import OnConflict, atomic_problem, normalise

P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:
    from .context import JobContext
    from .results import JobResult

    class _TaskBase(Task[P, R], Generic[P, R]):
        """Django's Task as its stubs see it; what it enqueues can be waited for."""

        def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobResult[P, R]: ...

        async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobResult[P, R]: ...

else:

    class _TaskBase(Task, Generic[P, R]):
        """Django's Task, made generic: enqueue() has the signature of the task's function."""


class TaskOptions(TypedDict, total=False):
    """The options of ``task`` and ``using``, by name; None is the default there, and unchanged here."""

    priority: int | None
    queue_name: str | None
    backend: str | None
    max_attempts: int | None
    backoff: Backoff | BackoffFunction | None
    timeout: float | None
    discard_on: type[BaseException] | Iterable[type[BaseException]] | None
    retry_on: type[BaseException] | Iterable[type[BaseException]] | None
    metadata: Mapping[str, Any] | None
    unique_key: str | Callable[..., str | None] | None
    on_conflict: OnConflict | None
    atomic: bool | str | None


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
    ``atomic``: the task runs in a transaction on the queue's database, which also completes the job; the
    alias of that database where it is not ``"default"``.
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
    atomic: bool | str = False
    delay: float | None = None

    def __post_init__(self) -> None:
        normalise(self)
        super().__post_init__()
        options = getattr(self.get_backend(), "settings", None)
        problem = atomic_problem(self.atomic, self.func, getattr(options, "database", None))
        if problem:
            raise InvalidTask(problem)
        if self.delay is not None and not self.get_backend().supports_defer:
            raise InvalidTask("Backend does not support run_after.")

    def using(
        self, *, run_after: datetime | timedelta | None = None, **changes: Unpack[TaskOptions]
    ) -> "PgQueueTask[P, R]":
        """Return a copy with other options; None means unchanged.

        ``run_after`` takes a time, or a timedelta counted from enqueueing by the database's clock.
        """
        unknown = set(changes) - {f.name for f in fields(self)} | ({"func", "takes_context"} & set(changes))
        if unknown:
            raise TypeError(f"using() got unknown options: {', '.join(sorted(unknown))}")
        given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        if isinstance(run_after, timedelta):
            given |= {"delay": run_after.total_seconds(), "run_after": None}
        elif run_after is not None:
            given |= {"run_after": run_after, "delay": None}
        return replace(self, **given)

    def get_result(self, result_id: str) -> "JobResult[P, R]":
        """Return the result with this id.

        Raises TaskResultDoesNotExist, or TaskResultMismatch when it is the result of another task.
        """
        result: Any = self.get_backend().get_result(result_id)
        return self._checked(result)

    async def aget_result(self, result_id: str) -> "JobResult[P, R]":
        """See get_result()."""
        result: Any = await self.get_backend().aget_result(result_id)
        return self._checked(result)

    def _checked(self, result: "JobResult[P, R]") -> "JobResult[P, R]":
        # As Django's own, but an error that the backport's users catch too.
        if result.task.func != self.func:
            raise TaskResultMismatch(f"Task does not match (received {result.task.module_path!r})")
        return result

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Return this task with arguments, for ``enqueue_many``."""
        return Call(self, args, kwargs)

    def enqueue_many(
        self, calls: Iterable[Call[R] | tuple[Any, ...] | Mapping[str, Any]]
    ) -> "list[JobResult[P, R]]":
        """Enqueue this task once for each item, in the caller's transaction; see ``enqueue_many``.

        An item is a tuple of positional arguments, a mapping of keyword arguments, or what ``bind``
        returned.
        """
        results: list[Any] = _enqueue([_as_call(self, item, index) for index, item in enumerate(calls)])
        return results


def enqueue_many(calls: Iterable[Call[Any]]) -> "list[JobResult[..., Any]]":
    """Enqueue many calls of any tasks in the caller's transaction, a statement per thousand.

    Results come in order.  Everything is checked before anything is written: a bad item raises
    InvalidTask, InvalidArguments or TypeError with its index.  All tasks must have the same backend.
    """
    listed = list(calls)
    for index, call in enumerate(listed):
        if not isinstance(call, Call):
            raise TypeError(f"item {index}: {call!r} is not a call; use task.bind(...)")
    return _enqueue([(call.task, call.args, call.kwargs) for call in listed])


_Plain = tuple["PgQueueTask[..., Any]", tuple[Any, ...], Mapping[str, Any]]


def _enqueue(calls: list[_Plain]) -> "list[JobResult[..., Any]]":
    if not calls:
        return []
    first = calls[0][0]
    for index, (task, _, _) in enumerate(calls):
        if task is not first and task.backend != first.backend:
            raise InvalidTask(
                f"item {index}: its backend is {task.backend!r}, that of item 0 is "
                f"{first.backend!r}; enqueue them apart."
            )
    backend: Any = first.get_backend()
    many = getattr(backend, "enqueue_many", None)
    if many is None:  # the Immediate or Dummy backend of a test
        return [backend.enqueue(*call) for call in calls]
    results: list[JobResult[..., Any]] = many(calls)
    return results


def _as_call(task: PgQueueTask[..., Any], item: Any, index: int) -> _Plain:
    if type(item) is tuple:
        return task, item, {}
    if isinstance(item, Call):
        return item.task, item.args, item.kwargs
    if isinstance(item, Mapping):
        return task, (), item
    if isinstance(item, tuple):
        return task, item, {}
    raise TypeError(
        f"item {index}: {item!r} is neither a tuple of arguments nor a mapping of keyword arguments"
    )


# What a coroutine function returns is what its awaiting gives: the result of the job, too.


class PlainDecorator(Protocol):
    """What ``task(...)`` returns: makes a task of a function, with the same parameters."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> PgQueueTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> PgQueueTask[P, R]: ...


class ContextDecorator(Protocol):
    """What ``task(takes_context=True)`` returns: the first parameter is not one of the task's."""

    @overload
    def __call__(
        self, function: "Callable[Concatenate[JobContext, P], Coroutine[Any, Any, R]]", /
    ) -> PgQueueTask[P, R]: ...
    @overload
    def __call__(self, function: "Callable[Concatenate[JobContext, P], R]", /) -> PgQueueTask[P, R]: ...


@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> PgQueueTask[P, R]: ...
@overload
def task(function: Callable[P, R], /) -> PgQueueTask[P, R]: ...
@overload
def task(*, takes_context: Literal[True], **options: Unpack[TaskOptions]) -> ContextDecorator: ...
@overload
def task(*, takes_context: Literal[False] = False, **options: Unpack[TaskOptions]) -> PlainDecorator: ...


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
