"""The filters of the list: by state, queue, task, cause, and two ranges of time.

Each narrows a ``JobFilter``; which index answers it is that one's matter.  Their choices come from settings
and index probes, never from a DISTINCT over the table.  A value that makes no sense finds nothing: it never
widens the list, on which somebody may press "retry all".
"""

from collections.abc import Generator
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ERROR_FLAG, PAGE_VAR
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from rangefilter.filters import DateTimeRangeFilterBuilder

from django_pgqueue.backend import PgQueueBackend
from django_pgqueue.compat import task_backends
from django_pgqueue.models import Job, Status
from django_pgqueue.readings import COUNT_LIMIT
from django_pgqueue.selecting import JobFilter

from . import describing, wording
from .breaking import breakable

PLACE_VARS = ("after", "before")
"""Parameters that say where in the list one is; another filter begins at its first page."""
ID_DISORDER = timedelta(minutes=1)
"""How far the order of ids and the order of times may differ: concurrent enqueues, a clock put right."""


def task_paths(request: HttpRequest) -> list[str]:
    """Return the task paths in the table, looked up once a request."""
    kept = vars(request)
    if "_pgqueue_task_paths" not in kept:
        kept["_pgqueue_task_paths"] = Job.objects.task_paths()
    paths: list[str] = kept["_pgqueue_task_paths"]
    return paths


class ChoiceFilter(admin.SimpleListFilter):
    """A list of links; long lists scroll inside their box."""

    template = "admin/django_pgqueue/job/filter.html"

    def values(self, request: HttpRequest) -> list[str]:
        """Return the values to choose from."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choices; the present one is among them even when nothing else names it."""
        present = self.value()
        values = set(self.values(request)) | ({present} if present else set())
        return [(value, value) for value in sorted(values)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Return the query set as it is: the list asks by its ``JobFilter``."""
        return queryset

    def narrow(self, asked: JobFilter) -> JobFilter:
        """Return what is asked for, narrowed to the chosen value."""
        value = self.value()
        if value is None:
            return asked
        return replace(asked, nothing=True) if "\x00" in value else self.chosen(asked, value)

    def chosen(self, asked: JobFilter, value: str) -> JobFilter:
        """Return what is asked for, narrowed to this value."""
        raise NotImplementedError


class StatusFilter(ChoiceFilter):
    """By state, with how many there are of each."""

    title = _("state")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the six states."""
        counts = Job.objects.status_counts()
        return [(value, f"{label} ({_counted(counts[value])})") for value, label in Status.choices]

    def chosen(self, asked: JobFilter, value: str) -> JobFilter:
        """Narrow to one state."""
        return replace(asked, status=value)


class QueueFilter(ChoiceFilter):
    """By queue: those of the settings and those that hold ready jobs."""

    title = _("queue")
    parameter_name = "queue"

    def values(self, request: HttpRequest) -> list[str]:
        """Return the names of the queues."""
        return queue_names()

    def chosen(self, asked: JobFilter, value: str) -> JobFilter:
        """Narrow to one queue."""
        return replace(asked, queue=value)


def queue_names() -> list[str]:
    """Return the names of the queues of the settings and of those that hold ready jobs, in order."""
    declared = (backend.queues for backend in _backends() if isinstance(backend, PgQueueBackend))
    return sorted({*Job.objects.ready_queues(), *(name for queues in declared for name in queues)})


class CauseFilter(ChoiceFilter):
    """By the cause of death: chosen on the page of causes, shown here while it is."""

    title = _("cause")
    parameter_name = "cause"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the chosen cause alone, told by its latest job."""
        value = self.value()
        return [(value, wording.visible(describing.cause(value)))] if value else []

    def has_output(self) -> bool:
        """Return True: the value counts as a filter even where nothing is there to choose from."""
        return bool(self.value())

    def chosen(self, asked: JobFilter, value: str) -> JobFilter:
        """Narrow to dead jobs of one cause."""
        return replace(asked, cause=value)


class TaskFilter(ChoiceFilter):
    """By task, whether or not this code still has it."""

    title = _("task")
    parameter_name = "task"

    def values(self, request: HttpRequest) -> list[str]:
        """Return the paths of the tasks."""
        return task_paths(request)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choices, whose labels may break as names do."""
        return [(value, breakable(value)) for value, _label in super().lookups(request, model_admin)]

    def chosen(self, asked: JobFilter, value: str) -> JobFilter:
        """Narrow to one task."""
        return replace(asked, task_paths=(value,))


def _backends() -> list[Any]:
    return [task_backends[alias] for alias in task_backends.settings]


def _counted(count: int) -> str:
    return wording.number(count) if count < COUNT_LIMIT else f"{wording.number(COUNT_LIMIT - 1)}+"


class MomentField(forms.SplitDateTimeField):
    """A date with a time that may be left out: the day's first moment, or its last one."""

    def __init__(self, *, last: bool, label: Any) -> None:
        self.missing = time.max if last else time.min
        # The browser's own pickers: they need no script, and a phone knows them.
        date_attrs: dict[str, Any] = {"type": "date", "aria-label": _("date")}
        time_attrs: dict[str, Any] = {"type": "time", "aria-label": _("time")}
        widget = forms.SplitDateTimeWidget(
            date_attrs=date_attrs, time_attrs=time_attrs, date_format="%Y-%m-%d", time_format="%H:%M"
        )
        super().__init__(widget=widget, label=label, required=False)

    def compress(self, data_list: Any) -> datetime | None:
        """Return the moment; raises ValidationError for a time without a date."""
        if data_list and data_list[0] and data_list[1] is None:
            data_list = [data_list[0], self.missing]
        return super().compress(data_list)


class TimeRange(DateTimeRangeFilterBuilder()):  # type: ignore[misc]  # made at run time, and untyped
    """django-admin-rangefilter's range of times, as a plain form: no script, any CSP."""

    template = "admin/django_pgqueue/job/filter_times.html"
    shortcuts = (
        (_("Last hour"), timedelta(hours=1)),
        (_("Last day"), timedelta(days=1)),
        (_("Last week"), timedelta(7)),
    )

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Return the query set as it is: the list asks by its ``JobFilter``."""
        return queryset

    def narrow(self, asked: JobFilter) -> JobFilter:
        """Narrow to the range; a range that cannot be read finds nothing and says why."""
        if not self.used_parameters:
            return asked
        if not self.form.is_valid():
            return replace(asked, nothing=True)
        given = self.form.cleaned_data
        first, last = (_aware(given[name]) for name in (self.lookup_kwarg_gte, self.lookup_kwarg_lte))
        return asked if first is None and last is None else self.between(asked, first, last)

    def between(self, asked: JobFilter, first: datetime | None, last: datetime | None) -> JobFilter:
        """Return what is asked for, narrowed to the time between two moments."""
        raise NotImplementedError

    def choices(self, changelist: Any) -> Generator[dict[str, Any]]:
        """Yield what the template shows: the rest of the query, a way out, and shortcuts."""
        mine = {*self.expected_parameters(), PAGE_VAR, ERROR_FLAG, *PLACE_VARS}
        others = [
            (name, value) for name, values in self.request.GET.lists() for value in values if name not in mine
        ]
        now = timezone.localtime() if timezone.is_aware(timezone.now()) else timezone.now()
        yield {
            "others": others,
            "active": bool(self.used_parameters),
            "clear": changelist.get_query_string(remove=self.expected_parameters()),
            "shortcuts": [(label, self._link(changelist, now - length)) for label, length in self.shortcuts],
        }

    def _link(self, changelist: Any, start: datetime) -> str:
        wanted = {
            f"{self.lookup_kwarg_gte}_0": f"{start:%Y-%m-%d}",
            f"{self.lookup_kwarg_gte}_1": f"{start:%H:%M}",
        }
        query: str = changelist.get_query_string(wanted, remove=self.expected_parameters())
        return query

    def _get_form_fields(self) -> Any:
        return {
            self.lookup_kwarg_gte: MomentField(last=False, label=_("From")),
            self.lookup_kwarg_lte: MomentField(last=True, label=_("To")),
        }


class EnqueuedFilter(TimeRange):
    """By the time of enqueueing: a range of times is a range of ids."""

    default_title = _("time of enqueueing")

    def between(self, asked: JobFilter, first: datetime | None, last: datetime | None) -> JobFilter:
        """Bound the ids too, so that the list stays a walk along the primary key."""
        return enqueued_between(asked, first, last)


def enqueued_between(asked: JobFilter, first: datetime | None, last: datetime | None) -> JobFilter:
    """Return what is asked for, narrowed to jobs enqueued between two moments."""
    asked = replace(asked, enqueued_from=first, enqueued_to=last)
    try:
        if first is not None:
            asked = replace(asked, first_id=Job.objects.first_id_at(first - ID_DISORDER))
        if last is not None:
            asked = replace(asked, end_id=Job.objects.first_id_at(last + ID_DISORDER))
    except OverflowError:
        return asked  # at an end of the calendar the times themselves are bound enough
    return asked


class FinishedFilter(TimeRange):
    """By the time a job ended."""

    default_title = _("time of ending")

    def between(self, asked: JobFilter, first: datetime | None, last: datetime | None) -> JobFilter:
        """Bound the time of the end, by which the index of ended jobs goes."""
        return replace(asked, finished_from=first, finished_to=last)


def _aware(moment: datetime | None) -> datetime | None:
    return timezone.make_aware(moment) if moment is not None and timezone.is_naive(moment) else moment
