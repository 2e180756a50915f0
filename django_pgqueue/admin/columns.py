"""The columns of the list: each shows what a person wants to know at a glance, escaped."""

from typing import Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from django_pgqueue.models import Job
from django_pgqueue.redaction import Redactor

from . import page, wording
from .breaking import breakable


@admin.display(description=gettext_lazy("state"))
def state(job: Any) -> SafeString | str:
    """Show the state as a coloured word, and since when."""
    now_at = page.state_of(job)
    if now_at is None:
        return wording.NOTHING
    pill = page.status_pill(now_at.status)
    return format_html(
        '<span class="pgq-pill pgq-{}"><span aria-hidden="true">{}</span> {}</span>'
        ' <span class="pgq-standing">{}</span>',
        pill.kind,
        pill.sign,
        pill.label,
        wording.standing(now_at, job.now),
    )


@admin.display(description=gettext_lazy("queue"))
def queue(job: Job) -> str:
    """Show the queue."""
    return wording.visible(job.queue)


@admin.display(description=gettext_lazy("task"))
def task(job: Job) -> SafeString:
    """Show the path of the task, which may break after a dot or an underscore."""
    return breakable(job.task_path)


@admin.display(description=gettext_lazy("priority"))
def priority(job: Job) -> int:
    """Show the priority."""
    return job.priority


@admin.display(description=gettext_lazy("attempts"))
def attempts(job: Job) -> str:
    """Show "2 of 5"."""
    now_at = page.state_of(job)
    return wording.attempt_of(now_at) if now_at else wording.NOTHING


@admin.display(description=gettext_lazy("age"))
def age(job: Any) -> SafeString:
    """Show how long ago the job was enqueued."""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        job.enqueued_at.isoformat(),
        wording.moment(job.enqueued_at),
        wording.age(wording.since(job.enqueued_at, job.now)),
    )


@admin.display(description=gettext_lazy("last error"), empty_value="")
def last_error(job: Any) -> SafeString | str:
    """Show the class and the start of the message of the last attempt that went wrong."""
    if job.last_error is None:
        return ""
    error = page.readable(job.last_error, Redactor(job.task_path, job.backend))
    return format_html(
        '<span class="pgq-error"><span class="pgq-class" title="{}">{}</span> {}</span>',
        error.exception_class,
        wording.short_class(error.exception_class),
        error.message,
    )


COLUMNS: tuple[Any, ...] = ("id", state, queue, task, priority, attempts, age, last_error)
