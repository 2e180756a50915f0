"""What a task may raise to steer its own job, and what the queue raises at its callers."""

import sys
from datetime import timedelta

__all__ = [
    "Cancel",
    "DirectWrite",
    "DuplicateJob",
    "InvalidArguments",
    "LeaseExpired",
    "LeaseLost",
    "QueueError",
    "Retry",
    "Snooze",
    "TaskTimeout",
    "UnknownTask",
    "UnstorableResult",
    "WorkerDied",
]


def _seconds(name: str, delay: float | timedelta) -> float:
    given = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"the delay of {name} must be seconds (int or float) or a timedelta, not {delay!r}")
    if not 0 <= given <= sys.float_info.max:  # an int may be larger than any float
        raise ValueError(f"the delay of {name} must be finite and not negative, not {delay!r}")
    return float(given)


class QueueError(Exception):
    """Base of the errors that the queue itself raises."""


class InvalidArguments(QueueError, ValueError):
    """The arguments of a job cannot be stored; raised by enqueue before any SQL."""


class DuplicateJob(QueueError):
    """A live job holds the ``unique_key``.

    ``job_id`` is that job, or None when an earlier item of the same call asked for the key: then nothing is
    stored.  ``index`` is the place of the refused item among many, ``first_index`` that of the earlier one.
    """

    def __init__(
        self,
        job_id: int | None,
        unique_key: str,
        *,
        index: int | None = None,
        first_index: int | None = None,
    ) -> None:
        self.job_id = job_id
        self.unique_key = unique_key
        self.index = index
        self.first_index = first_index
        place = "" if index is None else f"item {index}: "
        holder = (
            f"job {job_id} is live and holds" if job_id is not None else f"item {first_index} also asks for"
        )
        super().__init__(f"{place}{holder} the unique key {unique_key!r}")


class DirectWrite(QueueError):
    """Rows of the queue were to be changed past the verbs of ``Job.objects``, which keep them consistent."""


class UnknownTask(QueueError):
    """A worker met a task path that its own code does not have."""


class LeaseExpired(QueueError):
    """Recorded for an attempt whose worker did not renew its lease."""


class WorkerDied(QueueError):
    """Recorded for an attempt whose worker process died or was killed while it ran."""


class TaskTimeout(QueueError):
    """Raised inside a task that ran longer than its ``timeout``."""


class LeaseLost(QueueError):
    """Raised at a checkpoint of a task whose lease another worker may have taken."""


class UnstorableResult(QueueError, ValueError):
    """Recorded when a task returned a value that JSON cannot hold, such as NaN; such a job is not run again.

    A type that JSON does not have is recorded as TypeError, as by Django's own backends.
    """


class Signal(Exception):
    """Base of what a task raises to steer its own job."""


class Retry(Signal):
    """Raise to fail this attempt and have the next one start in ``delay`` seconds.

    The attempt is charged to the job's budget.  ``delay=None`` uses the task's own backoff.
    Raises TypeError or ValueError for a delay that is not a number of seconds, 0 or more, or a timedelta.
    """

    def __init__(self, delay: float | timedelta | None = None, message: str = "") -> None:
        self.delay = None if delay is None else _seconds("Retry", delay)
        super().__init__(message or "the task asked to be retried")


class Snooze(Signal):
    """Raise to put the job off by ``delay`` seconds without charging the attempt.

    Raises TypeError or ValueError for a delay that is not a number of seconds, 0 or more, or a timedelta.
    """

    def __init__(self, delay: float | timedelta, message: str = "") -> None:
        self.delay = _seconds("Snooze", delay)
        super().__init__(message or "the task asked to be put off")


class Cancel(Signal):
    """Raise to end the job as cancelled; ``reason`` is stored with the attempt."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the task cancelled its own job")
