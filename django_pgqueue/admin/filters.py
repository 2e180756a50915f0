"""The filters of the list: by state, queue, task, and two ranges of time.

Each is served by an index, and their choices come from settings and index probes, never from a
DISTINCT over the table.  A value that makes no sense finds nothing: it never widens the list, on
which somebody may press "retry all".
"""

from collections.abc import Generator
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

from django_pgqueue import states
from django_pgqueue.backend import PgQueueBackend
from django_pgqueue.compat import task_backends
from django_pgqueue.models import Job, Status
from django_pgqueue.readings import COUNT_LIMIT

from . import wording
from .breaking import breakable

ENDED = sorted(states.ENDED)
ENDED_LAST_FIRST = ("-state__finished_at", "-pk")
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
    condition = ""

    def values(self, request: HttpRequest) -> list[str]:
        """Return the values to choose from."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choices; the present one is among them even when nothing else names it."""
        present = self.value()
        values = set(self.values(request)) | ({present} if present else set())
        return [(value, value) for value in sorted(values)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Narrow the list to the chosen value."""
        value = self.value()
        if value is None:
            return queryset
        if "\x00" in value:
            return queryset.none()
        return queryset.filter(**{self.condition: value})


class StatusFilter(ChoiceFilter):
    """By state, with how many there are of each."""

    title = _("state")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the six states."""
        counts = Job.objects.status_counts()
        return [(value, f"{label} ({_counted(counts[value])})") for value, label in Status.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Narrow the list to one state, in words that the partial indexes understand."""
        value = self.value()
        if value is None:
            return queryset
        if value not in states.STATUSES:
            return queryset.none()
        if value in states.ENDED:
            queryset = queryset.filter(state__finished_at__isnull=False)
        return queryset.filter(state__status=value)

    def order(self) -> tuple[str, ...]:
        """Return the order that the index of the chosen state has; empty for the list's own."""
        if self.value() in states.ENDED:
            return ENDED_LAST_FIRST
        return ("state__run_at", "pk") if self.value() == states.SCHEDULED else ()


class QueueFilter(ChoiceFilter):
    """By queue: those of the settings and those that hold ready jobs."""

    title = _("queue")
    parameter_name = "queue"
    condition = "queue"

    def values(self, request: HttpRequest) -> list[str]:
        """Return the names of the queues."""
        declared = (backend.queues for backend in _backends() if isinstance(backend, PgQueueBackend))
        return [*Job.objects.ready_queues(), *(name for queues in declared for name in queues)]


class TaskFilter(ChoiceFilter):
    """By task, whether or not this code still has it."""

    title = _("task")
    parameter_name = "task"
    condition = "task_path"

    def values(self, request: HttpRequest) -> list[str]:
        """Return the paths of the tasks."""
        return task_paths(request)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choices, whose labels may break as names do."""
        return [(value, breakable(value)) for value, _label in super().lookups(request, model_admin)]


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
        """Narrow the list to the range; a range that cannot be read finds nothing and says why."""
        if not self.used_parameters:
            return queryset
        if not self.form.is_valid():
            return queryset.none()
        given = self.form.cleaned_data
        first, last = given[self.lookup_kwarg_gte], given[self.lookup_kwarg_lte]
        if first is not None:
            queryset = queryset.filter(**{f"{self.field_path}__gte": first})
        if last is not None:
            queryset = queryset.filter(**{f"{self.field_path}__lte": last})
        return self.narrow(queryset, first, last)

    def narrow(self, queryset: QuerySet[Job], first: datetime | None, last: datetime | None) -> QuerySet[Job]:
        """Add what lets an index serve the range."""
        raise NotImplementedError

    def choices(self, changelist: Any) -> Generator[dict[str, Any]]:
        """Yield what the template shows: the rest of the query, a way out, and shortcuts."""
        mine = {*self.expected_parameters(), PAGE_VAR, ERROR_FLAG}
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

    def narrow(self, queryset: QuerySet[Job], first: datetime | None, last: datetime | None) -> QuerySet[Job]:
        """Bound the ids too, so that the list stays a walk along the primary key."""
        try:
            if first is not None:
                queryset = queryset.filter(pk__gte=Job.objects.first_id_at(first - ID_DISORDER))
            if last is not None:
                queryset = queryset.filter(pk__lt=Job.objects.first_id_at(last + ID_DISORDER))
        except OverflowError:
            return queryset  # at an end of the calendar the times themselves are bound enough
        return queryset


class FinishedFilter(TimeRange):
    """By the time a job ended."""

    default_title = _("time of ending")

    def narrow(self, queryset: QuerySet[Job], first: datetime | None, last: datetime | None) -> QuerySet[Job]:
        """Name the states that end, which lead the index."""
        return queryset.filter(state__status__in=ENDED)

    def order(self) -> tuple[str, ...]:
        """Return the index's order while a range is chosen."""
        return ENDED_LAST_FIRST if self.used_parameters else ()

    def parts(self, queryset: QuerySet[Job]) -> list[QuerySet[Job]]:
        """Return the list in a part for each state that ends: the index has each of them in order."""
        return [queryset.filter(state__status=status) for status in ENDED] if self.used_parameters else []
