"""What a task may raise to steer its own job, and what the queue raises at its callers."""

from datetime import timedelta

__all__ = [
    "Cancel",
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


def _seconds(delay: float | timedelta | None) -> float | None:
    if isinstance(delay, timedelta):
        return delay.total_seconds()
    if delay is None:
        return None
    if isinstance(delay, bool) or not isinstance(delay, (int, float)):
        raise TypeError(f"delay must be seconds (int or float) or a timedelta, not {delay!r}")
    return float(delay)


class QueueError(Exception):
    """Base of the errors that the queue itself raises."""


class InvalidArguments(QueueError, ValueError):
    """The arguments of a job cannot be stored; raised by enqueue before any SQL."""


class DuplicateJob(QueueError):
    """A live job holds the unique key; ``job_id`` and ``unique_key`` say which."""

    def __init__(self, job_id: int, unique_key: str) -> None:
        self.job_id = job_id
        self.unique_key = unique_key
        super().__init__(f"job {job_id} is live and holds the unique key {unique_key!r}")


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
    """

    def __init__(self, delay: float | timedelta | None = None, message: str = "") -> None:
        self.delay = _seconds(delay)
        super().__init__(message or "the task asked to be retried")


class Snooze(Signal):
    """Raise to put the job off by ``delay`` seconds without charging the attempt."""

    def __init__(self, delay: float | timedelta, message: str = "") -> None:
        seconds = _seconds(delay)
        if seconds is None:
            raise TypeError("Snooze needs a delay in seconds or a timedelta")
        self.delay = seconds
        super().__init__(message or "the task asked to be put off")


class Cancel(Signal):
    """Raise to end the job as cancelled; ``reason`` is stored with the attempt."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the task cancelled its own job")
