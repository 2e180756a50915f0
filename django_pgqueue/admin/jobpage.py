"""The page of one job: where it stands, what happened to it, what it was given, and its buttons."""

from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from django_pgqueue.models import Job
from django_pgqueue.redaction import Redactor

from . import moving, page, relatives, rerunning, timeline, wording
from .breaking import breakable
from .confirmation import CONFIRMED, ask_about
from .repairs import CANCEL, REPAIRS, Repair
from .rerunning import RERUN_OF
from .rights import MOVE, RERUN, ReadOnlyAdmin, may

NAME = f"{Job._meta.app_label}_{Job._meta.model_name}"


class JobPage(ReadOnlyAdmin):
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
        forms = [
            path(f"<path:object_id>/{name}/", self.admin_site.admin_view(view), name=f"{NAME}_{name}")
            for name, view in (("rerun", self.rerun_view), ("move", self.move_view))
        ]
        return [*buttons, *forms, *super().get_urls()]

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
        redactor = Redactor(job.task_path, job.backend)
        given = page.payload(job, redactor)  # first: the redactor learns from the arguments what to hide
        attempts = page.attempts(job, job.now, request.GET.get("attempts", "1"), redactor)
        past = timeline.stretches(job, state, attempts.found, job.now) if attempts.number == 1 else []
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
            "last_error": page.last_error(job, redactor),
            "timeline": timeline.lines(past),
            "strip": timeline.picture(past),
            "earlier": attempts.total - len(attempts.found) if past else 0,
            "parent": relatives.parent(job),
            "children": relatives.children(job, request.GET.get("children", "")),
            "rerun_of": _job_id(given.metadata.get(RERUN_OF)),
            "rerun_url": self.url(f"{NAME}_rerun", job.pk) if may(request, RERUN) else "",
            "move": self._move_form(request, job),
            "facts": page.facts(job),
            "payload": given.texts,
            "steps": page.steps(job, redactor),
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

    def rerun_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the arguments to be edited, and enqueue a new job with them."""
        if not may(request, RERUN):
            raise PermissionDenied
        job = self.get_object(request, unquote(object_id))
        if job is None:
            return self.gone(request, object_id)
        first = rerunning.original(job.pk)
        form = rerunning.RerunForm(first, request.POST if request.method == "POST" else None)
        if form.is_bound and not first.is_too_large and form.is_valid():
            new_id = rerunning.rerun(first, form.cleaned_data["args"], form.cleaned_data["kwargs"])
            self.log_change(request, job, _("Run again with other arguments, as job %d.") % new_id)
            self.message_user(
                request, _("Enqueued as a new job, made from job %d.") % job.pk, messages.SUCCESS
            )
            return HttpResponseRedirect(self.url(f"{NAME}_change", new_id))
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": _("Run job %d again, with other arguments") % job.pk,
            "subtitle": None,
            "opts": self.opts,
            "media": self.media,
            "name": _("Job %d") % job.pk,
            "task": breakable(job.task_path),
            "form": form,
            "too_large": first.is_too_large,
            "back": self.url(f"{NAME}_change", job.pk),
        }
        return TemplateResponse(request, "admin/django_pgqueue/job/rerun.html", context)

    def _move_form(self, request: HttpRequest, job: Job) -> moving.MoveForm | None:
        state = page.state_of(job)
        if state is None or state.status not in moving.MOVABLE or not may(request, MOVE):
            return None
        return moving.MoveForm(state)

    def move_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Put a waiting job into another queue, or give it another priority, by POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may(request, MOVE):
            raise PermissionDenied
        job = self.get_object(request, unquote(object_id))
        if job is None:
            return self.gone(request, object_id)
        state = page.state_of(job)
        if state is not None:
            told, level = moving.move(state, moving.MoveForm(state, request.POST))
            if level == messages.SUCCESS:
                self.log_change(request, job, told)
            self.message_user(request, told, level)
        return HttpResponseRedirect(self.url(f"{NAME}_change", job.pk))

    def gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say that there is no such job."""
        model_admin: Any = self  # Django's stubs leave this method out
        answer: HttpResponse = model_admin._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        return answer

    def url(self, name: str, job_id: int) -> str:
        """Return the address of one of the job's pages."""
        return reverse(f"admin:{name}", args=[job_id], current_app=self.admin_site.name)


def _job_id(value: Any) -> int | None:
    return value if type(value) is int and 0 < value < 2**63 else None


def _url_name(repair: Repair) -> str:
    return f"{NAME}_{repair.name}"
