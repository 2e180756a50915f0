"""Time for tests: the database's clock decides what is due, and no test can set that clock.

So time passes the other way round: the times of all states and attempts move into the past.  What was
due in an hour is due now, a lease that had a minute left is over.  What was asked (``enqueued_at`` and
``run_after`` of the job, and with them its idempotency key) stays as it was asked.
"""

from datetime import timedelta

from django.test import utils

from ..models import Job
from .aliases import connection_of, queue_backend

LONGEST = 1000 * 365 * 24 * 3600.0
"""Seconds: PostgreSQL and Python's datetime can both still hold such a past."""


def forward_time(by: float | timedelta, *, backend: str = "default") -> None:
    """Let ``by`` seconds pass for all jobs in the database of an alias.

    Nothing runs by itself: call ``run_jobs`` afterwards.  Raises ValueError for a negative time, and
    RuntimeError outside a test environment, where it would end the leases of living workers.
    """
    seconds = by.total_seconds() if isinstance(by, timedelta) else float(by)
    if not 0 <= seconds <= LONGEST:
        raise ValueError(f"forward_time({by!r}): time can pass by 0 to {LONGEST:.0f} seconds.")
    # Django has no public name for "setup_test_environment() has been called".
    if not hasattr(utils._TestState, "saved_data"):  # pyright: ignore[reportPrivateUsage]
        raise RuntimeError(
            "forward_time() changes the stored times of all jobs and works in tests only: "
            "django.test.utils.setup_test_environment() has not been called in this process."
        )
    Job.objects.forward_time(seconds, connection=connection_of(queue_backend(backend)))
