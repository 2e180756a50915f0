"""The ModelAdmin of jobs: puts the rooms of this package together."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_pgqueue.models import Job

from . import page, telling, wording
from .breaking import breakable
from .changelist import JobChangeList
from .columns import COLUMNS, task
from .confirmation import CONFIRMED, confirmation_page, eligible, hidden_of_action
from .filters import EnqueuedFilter, FinishedFilter, QueueFilter, StatusFilter, TaskFilter, task_paths
from .paginator import BoundedPaginator
from .repairs import CANCEL, MOST_AT_ONCE, REPAIRS, RETRY, RUN_NOW, Repair, carry_out

MAX_ID = 2**63 - 1


if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Job]
else:  # not generic at run time
    _ModelAdmin = admin.ModelAdmin


@admin.register(Job)
class JobAdmin(_ModelAdmin):
    """Jobs to look at; to change only through Retry, Cancel and Run now."""

    list_display = COLUMNS
    list_display_links = ("id", task)
    list_filter = (
        StatusFilter,
        QueueFilter,
        TaskFilter,
        ("enqueued_at", EnqueuedFilter),
        ("state__finished_at", FinishedFilter),
    )
    actions = ("retry_selected", "run_selected_now", "cancel_selected")
    search_fields = ("id",)  # shows the box; get_search_results() is the search
    search_help_text = gettext_lazy("The number of a job, or any part of a task’s path.")
    ordering = ("-id",)
    sortable_by = ("id",)
    list_per_page = 50
    list_max_show_all = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ["django_pgqueue/admin.css"]}

    # --- who may do what

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Jobs are enqueued by code."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The queue owns every field."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Maintenance prunes ended jobs."""
        return False

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may retry jobs."""
        return self._may(request, RETRY)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may cancel jobs."""
        return self._may(request, CANCEL)

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run scheduled jobs now."""
        return self._may(request, RUN_NOW)

    def _gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        admin: Any = self  # Django's stubs leave this method out
        answer: HttpResponse = admin._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        return answer

    def _may(self, request: HttpRequest, repair: Repair) -> bool:
        user: Any = request.user  # whatever model the project has for it
        return self.has_view_permission(request) and bool(user.has_perm(repair.codename))

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
        filters = {StatusFilter.parameter_name, QueueFilter.parameter_name, TaskFilter.parameter_name}
        ranges = ("enqueued_at__range__", "state__finished_at__range__")
        return lookup in filters or lookup.startswith(ranges)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        """Find a job by its exact number, or jobs by a part of their task's path."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.isascii() and term.isdecimal():
            return (
                queryset.filter(pk=int(term)) if len(term) < 20 and int(term) <= MAX_ID else queryset.none()
            ), False
        found = [task_path for task_path in task_paths(request) if term.casefold() in task_path.casefold()]
        return (queryset.filter(task_path__in=found) if found else queryset.none()), False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list; refuse an action that the user may not take, instead of ignoring it."""
        if request.method == "POST":
            asked = [_ACTIONS[action] for action in request.POST.getlist("action") if action in _ACTIONS]
            if not all(self._may(request, repair) for repair in asked):
                raise PermissionDenied
        return super().changelist_view(request, {"title": _("Jobs"), **(extra_context or {})})

    # --- its actions

    @admin.action(permissions=["retry"], description=RETRY.label_many)
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Retry the selected jobs."""
        return self._act(request, queryset, "retry_selected")

    @admin.action(permissions=["run"], description=RUN_NOW.label_many)
    def run_selected_now(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Run the selected scheduled jobs now."""
        return self._act(request, queryset, "run_selected_now")

    @admin.action(permissions=["cancel"], description=CANCEL.label_many)
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Cancel the selected jobs."""
        return self._act(request, queryset, "cancel_selected")

    def _act(self, request: HttpRequest, queryset: QuerySet[Job], action: str) -> HttpResponse | None:
        repair = _ACTIONS[action]
        across = request.POST.get("select_across") == "1"
        if (across or repair.asks_first) and CONFIRMED not in request.POST:
            hidden = hidden_of_action(request, action)
            return confirmation_page(
                request, self, repair, queryset, hidden=hidden, back=request.get_full_path()
            )
        if across:
            job_ids = sorted(eligible(repair, queryset).values_list("pk", flat=True)[:MOST_AT_ONCE])
        else:
            # Not what the filters leave of them: jobs that changed since the page was shown are counted too.
            job_ids = [int(pk) for pk in request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)]
        self._carry_out(request, repair, job_ids)
        return None

    def _carry_out(self, request: HttpRequest, repair: Repair, job_ids: list[int]) -> None:
        counts = carry_out(repair, job_ids, user_id=request.user.pk)
        level = messages.SUCCESS if telling.succeeded(counts) else messages.WARNING
        self.message_user(request, telling.told(counts), level)

    # --- the page of one job

    def get_urls(self) -> list[URLPattern]:
        """Add the addresses of the buttons."""

        buttons = [
            path(
                f"<path:object_id>/{repair.name}/",
                self.admin_site.admin_view(self.repair_view),
                {"repair": repair},
                name=_url_name(repair),
            )
            for repair in REPAIRS
        ]
        return [*buttons, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show one job: where it stands, what happened, what was asked.  Nothing on it can be edited."""
        if request.method not in ("GET", "HEAD") or not self.has_view_permission(request):
            raise PermissionDenied
        job: Any = self.get_object(request, unquote(object_id))
        if job is None:
            return self._gone(request, object_id)
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            "admin/django_pgqueue/job/change_form.html",
            {**self._page_context(request, job), **(extra_context or {})},
        )

    def _page_context(self, request: HttpRequest, job: Any) -> dict[str, Any]:
        state = page.state_of(job)
        attempts = page.attempts(job, job.now, request.GET.get("attempts", "1"))
        return {
            **self.admin_site.each_context(request),
            "title": _("Job %d") % job.pk,
            "subtitle": None,
            "opts": self.opts,
            "media": self.media,
            "original": job,
            "task": breakable(job.task_path),
            "change": True,
            "has_view_permission": True,
            "preserved_filters": self.get_preserved_filters(request),
            "state": state,
            "pill": page.status_pill(state.status) if state else None,
            "story": wording.story(state, job.now) if state else [],
            "progress": wording.progress(state) if state else "",
            "share_done": wording.share_done(state) if state else None,
            "last_error": page.last_error(job),
            "facts": page.facts(job),
            "payload": page.payload(job.pk),
            "nothing": wording.NOTHING,
            "attempts": attempts,
            "buttons": self._buttons(request, job),
            "time_zone": timezone.get_current_timezone_name(),
        }

    def _buttons(self, request: HttpRequest, job: Job) -> list[tuple[str, str, str]]:
        state = page.state_of(job)
        if state is None:
            return []
        return [
            (repair.name, str(repair.label), self._url(_url_name(repair), job.pk))
            for repair in REPAIRS
            if state.status in repair.applies_to
            and self._may(request, repair)
            and not (repair is CANCEL and state.cancel_requested_at)
        ]

    def repair_view(self, request: HttpRequest, object_id: str, repair: Repair) -> HttpResponse:
        """Do to one job what its button says, by POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self._may(request, repair):
            raise PermissionDenied
        job = self.get_object(request, unquote(object_id))
        if job is None:
            return self._gone(request, object_id)
        back = self._url(f"{self.opts.app_label}_{self.opts.model_name}_change", job.pk)
        state = page.state_of(job)
        if (
            repair.asks_first
            and CONFIRMED not in request.POST
            and state
            and state.status in repair.applies_to
        ):
            jobs = self.get_queryset(request).filter(pk=job.pk)
            return confirmation_page(request, self, repair, jobs, hidden=[], back=back)
        self._carry_out(request, repair, [job.pk])
        return HttpResponseRedirect(back)

    def _url(self, name: str, job_id: int) -> str:
        return reverse(f"admin:{name}", args=[job_id], current_app=self.admin_site.name)


_ACTIONS = {
    "retry_selected": RETRY,
    "run_selected_now": RUN_NOW,
    "cancel_selected": CANCEL,
}


def _url_name(repair: Repair) -> str:
    return f"{Job._meta.app_label}_{Job._meta.model_name}_{repair.name}"
