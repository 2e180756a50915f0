"""Bulk operations in the admin: asked for from a list, watched while they go on, stopped.

Whoever may do a repair to one job may ask for it in bulk, and may stop it.
"""

import time
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import router, transaction
from django.db.models import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_pgqueue import states
from django_pgqueue.bulk import RUNNING, BulkOperation, Kind, Standing
from django_pgqueue.carrying import advance
from django_pgqueue.models import Job, Status
from django_pgqueue.selecting import JobFilter
from django_pgqueue.wakeups import notify_after_commit

from . import describing, telling, wording
from .repairs import BY_KIND, Repair
from .rights import ReadOnlyAdmin, may

AT_ONCE = 0.5
"""Seconds for which the request that asks works itself; keepers do the rest."""
MOST_PER_MINUTE = 1_000_000

# --- asking for one


def start(request: HttpRequest, model_admin: Any, repair: Repair, asked: JobFilter) -> HttpResponse:
    """Ask for a bulk operation, do its first batches, and go to its page."""
    back = HttpResponseRedirect(request.get_full_path())
    try:
        per_minute = _rate(request.POST.get("per_minute", ""))
    except ValueError as error:
        model_admin.message_user(request, str(error), messages.ERROR)
        return back
    user: Any = request.user
    using = router.db_for_write(Job)
    if asked.cause is not None:  # when its last job is retried, nothing has this cause any more
        asked = replace(asked, cause_told=describing.cause(asked.cause))
    with transaction.atomic(using=using):
        operation_id, is_new = BulkOperation.objects.start(
            repair.name,
            asked,
            token=_token(request.POST.get("token", "")),
            expected=_whole(request.POST.get("expected", "")),
            per_minute=per_minute,
            user=(str(user.pk), user.get_username()),
        )
        if is_new:
            _log(request, operation_id, repair, asked, per_minute)
    if is_new:
        _work_a_little(operation_id, using)
    operation = BulkOperation.objects.using(using).get(pk=operation_id)
    if operation.standing != RUNNING:
        counts = telling.of_bulk(operation)
        level = messages.SUCCESS if telling.succeeded(counts) else messages.WARNING
        model_admin.message_user(request, operation.error or telling.told(counts), level)
        if operation.changed:
            return HttpResponseRedirect(address_of(operation_id, model_admin.admin_site))
        return back
    return HttpResponseRedirect(address_of(operation_id, model_admin.admin_site))


def address_of(operation_id: int, site: Any) -> str:
    """Return the address of an operation's page."""
    return reverse("admin:django_pgqueue_bulkoperation_change", args=[operation_id], current_app=site.name)


def _work_a_little(operation_id: int, using: str) -> None:
    began = time.monotonic()
    while time.monotonic() - began < AT_ONCE:
        with transaction.atomic(using=using):
            batch = advance(operation_id=operation_id)
            if batch is None:
                return
            notify_after_commit(sorted(batch.queues), using=using)
        if batch.is_last:
            return


def _rate(text: str) -> float | None:
    if not text.strip():
        return None
    rate = _whole(text)
    if not 1 <= rate <= MOST_PER_MINUTE:
        raise ValueError(
            _("The rate must be a whole number of jobs a minute from 1 to %(most)s, not “%(given)s”.")
            % {"most": wording.number(MOST_PER_MINUTE), "given": wording.visible(text[:40])}
        )
    return float(rate)


def _whole(text: str) -> int:
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else 0


def _token(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        return uuid4()  # a form without one: each press is an operation of its own


def _log(
    request: HttpRequest, operation_id: int, repair: Repair, asked: JobFilter, per_minute: float | None
) -> None:
    what = "; ".join(f"{name}: {value}" for name, value in describing.words(asked)) or _("all jobs")
    rate = _(", at most %s a minute") % wording.number(int(per_minute)) if per_minute else ""
    text = _("%(what)s asked for all jobs that match (%(jobs)s)%(rate)s.") % {
        "what": repair.label,
        "jobs": what,
        "rate": rate,
    }
    _entry(request, operation_id, text)


def _entry(request: HttpRequest, operation_id: int, text: str) -> None:
    user: Any = request.user
    LogEntry.objects.create(
        user_id=user.pk,
        content_type_id=ContentType.objects.get_for_model(BulkOperation).pk,
        object_id=str(operation_id),
        object_repr=str(BulkOperation.objects.using(router.db_for_write(Job)).get(pk=operation_id))[:200],
        action_flag=CHANGE,
        change_message=text,
    )


# --- watching and stopping


@admin.display(description=gettext_lazy("what"))
def what(operation: BulkOperation) -> SafeString:
    """Show what was asked for."""
    told = describing.words(JobFilter.from_json(operation.filters))
    jobs = ", ".join(f"{name}: {value}" for name, value in told) or _("all jobs")
    return format_html("<strong>{}</strong> {}", Kind(operation.kind).label, jobs)


@admin.display(description=gettext_lazy("progress"))
def progress(operation: BulkOperation) -> str:
    """Show how many of how many."""
    done = operation.changed + operation.skipped + operation.conflicts
    numbers = {"done": wording.number(done), "total": wording.number(max(operation.expected, done))}
    return _("%(done)s of %(total)s") % numbers


@admin.display(description=gettext_lazy("state"))
def standing(operation: BulkOperation) -> SafeString:
    """Show whether it goes on."""
    kind = {"running": "running", "finished": "succeeded", "stopped": "cancelled"}[operation.standing]
    return format_html(
        '<span class="pgq-pill pgq-{}"><span aria-hidden="true">{}</span> {}</span>',
        kind,
        wording.SIGNS[kind],
        Standing(operation.standing).label,
    )


@admin.register(BulkOperation)
class BulkOperationAdmin(ReadOnlyAdmin):
    """Bulk operations, the latest first; each has a page that shows it going on."""

    list_display = ("id", what, standing, progress, "user_name", "created_at")
    list_display_links = ("id", what)
    ordering = ("-id",)
    sortable_by = ()
    list_per_page = 50
    list_max_show_all = 50
    show_full_result_count = False
    actions = None

    class Media:
        css = {"all": ["django_pgqueue/admin.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[BulkOperation]:
        """Return the operations where the queue lives."""
        return BulkOperation.objects.using(router.db_for_write(Job)).order_by()

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        """Offer no filters."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """Add the addresses of the button and of the numbers."""
        name = "django_pgqueue_bulkoperation"
        return [
            path("<int:pk>/stop/", self.admin_site.admin_view(self.stop_view), name=f"{name}_stop"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show an operation: what was asked for, by whom, and how far it is."""
        if request.method not in ("GET", "HEAD") or not self.has_view_permission(request):
            raise PermissionDenied
        operation: Any = self.get_object(request, unquote(object_id))
        if operation is None:
            model_admin: Any = self
            answer: HttpResponse = model_admin._get_obj_does_not_exist_redirect(request, self.opts, object_id)
            return answer
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            "admin/django_pgqueue/bulkoperation/change_form.html",
            {**self._page_context(request, operation), **(extra_context or {})},
        )

    def _page_context(self, request: HttpRequest, operation: Any) -> dict[str, Any]:
        asked = JobFilter.from_json(operation.filters)
        repair = BY_KIND[operation.kind]
        return {
            **self.admin_site.each_context(request),
            "title": _("%(what)s in bulk, no. %(number)d") % {"what": repair.label, "number": operation.pk},
            "subtitle": None,
            "opts": self.opts,
            "media": self.media,
            "operation": operation,
            "original": operation,
            "has_view_permission": True,
            "pill": standing(operation),
            "asked": describing.words(asked),
            "numbers": numbers(operation),
            "share": share(operation),
            **outcomes(operation),
            "time_zone": timezone.get_current_timezone_name(),
            "may_stop": operation.standing == RUNNING and may(request, repair),
            "no_worker": operation.standing == RUNNING and not Job.objects.worker_processes(),
            "rate": wording.number(int(operation.per_minute)) if operation.per_minute else "",
            "created": wording.moment(operation.created_at),
            "ended": wording.moment(operation.ended_at),
        }

    def stop_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Stop an operation after its present batch, by POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        operation: Any = self.get_object(request, str(pk))
        if operation is None or not may(request, BY_KIND[operation.kind]):
            raise PermissionDenied
        user: Any = request.user
        if BulkOperation.objects.stop(pk, user_name=user.get_username()):
            _entry(request, pk, _("Stopped."))
            self.message_user(request, _("Stopped: no further jobs are touched."), messages.SUCCESS)
        else:
            self.message_user(request, _("It had ended before."), messages.WARNING)
        return HttpResponseRedirect(address_of(pk, self.admin_site))


def share(operation: Any) -> int:
    """Return the percentage that is done."""
    done = operation.changed + operation.skipped + operation.conflicts
    if operation.standing != RUNNING and not operation.stopped_by and not operation.error:
        return 100
    return int(100 * done / max(operation.expected, done, 1))


def numbers(operation: Any) -> list[tuple[str, str]]:
    """Return the figures of an operation with their names."""
    return [
        (_("Found at the start"), wording.number(operation.expected)),
        (_("Done"), wording.number(operation.changed)),
        (_("Skipped, as they had changed meanwhile"), wording.number(operation.skipped)),
        (_("In conflict with a live job of the same key"), wording.number(operation.conflicts)),
    ]


def outcomes(operation: Any) -> dict[str, Any]:
    """Return what became of the jobs that an operation changed, and whether those are not all of them."""
    if not operation.changed or operation.kind == Kind.DISCARD:
        return {"outcomes": [], "goes_on": operation.standing == RUNNING}
    counts, examples = BulkOperation.objects.outcomes(operation.pk)
    told = [
        {
            "kind": status,
            "sign": wording.SIGNS.get(status, wording.NOTHING),
            "label": Status(status).label if status in Status.values else _("gone"),
            "count": wording.number(counts[status]),
            "examples": examples[status] if status in Status.values else [],
        }
        for status in (*Status.values, "gone")
        if status in counts
    ]
    return {
        "outcomes": told,
        "outcomes_are_cut": sum(counts.values()) < operation.changed,
        "goes_on": operation.standing == RUNNING or bool(states.LIVE & set(counts)),
    }
