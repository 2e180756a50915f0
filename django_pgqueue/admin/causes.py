"""Dead jobs by cause: what killed jobs, how often and when, with a way to retry or discard all of a cause.

A cause is one exception class, raised at one place of the project, by one task.  The numbers come from an
index of dead jobs alone, whatever else is in the tables.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_pgqueue.listing import Cause, Causes, LastWords
from django_pgqueue.models import DeadJob, Job
from django_pgqueue.redaction import Redactor

from . import spark, tracebacks, wording
from .breaking import breakable
from .filters import MomentField
from .repairs import DISCARD, RETRY
from .rights import ReadOnlyAdmin, may

SLOTS = 24
SHOWN = 50
ENDED = "state__finished_at__range__"
SHORTCUTS = (
    (gettext_lazy("Last hour"), timedelta(hours=1)),
    (gettext_lazy("Last 24 hours"), timedelta(hours=24)),
    (gettext_lazy("Last 7 days"), timedelta(7)),
)
NOTHING = LastWords("", "", "", "", "")


class SpanForm(forms.Form):
    """Two moments, each of which may be left out."""

    since = MomentField(last=False, label=gettext_lazy("From"))
    until = MomentField(last=True, label=gettext_lazy("To"))


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One cause as the page shows it."""

    exception_class: str
    short_class: str
    message: str
    task: SafeString
    place: str
    source: str
    jobs: str
    picture: SafeString
    first_at: str
    last_at: str
    last_ago: str
    latest_job: int
    list_url: str


@admin.register(DeadJob)
class DeadJobAdmin(ReadOnlyAdmin):
    """The page of causes, in the place of a list of a model without a table of its own."""

    class Media:
        css = {"all": ["django_pgqueue/admin.css"]}

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the causes."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = SpanForm(request.GET)
        since, until = (
            (form.cleaned_data[name] for name in ("since", "until")) if form.is_valid() else (None, None)
        )
        found = Job.objects.causes(_aware(since), _aware(until), slots=SLOTS)
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": _("Dead jobs by cause"),
            "subtitle": None,
            "opts": self.opts,
            "jobs_opts": Job._meta,
            "media": self.media,
            "form": form,
            "is_bounded": since is not None or until is not None,
            "shortcuts": _shortcuts(),
            **self._found(request, found, bounded=(since is not None, until is not None)),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/django_pgqueue/deadjob/change_list.html", context)

    def _found(self, request: HttpRequest, found: Causes, *, bounded: tuple[bool, bool]) -> dict[str, Any]:
        shown = found.causes[:SHOWN]
        words = Job.objects.last_words([cause.latest_job for cause in shown]) if shown else {}
        now = timezone.now()
        list_url = reverse("admin:django_pgqueue_job_changelist", current_app=self.admin_site.name)
        span = _range(found.since if bounded[0] else None, found.until if bounded[1] else None)
        rows = [
            _row(
                cause,
                words.get(cause.latest_job, NOTHING),
                found,
                now,
                f"{list_url}?{urlencode({'cause': cause.cause, **span})}",
            )
            for cause in shown
        ]
        total = sum(cause.jobs for cause in found.causes)
        return {
            "rows": rows,
            "summary": _summary(total, len(found.causes)) if rows else "",
            "more": wording.number(len(found.causes) - SHOWN) if len(found.causes) > SHOWN else "",
            "since": wording.moment(found.since),
            "until": wording.moment(found.until),
            "may_retry": may(request, RETRY),
            "may_discard": may(request, DISCARD),
            "time_zone": timezone.get_current_timezone_name(),
        }


def _row(cause: Cause, words: LastWords, found: Causes, now: datetime, list_url: str) -> CauseRow:
    redactor = Redactor(words.task_path, words.backend)
    frames = tracebacks.own_frames(redactor.text("traceback", words.traceback))
    jobs = wording.number(cause.jobs) + ("+" if cause.is_cut else "")
    told = ngettext(
        "%(jobs)s job between %(first)s and %(last)s",
        "%(jobs)s jobs between %(first)s and %(last)s",
        cause.jobs,
    )
    span = {"jobs": jobs, "first": wording.moment(cause.first_at), "last": wording.moment(cause.last_at)}
    return CauseRow(
        exception_class=wording.visible(words.exception_class),
        short_class=wording.visible(wording.short_class(words.exception_class)) or _("unknown"),
        message=wording.visible(redactor.text("message", words.message)),
        task=breakable(words.task_path),
        place=wording.visible(frames[0].place) if frames else "",
        source=wording.visible(frames[0].source) if frames else "",
        jobs=jobs,
        picture=spark.bars(cause.counts, told % span),
        first_at=wording.moment(cause.first_at),
        last_at=wording.moment(cause.last_at),
        last_ago=wording.age(wording.since(cause.last_at, max(now, cause.last_at))),
        latest_job=cause.latest_job,
        list_url=list_url,
    )


def _summary(jobs: int, causes: int) -> str:
    first = ngettext("%s dead job", "%s dead jobs", jobs) % wording.number(jobs)
    return ngettext("%(jobs)s of %(count)s cause", "%(jobs)s of %(count)s causes", causes) % {
        "jobs": first,
        "count": wording.number(causes),
    }


def _range(since: datetime | None, until: datetime | None) -> dict[str, str]:
    """Return the parameters of the list's filter by the time of ending."""
    given: dict[str, str] = {}
    for name, moment in (("gte", since), ("lte", until)):
        if moment is not None:
            local = _local(moment)
            given |= {f"{ENDED}{name}_0": f"{local:%Y-%m-%d}", f"{ENDED}{name}_1": f"{local:%H:%M:%S}"}
    return given


def _shortcuts() -> list[tuple[str, str]]:
    """Return names of spans with their query strings; a night is from six in the evening to eight."""
    now = _local(timezone.now())
    evening = (now - timedelta(days=1)).replace(hour=18, minute=0)
    night = (_("Last night"), evening, evening + timedelta(hours=14))
    spans: list[tuple[str, datetime, datetime | None]] = [night]
    spans += [(str(name), now - length, None) for name, length in SHORTCUTS]
    return [(name, _query(since, until)) for name, since, until in spans]


def _query(since: datetime, until: datetime | None) -> str:
    given = {"since_0": f"{since:%Y-%m-%d}", "since_1": f"{since:%H:%M}"}
    if until is not None:
        given |= {"until_0": f"{until:%Y-%m-%d}", "until_1": f"{until:%H:%M}"}
    return f"?{urlencode(given)}"


def _local(moment: datetime) -> datetime:
    return timezone.localtime(moment) if timezone.is_aware(moment) else moment


def _aware(moment: datetime | None) -> datetime | None:
    return timezone.make_aware(moment) if moment is not None and timezone.is_naive(moment) else moment
