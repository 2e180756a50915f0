"""A filter in words: what a bulk operation was asked to do, for the page that asks and for its own."""

from datetime import datetime

from django.utils.translation import gettext as _

from django_pgqueue.models import Job, Status
from django_pgqueue.selecting import JobFilter

from . import wording


def words(asked: JobFilter) -> list[tuple[str, str]]:
    """Return what is asked for as names and values, empty for all jobs."""
    told = [
        (_("State"), str(Status(asked.status).label) if asked.status in Status.values else asked.status),
        (_("Queue"), asked.queue),
        (_("Task"), ", ".join(asked.task_paths) if asked.task_paths is not None else None),
        (_("Cause"), asked.cause_told or cause(asked.cause) if asked.cause else None),
        (_("Enqueued"), _span(asked.enqueued_from, asked.enqueued_to)),
        (_("Ended"), _span(asked.finished_from, asked.finished_to)),
    ]
    return [(name, wording.visible(value)) for name, value in told if value]


def cause(name: str) -> str:
    """Return a cause in words: those of its latest dead job; its own name when it has none any more."""
    found = Job.objects.walk(JobFilter(cause=name), limit=1).job_ids if "\x00" not in name else []
    if not found:
        return name
    last = Job.objects.last_words(found)[found[0]]
    return f"{wording.short_class(last.exception_class) or '?'}: {last.task_path}"


def _span(first: datetime | None, last: datetime | None) -> str | None:
    if first is None and last is None:
        return None
    return f"{wording.moment(first)} – {wording.moment(last)}"
