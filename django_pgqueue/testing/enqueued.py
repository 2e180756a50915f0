"""What was enqueued: jobs in the database of an alias, seen from the test's own transaction.

Every job counts, whatever became of it since; ``job.state.status`` tells.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from django.db import connections
from django.db.models import Max

from .. import sql
from ..compat import AnyTask, normalize_json
from ..enqueueing import aware
from ..models import Job
from ..tasks import Call
from .aliases import queue_backend

SHOWN = 20
LONGEST = 200
_TOLERANCE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a job must be like; None stands for anything."""

    task: AnyTask | None
    values: Mapping[str, Any]
    run_after: datetime | timedelta | None

    def accepts(self, job: Job) -> bool:
        if self.task is not None and job.task_path != self.task.module_path:
            return False
        if any(_value(job, name) != value for name, value in self.values.items()):
            return False
        if self.run_after is None:
            return True
        if job.run_after is None:
            return False
        due = job.enqueued_at + self.run_after if isinstance(self.run_after, timedelta) else self.run_after
        return bool(abs(_aware(job.run_after) - _aware(due)) < _TOLERANCE)

    def __str__(self) -> str:
        text = self.task.module_path if self.task is not None else "any task"
        values = [f"{name}={_short(value)}" for name, value in self.values.items()]
        if self.run_after is not None:
            values.append(f"run_after={self.run_after}")
        return " ".join([text, *values])


def enqueued_jobs(task: AnyTask | None = None, *, backend: str | None = None) -> list[Job]:
    """Return the jobs of an alias in the order of enqueueing, those of one task if it is given.

    ``backend`` is the task's own by default.
    """
    return _jobs(task, backend, after=0)


class Like(TypedDict, total=False):
    """What a job must be like, in what is given of it; the rest may be anything.

    Keys: ``args``, ``kwargs``, ``queue``, ``priority``, ``run_after``, ``unique_key``, ``metadata``.
    ``run_after`` is a time, or a delay counted from enqueueing; a second's difference is allowed.
    """

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    queue: str
    priority: int
    run_after: datetime | timedelta
    unique_key: str
    metadata: Mapping[str, Any]


def assert_enqueued(
    task: AnyTask | Call[Any], *, count: int | None = None, backend: str | None = None, **like: Unpack[Like]
) -> list[Job]:
    """Return the jobs of ``task`` that are as described; raises AssertionError when there are none.

    ``task`` may be a call, ``send_receipt.bind(42)``: its arguments are then the job's.  With ``count`` there
    must be exactly so many.  For ``like`` see the class.  The error lists what was enqueued instead.
    """
    return _check(_wanted(task, like), backend, count, after=0)


def assert_not_enqueued(
    task: AnyTask | Call[Any] | None = None, *, backend: str | None = None, **like: Unpack[Like]
) -> None:
    """Raise AssertionError when a job of this task (or call, or of any task) was enqueued."""
    _check(_wanted(task, like), backend, 0, after=0)


@contextmanager
def assert_enqueues(
    task: AnyTask | Call[Any], *, count: int | None = None, backend: str | None = None, **like: Unpack[Like]
) -> Generator[list[Job]]:
    """Assert that the block enqueues such jobs; see ``assert_enqueued``.

    The list that the block gets holds the jobs afterwards.  Enqueueing that found a live job of the same
    unique key has made no new one.
    """
    wanted = _wanted(task, like)
    jobs: list[Job] = []
    last = _rows(wanted.task, backend).aggregate(last=Max("pk"))["last"] or 0
    yield jobs
    jobs += _check(wanted, backend, count, after=last)


def _wanted(task: AnyTask | Call[Any] | None, like: Like) -> _Wanted:
    values: dict[str, Any] = dict(like)
    unknown = set(values) - set(Like.__annotations__)
    if unknown:
        raise TypeError(
            f"a job has no {', '.join(sorted(unknown))}; it can be like {', '.join(Like.__annotations__)}."
        )
    if isinstance(task, Call):
        if "args" in values or "kwargs" in values:
            raise TypeError(
                "a call has its arguments already: give a call, or a task with args= and kwargs=."
            )
        values |= {"args": task.args, "kwargs": task.kwargs}
        task = task.task
    run_after = values.pop("run_after", None)
    return _Wanted(task, {name: normalize_json(value) for name, value in values.items()}, run_after)


def _check(wanted: _Wanted, backend: str | None, count: int | None, *, after: int) -> list[Job]:
    found = [job for job in _jobs(wanted.task, backend, after) if wanted.accepts(job)]
    if count is None and found:
        return found
    if count is not None and len(found) == count:
        return found
    number = "at least one job" if count is None else f"{count} job{'s' if count != 1 else ''}"
    raise AssertionError(
        f"Expected {number} of {wanted}, found {len(found)}.\n" + _instead(wanted.task, backend, after)
    )


def _instead(task: AnyTask | None, backend: str | None, after: int) -> str:
    jobs = list(_rows(task, backend).filter(pk__gt=after).order_by("pk")[: SHOWN + 1])
    lines = ["Enqueued were:" if jobs else "Nothing was enqueued."]
    lines += [f"  {_line(job)}" for job in jobs[:SHOWN]]
    if len(jobs) > SHOWN:
        lines.append("  ... and more")
    waiting = [
        entry
        for connection in connections.all(initialized_only=True)
        for entry in connection.run_on_commit
        if not getattr(entry[1], "__module__", "").startswith("django_pgqueue.")
    ]
    if waiting:
        lines.append(
            f"{len(waiting)} on_commit() hook(s) wait for a commit that this transaction has not made; in a "
            "TestCase, captureOnCommitCallbacks(execute=True) runs them."
        )
    return "\n".join(lines)


def _line(job: Job) -> str:
    parts = [f"#{job.pk} {job.task_path} args={_short(job.args)} kwargs={_short(job.kwargs)}"]
    parts.append(f"queue={job.queue} priority={job.priority}")
    if job.run_after is not None:
        parts.append(f"run_after={job.run_after.isoformat()}")
    if job.state.unique_key is not None:
        parts.append(f"unique_key={job.state.unique_key!r}")
    if job.metadata:
        parts.append(f"metadata={_short(job.metadata)}")
    return " ".join([*parts, f"({job.state.status})"])


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _value(job: Job, name: str) -> Any:
    if name == "unique_key":
        return (job.state.unique_key or "").removesuffix(sql.FOLLOWER)
    return getattr(job, name)


def _aware(moment: datetime) -> datetime:
    return aware(moment) or moment


def _jobs(task: AnyTask | None, backend: str | None, after: int) -> list[Job]:
    jobs = _rows(task, backend).filter(pk__gt=after).order_by("pk")
    return list(jobs.filter(task_path=task.module_path) if task is not None else jobs)


def _rows(task: AnyTask | None, backend: str | None) -> Any:
    alias = backend or (task.backend if task is not None else "default")
    database = queue_backend(alias).settings.database
    return Job.objects.using(database).select_related("state").filter(backend=alias)
