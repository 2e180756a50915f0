"""The workers: who is there, what each runs now, and a wish that one stop."""

from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from django_pgqueue.admin.breaking import breakable
from django_pgqueue.admin.wording import NOTHING, age, duration, moment, number, visible
from django_pgqueue.operating import Worker
from django_pgqueue.registry import ALIVE, DEAD, STOPPING, ChildProcess, Registered, RunningJob

from ..rights import may
from .acts import latest, log_act, name_of
from .pages import Links, PageAdmin

PERMISSION = "stop_worker"
SHOWN_OF_A_CHILD = 25
"""Jobs of one child that the page lists: what it has claimed ahead among them."""


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job that a child has."""

    job_id: int
    address: str
    task: SafeString | str
    queue: str
    since: str


@dataclass(frozen=True, slots=True)
class ChildLine:
    """A child and what it has."""

    pid: int
    memory: str
    jobs: list[JobLine]
    more: str


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A worker with its facts: pairs of a name and a value."""

    worker_id: str
    title: str
    state: str
    state_text: str
    facts: list[tuple[str, str]]
    children: list[ChildLine]
    told: str
    can_stop: bool


@admin.register(Worker)
class WorkerAdmin(PageAdmin):
    """The page of workers."""

    page = "workers"

    def acts(self) -> list[URLPattern]:
        """Return the address of the button."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_stop"
        return [path("stop/", self.admin_site.admin_view(self.stop_view), name=name)]

    def figures(self, request: HttpRequest) -> dict[str, Any]:
        """Return the workers with what they run."""
        running = Worker.objects.running()
        allowed = may(request, PERMISSION)
        links = Links(self.admin_site.name)
        workers = Worker.objects.registered()
        known = {child.worker_id for worker in workers for child in worker.children}
        return {
            "workers": [_line(worker, running, allowed, links) for worker in workers],
            "strangers": [
                _child_line(ChildProcess(worker_id, 0, None, 0), jobs, links)
                for worker_id, jobs in running.items()
                if worker_id not in known
            ],
            "stop_url": self.url("stop"),
            "entries": latest(Worker),
        }

    def stop_view(self, request: HttpRequest) -> HttpResponse:
        """Ask a worker to stop, by POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may(request, PERMISSION):
            raise PermissionDenied
        worker_id = request.POST.get("worker_id", "").replace("\x00", "")
        with transaction.atomic():
            asked = Worker.objects.ask_to_stop(worker_id, by=name_of(request))
            if asked:
                log_act(request, Worker, worker_id, worker_id, _("Asked to stop."))
        if asked:
            messages.success(
                request, _("%s was asked to stop; it hears of it with its next beat.") % worker_id
            )
        else:
            messages.warning(request, _("%s is gone, or was asked before.") % visible(worker_id))
        return HttpResponseRedirect(self.url())


def _line(
    worker: Registered, running: dict[str, list[RunningJob]], allowed: bool, links: Links
) -> WorkerLine:
    is_dead = worker.state == DEAD
    children = [_child_line(child, running.get(child.worker_id, []), links) for child in worker.children]
    return WorkerLine(
        worker.worker_id,
        _("%(host)s, process %(pid)d") % {"host": visible(worker.host), "pid": worker.pid},
        worker.state,
        {ALIVE: _("alive"), STOPPING: _("stopping"), DEAD: _("dead")}[worker.state],
        _facts(worker),
        [child for child in children if child.jobs] if is_dead else children,
        _told(worker),
        allowed and worker.state == ALIVE,
    )


def _facts(worker: Registered) -> list[tuple[str, str]]:
    holds = sum(child.holds for child in worker.children)
    return [
        (_("last beat"), _("%s ago") % duration(worker.beat_ago)),
        (_("started"), _("%s ago") % age(worker.started_ago)),
        (_("queues"), ", ".join(map(visible, worker.queues)) or _("all queues")),
        (
            _("slots"),
            _("%(processes)d processes × %(threads)d threads")
            % {"processes": worker.processes, "threads": worker.threads},
        ),
        (_("jobs held"), NOTHING if worker.state == DEAD else number(holds)),
        (_("memory"), NOTHING if worker.memory is None else _("%s MB") % number(worker.memory)),
        (_("release"), visible(worker.release) or NOTHING),
        (_("django_pgqueue"), visible(worker.version)),
    ]


def _told(worker: Registered) -> str:
    if worker.state == DEAD:
        return _("Not heard of for %s. What it ran is rescued when its leases end.") % age(worker.beat_ago)
    if worker.stop_requested_at is not None:
        return _("Asked to stop by %(by)s on %(when)s.") % {
            "by": visible(worker.stop_requested_by),
            "when": moment(worker.stop_requested_at),
        }
    return ""


def _child_line(child: ChildProcess, jobs: list[RunningJob], links: Links) -> ChildLine:
    shown = jobs[:SHOWN_OF_A_CHILD]
    lines = [
        JobLine(
            job.job_id,
            links.job(job.job_id),
            breakable(job.task_path) if job.task_path else NOTHING,
            visible(job.queue),
            duration(job.seconds),
        )
        for job in shown
    ]
    more = _("and %s more") % number(len(jobs) - len(shown)) if len(jobs) > len(shown) else ""
    memory = NOTHING if child.memory is None else _("%s MB") % number(child.memory)
    return ChildLine(child.pid, memory, lines, more)
