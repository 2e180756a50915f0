"""What the pages of operators share: a page in place of a model's list, who may see it, where it links."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse

from django_pgqueue.backend import PgQueueBackend
from django_pgqueue.compat import task_backends

from ..rights import ReadOnlyAdmin

LIVE = "live"
"""The last part of the address at which a page gives only what changes, and the name of its template."""


class PageAdmin(ReadOnlyAdmin):
    """A page of its own where Django would list a model's rows; all who may view jobs see it."""

    page = ""
    """The folder of its templates: ``page.html`` with ``live.html`` in it."""

    class Media:
        css = {"all": ["django_pgqueue/admin.css", "django_pgqueue/operating.css"]}
        js = ["django_pgqueue/live.js"]

    def get_urls(self) -> list[URLPattern]:
        """Return the page's address, that of its changing part, and none of Django's others."""
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        view = self.admin_site.admin_view
        return [
            path("", view(self.changelist_view), name=f"{name}_changelist"),
            path(f"{LIVE}/", view(self.live_view), name=f"{name}_{LIVE}"),
            *self.acts(),
        ]

    def acts(self) -> list[URLPattern]:
        """Return the addresses of what may be done on the page."""
        return []

    def figures(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the changing part of the page shows."""
        raise NotImplementedError

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the page."""
        self._require_view(request)
        context = {
            **self.admin_site.each_context(request),
            "title": str(self.opts.verbose_name_plural).capitalize(),
            "subtitle": None,
            "opts": self.opts,
            "media": self.media,
            "live_url": f"{self.url(LIVE)}?{request.GET.urlencode()}",
            "live_template": f"admin/django_pgqueue/{self.page}/{LIVE}.html",
            **self.figures(request),
            **(extra_context or {}),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, f"admin/django_pgqueue/{self.page}/page.html", context)

    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Return the changing part alone."""
        self._require_view(request)
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            f"admin/django_pgqueue/{self.page}/{LIVE}.html",
            {"opts": self.opts, **self.figures(request)},
        )

    def url(self, act: str = "changelist", *args: Any) -> str:
        """Return an address of this page, or of something done on it."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{act}"
        return reverse(name, args=args, current_app=self.admin_site.name)

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied


class Links:
    """Addresses of other pages of the app, in the same admin site."""

    def __init__(self, site_name: str) -> None:
        self._site = site_name

    def jobs(self, **filters: str) -> str:
        """Return the address of the list of jobs with these filters: status, queue, task."""
        return self._page("job", filters)

    def causes(self, **filters: str) -> str:
        """Return the address of the dead jobs by cause; of their list, where a project has no such page."""
        try:
            return self._page("deadjob", filters)
        except NoReverseMatch:
            return self.jobs(status="dead", **filters)

    def queues(self) -> str:
        """Return the address of the queues."""
        return self._page("queuepause", {})

    def workers(self) -> str:
        """Return the address of the workers."""
        return self._page("worker", {})

    def job(self, job_id: int) -> str:
        """Return the address of a job's page."""
        return reverse("admin:django_pgqueue_job_change", args=[job_id], current_app=self._site)

    def _page(self, model: str, filters: dict[str, str]) -> str:
        address = reverse(f"admin:django_pgqueue_{model}_changelist", current_app=self._site)
        return f"{address}?{urlencode(filters)}" if filters else address


def declared_queues() -> list[str]:
    """Return the names of all queues that settings name, in order."""
    ours: Iterable[PgQueueBackend] = (
        backend
        for alias in task_backends.settings
        if isinstance(backend := task_backends[alias], PgQueueBackend)
    )
    return sorted({name for backend in ours for name in backend.queues})
