"""How an order's jobs are doing, as the order's page shows it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django_pgqueue.models import Attempt, Job
from django_pgqueue.states import DEAD, ENDED, SCHEDULED, SUCCEEDED

from .models import Order


@dataclass(frozen=True, slots=True)
class JobProgress:
    """One job: where it stands, how often it was tried, and what went wrong last.

    ``due_at`` is set while the job waits for its next attempt; ``error`` is empty once it succeeded.
    """

    job_id: int
    title: str
    status: str
    label: str
    attempts: int
    allowed: int
    due_at: datetime | None
    error: str


def of_order(order: Order) -> list[JobProgress]:
    """Return the order's jobs in the order they were enqueued, with three queries."""
    titles = {row.job_id: row.get_kind_display() for row in order.order_jobs.all()}
    jobs = Job.objects.filter(id__in=titles).select_related("state").only("id", "state").order_by("id")
    errors = _last_errors(titles)
    return [
        JobProgress(
            job_id=job.id,
            title=titles[job.id],
            status=job.state.status,
            label=job.state.get_status_display(),
            attempts=job.state.attempts,
            allowed=job.state.attempts_allowed,
            due_at=job.state.run_at if job.state.status == SCHEDULED else None,
            error=errors.get(job.id, ""),
        )
        for job in jobs
    ]


def summed_up(jobs: Sequence[JobProgress]) -> dict[str, object]:
    """Return the jobs for a template, with how many are over and dead, and whether all have ended."""
    over = sum(job.status in ENDED for job in jobs)
    dead = sum(job.status == DEAD for job in jobs)
    return {"jobs": jobs, "over": over, "dead": dead, "ended": over == len(jobs)}


def _last_errors(job_ids: Iterable[int]) -> dict[int, str]:
    attempts = Attempt.objects.filter(job_id__in=job_ids).order_by("job_id", "-number").distinct("job_id")
    return {
        attempt.job_id: attempt.message or attempt.get_outcome_display()
        for attempt in attempts.only("job_id", "number", "outcome", "message")
        if attempt.outcome != SUCCEEDED
    }
