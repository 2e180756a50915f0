"""The page of one job: where it stands, what happened to it, what it was given, and its buttons."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from django_pgqueue.models import Job

from . import page, wording
from .breaking import breakable
from .confirmation import CONFIRMED, ask_about
from .repairs import CANCEL, REPAIRS, Repair
from .rights import may

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Job]
else:  # not generic at run time
    _ModelAdmin = admin.ModelAdmin


class JobPage(_ModelAdmin):
    """The half of the ModelAdmin of jobs that shows one of them."""

    def carry_out(self, request: HttpRequest, repair: Repair, job_ids: list[int]) -> None:
        """Do it to these jobs, and tell what became of them."""
        raise NotImplementedError

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
            return self.gone(request, object_id)
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
            (repair.name, str(repair.label), self.url(_url_name(repair), job.pk))
            for repair in REPAIRS
            if state.status in repair.applies_to
            and may(request, repair)
            and not (repair is CANCEL and state.cancel_requested_at)
        ]

    def repair_view(self, request: HttpRequest, object_id: str, repair: Repair) -> HttpResponse:
        """Do to one job what its button says, by POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may(request, repair):
            raise PermissionDenied
        job = self.get_object(request, unquote(object_id))
        if job is None:
            return self.gone(request, object_id)
        back = self.url(f"{self.opts.app_label}_{self.opts.model_name}_change", job.pk)
        state = page.state_of(job)
        if (
            repair.asks_first
            and CONFIRMED not in request.POST
            and state
            and state.status in repair.applies_to
        ):
            return ask_about(request, self, repair, [job.pk], hidden=[], back=back)
        self.carry_out(request, repair, [job.pk])
        if repair.name == "discard" and self.get_object(request, unquote(object_id)) is None:
            back = reverse(
                f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist",
                current_app=self.admin_site.name,
            )
        return HttpResponseRedirect(back)

    def gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say that there is no such job."""
        model_admin: Any = self  # Django's stubs leave this method out
        answer: HttpResponse = model_admin._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        return answer

    def url(self, name: str, job_id: int) -> str:
        """Return the address of one of the job's pages."""
        return reverse(f"admin:{name}", args=[job_id], current_app=self.admin_site.name)


def _url_name(repair: Repair) -> str:
    return f"{Job._meta.app_label}_{Job._meta.model_name}_{repair.name}"
