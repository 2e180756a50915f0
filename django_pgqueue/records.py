"""The values that travel between the verbs and their callers; plain data, no behaviour.

A *fence* is the triple ``(job_id, lease_version, lease_token)``: whoever names it proves that the
job was handed to him by that very claim.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

DONE = "done"
LOST = "lost"
LOCKED = "locked"


class NewJob(NamedTuple):
    """A job to be inserted; ``args``, ``kwargs`` and ``metadata`` are JSON text.

    ``run_after`` is an aware time, ``delay`` seconds from the database's now; at most one is given.
    ``parent_id`` is the job whose task enqueues this one.
    """

    task_path: str
    args: str = "[]"
    kwargs: str = "{}"
    queue: str = "default"
    priority: int = 0
    run_after: datetime | None = None
    delay: float | None = None
    metadata: str = "{}"
    max_attempts: int = 5
    timeout: float | None = None
    backoff_base: float = 5.0
    backoff_cap: float = 3600.0
    parent_id: int | None = None
    unique_key: str | None = None


class Enqueued(NamedTuple):
    """A job as inserted, or the live job that holds its unique key (``inserted`` is False then).

    ``sleepers``: whether a worker slept on its queue at that moment; None where nobody looked.
    ``is_notified``: the transaction that inserted it wakes them.
    """

    job_id: int
    enqueued_at: datetime | None
    run_after: datetime | None
    inserted: bool = True
    sleepers: bool | None = None
    is_notified: bool = False


class Fence(NamedTuple):
    """Proof of a claim."""

    job_id: int
    lease_version: int
    lease_token: UUID


class Cursor(NamedTuple):
    """A place in the claim order; a claim takes what lies behind it."""

    rank: int
    position: int
    job_id: int


HEAD = Cursor(-1000, 0, 0)
"""Before every job: a claim from here is a sweep."""


class Claimed(NamedTuple):
    """A job as its worker gets it: one row of the claim.  ``attempts`` ended before this one.

    ``args``, ``kwargs`` and ``metadata`` are JSON text, as in ``NewJob``: the worker's busiest thread need
    not read what the task's own thread can.
    """

    job_id: int
    lease_version: int
    attempts: int
    attempts_allowed: int
    rank: int
    position: int
    claimed_at: datetime
    backend: str
    task_path: str
    args: str
    kwargs: str
    queue: str
    priority: int
    run_after: datetime | None
    enqueued_at: datetime
    metadata: str
    max_attempts: int
    timeout: float | None
    backoff_base: float
    backoff_cap: float
    lease_token: UUID

    @property
    def fence(self) -> Fence:
        """The proof of this claim."""
        return Fence(self.job_id, self.lease_version, self.lease_token)

    @property
    def cursor(self) -> Cursor:
        """The job's place in the claim order."""
        return Cursor(self.rank, self.position, self.job_id)

    @property
    def failures(self) -> int:
        """Failures charged to the present budget before this attempt."""
        return max(self.max_attempts - (self.attempts_allowed - self.attempts), 0)


class Notes(NamedTuple):
    """What was noted of an attempt while it ran; ``sql_seconds`` is the time that its statements took."""

    log_tail: str = ""
    sql_queries: int | None = None
    sql_seconds: float | None = None


# What became of an attempt.  ``started_ago`` and ``finished_ago`` are seconds before the write.


class Completed(NamedTuple):
    """The task returned; ``return_value`` is JSON text."""

    fence: Fence
    started_ago: float
    finished_ago: float
    return_value: str = "null"
    notes: Notes | None = None


class Consumed(NamedTuple):
    """The task returned, and nothing of the job is to be kept."""

    fence: Fence


class Failed(NamedTuple):
    """The task raised.  ``delay`` seconds until the next attempt; ``final`` forbids one."""

    fence: Fence
    started_ago: float
    finished_ago: float
    delay: float
    final: bool
    exception_class: str
    message: str
    traceback: str
    fingerprint: str
    notes: Notes | None = None


class Snoozed(NamedTuple):
    """The job is put off by ``delay`` seconds, uncharged."""

    fence: Fence
    started_ago: float
    finished_ago: float
    delay: float
    message: str
    exception_class: str = ""
    notes: Notes | None = None


class Released(NamedTuple):
    """The job goes back; ``started_ago`` is None when it never started."""

    fence: Fence
    started_ago: float | None
    message: str = ""
    notes: Notes | None = None


class Cancelled(NamedTuple):
    """The worker ends the job as cancelled."""

    fence: Fence
    started_ago: float
    finished_ago: float
    message: str = ""
    notes: Notes | None = None


Settlement = Completed | Consumed | Failed | Snoozed | Released | Cancelled


class Answer(NamedTuple):
    """What a fenced write did to one job: ``result`` is "done", "lost" or "locked".

    ``status`` and ``attempts`` are the job's afterwards; None when the job is gone.
    """

    result: str
    status: str | None
    attempts: int | None


class Renewal(NamedTuple):
    """The answer to a renewal; ``cancel_requested`` asks the worker to stop the job."""

    result: str
    cancel_requested: bool


class PastAttempt(NamedTuple):
    """An attempt that ended, as a later attempt sees it."""

    number: int
    worker_id: str
    started_at: datetime
    outcome: str
    exception_class: str
    traceback: str
    message: str


class Rescued(NamedTuple):
    """A job taken from a worker that lost it; task and queue only where it had started."""

    job_id: int
    status: str
    attempts: int
    worker_id: str
    task_path: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Who writes: stored with every attempt.  ``worker_id`` is new for every process start."""

    worker_id: str
    host: str
    pid: int | None


@dataclass(frozen=True, slots=True)
class CancelReport:
    """Job ids by what cancel did: ended at once, asked to stop (running), or left alone."""

    cancelled: list[int] = field(default_factory=list)
    requested: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RetryReport:
    """Job ids by what retry did; ``conflicts`` clash with a live job of the same unique key."""

    retried: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    conflicts: list[int] = field(default_factory=list)


class Pruned(NamedTuple):
    """What one batch of pruning did; ``after`` is where the next begins, ``goes_on``: there may be more."""

    deleted: int
    after: tuple[Any, int] | None
    goes_on: bool
