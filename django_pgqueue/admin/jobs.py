"""The ModelAdmin of jobs: the list and its actions; the page of one job is in ``jobpage``."""

from dataclasses import replace
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_pgqueue.models import Job
from django_pgqueue.selecting import JobFilter

from . import bulk, page, telling
from .changelist import JobChangeList
from .columns import COLUMNS, task
from .confirmation import CONFIRMED, ask_about, ask_about_all, hidden_of_action
from .filters import (
    PLACE_VARS,
    CauseFilter,
    EnqueuedFilter,
    FinishedFilter,
    QueueFilter,
    StatusFilter,
    TaskFilter,
    task_paths,
)
from .jobpage import JobPage
from .repairs import CANCEL, DISCARD, RETRY, RUN_NOW, Repair, carry_out
from .rights import may

MAX_ID = 2**63 - 1


@admin.register(Job)
class JobAdmin(JobPage):
    """Jobs to look at; to change only through the verbs of operators."""

    list_display = COLUMNS
    list_display_links = ("id", task)
    list_filter = (
        StatusFilter,
        QueueFilter,
        TaskFilter,
        CauseFilter,
        ("enqueued_at", EnqueuedFilter),
        ("state__finished_at", FinishedFilter),
    )
    actions = ("retry_selected", "run_selected_now", "cancel_selected", "discard_selected")
    search_fields = ("id",)  # shows the box; search() is the search
    search_help_text = gettext_lazy("The number of a job, or any part of a task’s path.")
    ordering = ("-id",)
    sortable_by = ("id",)
    list_per_page = 50
    list_max_show_all = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ["django_pgqueue/admin.css"]}

    # --- who may do what

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may retry jobs."""
        return may(request, RETRY)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may cancel jobs."""
        return may(request, CANCEL)

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run scheduled jobs now."""
        return may(request, RUN_NOW)

    def has_discard_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may discard dead and cancelled jobs."""
        return may(request, DISCARD)

    # --- the list

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Return jobs and states from the write alias, without the wide columns."""
        jobs: QuerySet[Job] = page.narrow_jobs()
        return jobs

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[JobChangeList]:
        """Return the class of the list."""
        return JobChangeList

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        """Allow the parameters of the filters and nothing else: ``?args__contains=`` would read every row."""
        filters = {each.parameter_name for each in (StatusFilter, QueueFilter, TaskFilter, CauseFilter)}
        ranges = ("enqueued_at__range__", "state__finished_at__range__")
        return lookup in filters or lookup.startswith(ranges) or lookup in PLACE_VARS

    def search(self, request: HttpRequest, asked: JobFilter, text: str, is_broken: bool) -> JobFilter:
        """Narrow to a job by its exact number, or to jobs by a part of their task's path."""
        term = text.strip()
        if is_broken:  # the form refused it, and Django would ignore it
            return replace(asked, nothing=True)
        if not term:
            return asked
        if term.isascii() and term.isdecimal():
            if len(term) > 19 or int(term) >= MAX_ID:
                return replace(asked, nothing=True)
            return replace(asked, first_id=int(term), end_id=int(term) + 1)
        found = tuple(path for path in task_paths(request) if term.casefold() in path.casefold())
        if asked.task_paths is not None:
            found = tuple(path for path in found if path in asked.task_paths)
        return replace(asked, task_paths=found, nothing=asked.nothing or not found)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list; refuse an action that the user may not take, instead of ignoring it."""
        if request.method == "POST":
            wanted = [_ACTIONS[action] for action in request.POST.getlist("action") if action in _ACTIONS]
            if not all(may(request, repair) for repair in wanted):
                raise PermissionDenied
        return super().changelist_view(request, {"title": _("Jobs"), **(extra_context or {})})

    # --- its actions

    @admin.action(permissions=["retry"], description=RETRY.label_many)
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Retry the selected jobs."""
        return self._act(request, "retry_selected")

    @admin.action(permissions=["run"], description=RUN_NOW.label_many)
    def run_selected_now(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Run the selected scheduled jobs now."""
        return self._act(request, "run_selected_now")

    @admin.action(permissions=["cancel"], description=CANCEL.label_many)
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Cancel the selected jobs."""
        return self._act(request, "cancel_selected")

    @admin.action(permissions=["discard"], description=DISCARD.label_many)
    def discard_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Discard the selected dead and cancelled jobs."""
        return self._act(request, "discard_selected")

    def _act(self, request: HttpRequest, action: str) -> HttpResponse | None:
        repair = _ACTIONS[action]
        hidden, back = hidden_of_action(request, action), request.get_full_path()
        if request.POST.get("select_across") == "1":
            asked = self.get_changelist_instance(request).asked  # type: ignore[attr-defined]  # of our own class
            if CONFIRMED not in request.POST:
                return ask_about_all(request, self, repair, asked, hidden=hidden, back=back)
            return bulk.start(request, self, repair, asked)
        # Not what the filters leave of them: jobs that changed since the page was shown are counted too.
        job_ids = [int(pk) for pk in request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)]
        if repair.asks_first and CONFIRMED not in request.POST:
            return ask_about(request, self, repair, job_ids, hidden=hidden, back=back)
        self.carry_out(request, repair, job_ids)
        return None

    def carry_out(self, request: HttpRequest, repair: Repair, job_ids: list[int]) -> None:
        """Do it to these jobs, and tell what became of them."""
        counts = carry_out(repair, job_ids, user_id=request.user.pk)
        level = messages.SUCCESS if telling.succeeded(counts) else messages.WARNING
        self.message_user(request, telling.told(counts), level)


_ACTIONS = {
    "retry_selected": RETRY,
    "run_selected_now": RUN_NOW,
    "cancel_selected": CANCEL,
    "discard_selected": DISCARD,
}
