"""The jobs that belong to one: the job whose task enqueued it, and those that its own task enqueued."""

from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from django_pgqueue.models import Job

from . import page
from .breaking import breakable

CHILDREN_PER_PAGE = 20


@dataclass(frozen=True, slots=True)
class Relative:
    """A job as the page of another one names it; without a pill it is gone."""

    job_id: int
    task: SafeString | str = ""
    pill: page.Pill | None = None


@dataclass(frozen=True, slots=True)
class Children:
    """Some of the jobs that a job enqueued, in the order of their ids, those behind ``after``."""

    rows: list[Relative]
    after: int
    goes_on: bool

    @property
    def last(self) -> int:
        """The place behind which the next page begins."""
        return self.rows[-1].job_id


def parent(job: Job) -> Relative | None:
    """Return the job whose task enqueued this one; None when none did."""
    if job.parent_id is None:
        return None
    found = page.narrow_jobs().filter(pk=job.parent_id).first()
    return _relative(found) if found is not None else Relative(job.parent_id)


def children(job: Job, after: str) -> Children:
    """Return the jobs that this one enqueued, behind an id; from the first for one that makes no sense."""
    behind = int(after) if after.isascii() and after.isdecimal() and len(after) < 19 else 0
    found = Job.objects.children(job.pk, after=behind, limit=CHILDREN_PER_PAGE + 1)
    jobs = page.narrow_jobs().in_bulk(found[:CHILDREN_PER_PAGE]) if found else {}
    return Children([_relative(jobs[pk]) for pk in sorted(jobs)], behind, len(found) > CHILDREN_PER_PAGE)


def _relative(job: Any) -> Relative:
    state = page.state_of(job)
    pill = page.status_pill(state.status) if state is not None else None
    return Relative(job.pk, breakable(job.task_path), pill)
