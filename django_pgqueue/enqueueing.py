"""From a call to a row: checks everything about a job before any SQL, then inserts.

What cannot be stored is refused here with the argument's name; a bad item of many with its index.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from django.db import transaction
from django.utils.timezone import get_current_timezone, is_naive, make_aware

from . import running, sql
from .compat import AnyTask, InvalidTask, normalize_json
from .conf import Options
from .exceptions import DuplicateJob, InvalidArguments
from .models import Job
from .querying import ROWS_PER_STATEMENT, queue_connection
from .records import Enqueued, NewJob
from .retries import Backoff
from .signatures import Shape, shape_of
from .storable import ATOMS, check_json, dump_json, easy_json
from .task_options import key_problem

FOLLOW_AFTER = 0.1
"""Seconds: a job that follows a running one is never ready at once, so that promote decides about it."""


class Prepared(NamedTuple):
    """A job that can be stored, with the task and the plain arguments for its result."""

    job: NewJob
    task: AnyTask
    args: list[Any]
    kwargs: dict[str, Any]
    on_conflict: str


class Backend(Protocol):
    """What preparing needs of a backend."""

    settings: Options

    def validate_task(self, task: AnyTask) -> None:
        """Raise InvalidTask for what the backend cannot store or run."""


Calls = Sequence[tuple[AnyTask, Sequence[Any], Mapping[str, Any]]]


def prepare_all(calls: Calls, backend: Backend) -> list[Prepared]:
    """Return what to insert for each call; raises InvalidTask, InvalidArguments or TypeError."""
    prepared = []
    templates: dict[int, NewJob] = {}
    for index, (task, args, kwargs) in enumerate(calls):
        try:
            if id(task) not in templates:
                templates[id(task)] = template_of(task, backend)
            prepared.append(fill(templates[id(task)], task, args, kwargs, backend))
        except (InvalidTask, TypeError, ValueError) as error:
            if len(calls) > 1:
                error.args = (f"item {index}: {error}", *error.args[1:])
            raise
    _refuse_twins(prepared)
    return prepared


def _refuse_twins(prepared: Sequence[Prepared]) -> None:
    # Before any SQL: afterwards the earlier item would be a job, which this error then rolls back.
    first: dict[str, int] = {}
    for index, item in enumerate(prepared):
        key = item.job.unique_key
        if key is None:
            continue
        if item.on_conflict == "raise" and key in first:
            raise DuplicateJob(None, key, index=index, first_index=first[key])
        first.setdefault(key, index)


def prepare(task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any], backend: Backend) -> Prepared:
    """Return what to insert for one call; raises InvalidTask, InvalidArguments or TypeError."""
    return fill(template_of(task, backend), task, args, kwargs, backend)


def template_of(task: AnyTask, backend: Backend) -> NewJob:
    """Return what is the same for all calls of a task; raises InvalidTask."""
    backend.validate_task(task)
    options = backend.settings
    policy = policy_of(task, options)
    return NewJob(
        task_path=task.module_path,
        queue=task.queue_name,
        priority=int(task.priority),
        run_after=aware(task.run_after),
        delay=getattr(task, "delay", None),
        metadata=dump_json(dict(getattr(task, "metadata", None) or {})),
        max_attempts=getattr(task, "max_attempts", None) or options.max_attempts,
        timeout=getattr(task, "timeout", None) or options.timeout,
        backoff_base=policy.base,
        backoff_cap=policy.cap,
        parent_id=parent_in(options.database),
    )


def parent_in(database: str) -> int | None:
    """Return the id of the job whose task runs here, if it is one of the same database."""
    parent = running.current()
    if parent is None or parent.task is None or parent.task.get_backend().settings.database != database:
        return None
    return parent.job.job_id


def fill(
    template: NewJob, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any], backend: Backend
) -> Prepared:
    """Return a template with the arguments of one call; raises InvalidArguments or TypeError."""
    check_call(task, args, kwargs)
    limit = backend.settings.max_argument_bytes
    plain_args = [plain(value, "args", index, task) for index, value in enumerate(args)]
    plain_kwargs = {name: plain(value, "kwargs", name, task) for name, value in kwargs.items()}
    args_text = checked_json(plain_args, "args", task, limit) if args else "[]"
    kwargs_text = checked_json(plain_kwargs, "kwargs", task, limit) if kwargs else "{}"
    key = unique_key_of(task, plain_args, plain_kwargs)
    # _replace() would make a dictionary of all fields, for each job of many.
    job = NewJob._make((template[0], args_text, kwargs_text, *template[3:-1], key))
    return Prepared(job, task, plain_args, plain_kwargs, getattr(task, "on_conflict", "return"))


def check_call(task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError, as a call would, for arguments that the task's function does not take."""
    shape = shape_of(task.func, task.takes_context)
    problem = shape.problem(args, kwargs)
    if problem is not None:
        raise TypeError(f"{task.module_path}{shape}: {problem}")


def plain(value: Any, where: str, key: int | str, task: AnyTask) -> Any:
    """Return an argument in JSON's own types; raises TypeError or InvalidArguments that names it."""
    if type(value) in ATOMS:
        return value
    try:
        return normalize_json(value)
    except RecursionError:
        raise InvalidArguments(
            f"{task.module_path}: {where}[{key!r}] is nested too deeply to be stored as JSON"
        ) from None
    except TypeError as error:
        raise TypeError(f"{task.module_path}: {where}[{key!r}]: {error}") from None
    except ValueError as error:
        raise InvalidArguments(f"{task.module_path}: {where}[{key!r}]: {error}") from None


def checked_json(value: Any, name: str, task: AnyTask, limit: int) -> str:
    """Return JSON text of arguments; raises InvalidArguments that names the bad one."""
    text = easy_json(value)
    if text is not None and len(text) <= limit:
        return text
    try:
        check_json(value, name)
    except RecursionError:
        raise InvalidArguments(
            f"{task.module_path}: {name} is nested too deeply to be stored as JSON"
        ) from None
    except ValueError as error:
        raise InvalidArguments(f"{task.module_path}: {error}") from None
    try:
        text = dump_json(value)
    except ValueError as error:  # a number of more digits than Python writes
        raise InvalidArguments(f"{task.module_path}: {name}: {error}") from None
    if len(text) * 4 > limit and len(text.encode()) > limit:
        raise InvalidArguments(
            f"{task.module_path}: {name} takes {len(text.encode()):,} bytes as JSON; "
            f"max_argument_bytes allows {limit:,}. Store the data elsewhere and pass its id."
        )
    return text


def policy_of(task: AnyTask, options: Options) -> Backoff:
    """Return the backoff to store with the job: the task's, or the alias's default."""
    backoff = getattr(task, "backoff", None)
    if isinstance(backoff, Backoff):
        return backoff
    return Backoff(options.backoff_base, max(options.backoff_cap, options.backoff_base))


def unique_key_of(task: AnyTask, args: list[Any], kwargs: dict[str, Any]) -> str | None:
    """Return the key of a call, or None; raises InvalidTask for one that cannot be stored."""
    key: Any = getattr(task, "unique_key", None)
    on_conflict = getattr(task, "on_conflict", "return")
    if key is None and on_conflict != "return":
        raise InvalidTask(
            f"{task.module_path}: on_conflict={on_conflict!r} needs a unique_key, and the task has none."
        )
    if callable(key):
        key = _key_of_call(task, key, args, kwargs)
    if key is None:
        return None
    problem = key_problem(key)
    if problem:
        raise InvalidTask(f"{task.module_path}: {problem}")
    return str(key)


def _key_of_call(
    task: AnyTask, key: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    try:
        return key(*args, **kwargs)
    except TypeError:
        shape = Shape(key)
        problem = shape.problem(args, kwargs)
        if problem is None:  # raised inside it
            raise
        raise InvalidTask(
            f"{task.module_path}: unique_key is called with the arguments of the job and must take them; "
            f"{getattr(key, '__name__', key)}{shape}: {problem}."
        ) from None


def aware(moment: datetime | None) -> datetime | None:
    """Return ``moment`` as an aware time; a naive one is in the current time zone (USE_TZ=False)."""
    if moment is not None and is_naive(moment):
        return make_aware(moment, get_current_timezone())
    return moment


def insert(
    prepared: Sequence[Prepared], *, alias: str, database: str, notify: bool = False
) -> list[Enqueued]:
    """Insert all in the caller's transaction, or in one of their own when that takes several statements."""
    jobs = [item.job for item in prepared]
    connection = queue_connection(database)
    unique = any(job.unique_key is not None for job in jobs)
    if not unique and len(jobs) == 1:
        alone = notify and connection.get_autocommit() and not connection.in_atomic_block
        return [
            Job.objects.enqueue(jobs[0], backend=alias, look=notify, may_notify=alone, connection=connection)
        ]
    if not unique and len(jobs) <= ROWS_PER_STATEMENT:
        return Job.objects.enqueue_many(jobs, backend=alias, connection=connection)
    with transaction.atomic(using=database):
        if not unique:
            return Job.objects.enqueue_many(jobs, backend=alias, connection=connection)
        rows = Job.objects.enqueue_unique(jobs, backend=alias, connection=connection)
        for index, (item, row) in enumerate(zip(prepared, rows, strict=True)):
            if not row.inserted and item.on_conflict == "raise":
                place = index if len(prepared) > 1 else None
                raise DuplicateJob(row.job_id, item.job.unique_key or "", index=place)
        # By the order of the keys: two calls that replace the same jobs must not wait in a circle.
        for place in sorted(range(len(jobs)), key=lambda place: jobs[place].unique_key or ""):
            if not rows[place].inserted:
                rows[place] = _resolve(prepared[place], rows[place], alias, connection)
        return rows


def _resolve(item: Prepared, live: Enqueued, alias: str, connection: Any) -> Enqueued:
    if item.on_conflict == "return":
        return live
    replaced = Job.objects.replace(item.job, connection=connection)
    if replaced is None:
        replaced = _follow(item.job, alias, connection)
    return replaced._replace(inserted=True)


def _follow(job: NewJob, alias: str, connection: Any) -> Enqueued:
    delay = max(job.delay or 0.0, FOLLOW_AFTER) if job.run_after is None else None
    follower = job._replace(unique_key=f"{job.unique_key}{sql.FOLLOWER}", delay=delay)
    row = Job.objects.enqueue_unique([follower], backend=alias, connection=connection)[0]
    return row if row.inserted else Job.objects.replace(follower, connection=connection) or row
