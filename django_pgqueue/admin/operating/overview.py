"""The overview: how the queue does now and did in the last hours, and what needs somebody."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_pgqueue import histograms
from django_pgqueue.admin.breaking import breakable
from django_pgqueue.admin.wording import NOTHING, age, duration, number, visible
from django_pgqueue.depths import Sample
from django_pgqueue.operating import Overview
from django_pgqueue.registry import DEAD, Registered
from django_pgqueue.rollups import TaskSums

from . import figures, pictures
from .attention import concerns
from .figures import WINDOWS, Now, Past, QueueNow
from .pages import Links, PageAdmin, declared_queues


@dataclass(frozen=True, slots=True)
class Tile:
    """One number at the top: what it is, what it covers, and where it leads."""

    label: str
    value: str
    covers: str
    address: str = ""
    kind: str = ""


@admin.register(Overview)
class OverviewAdmin(PageAdmin):
    """The page; its figures are also shown on the app's own page in the admin's index."""

    page = "overview"

    def figures(self, request: HttpRequest) -> dict[str, Any]:
        """Return everything that the page shows."""
        window = WINDOWS.get(request.GET.get("window", ""), figures.HOUR)
        links = Links(self.admin_site.name)
        now = figures.present(declared_queues())
        past = figures.past(window, now.at)
        return {
            "windows": [(name, each.label, name == window.name) for name, each in WINDOWS.items()],
            "window": window,
            "page_url": self.url(),
            "now": pictures.clock(int(now.at), seconds=True),
            "concerns": concerns(now, past, links),
            "tiles": tiles(now, past, links),
            "charts": pictures.charts(past),
            "queues": [
                queue_row(queue, past.samples.get(queue.depth.queue, []), links) for queue in now.queues
            ],
            "tasks": [task_row(task, past, links) for task in past.tasks],
            "workers": [worker_row(worker) for worker in now.workers],
            "queues_url": links.queues(),
            "workers_url": links.workers(),
            "causes_url": links.causes(),
        }


def tiles(now: Now, past: Past, links: Links) -> list[Tile]:
    """Return the numbers at the top."""
    return [
        _ready(now, links),
        _oldest(now),
        _running(now, links),
        _later(now, links),
        _dead(now, links),
        _bad(past),
    ]


def _ready(now: Now, links: Links) -> Tile:
    ready = sum(queue.depth.ready for queue in now.queues)
    about = any(queue.depth.is_estimate for queue in now.queues)
    covers = _("in all queues, partly estimated") if about else _("in all queues, counted now")
    return Tile(_("Ready"), _about(ready, about), covers, links.jobs(status="ready"), "ready")


def _oldest(now: Now) -> Tile:
    waited = max((queue.depth.waited or 0.0 for queue in now.queues if queue.depth.ready), default=None)
    value = NOTHING if waited is None else age(waited)
    return Tile(_("Oldest ready"), value, _("since it was due, of all queues"))


def _running(now: Now, links: Links) -> Tile:
    running = sum(queue.depth.running for queue in now.queues)
    covers = _("%(slots)s slots of %(workers)s workers") % {
        "slots": number(now.slots),
        "workers": number(len(now.alive)),
    }
    return Tile(_("Running"), number(running), covers, links.jobs(status="running"), "running")


def _later(now: Now, links: Links) -> Tile:
    scheduled = now.scheduled
    value = number(scheduled.jobs) + ("+" if scheduled.is_more else "")
    ahead = scheduled.next_in
    covers = _("none") if ahead is None else _("next in %s") % age(ahead) if ahead > 0 else _("next is due")
    return Tile(_("Scheduled"), value, covers, links.jobs(status="scheduled"), "scheduled")


def _dead(now: Now, links: Links) -> Tile:
    value = number(now.dead) + ("+" if now.dead_is_more else "")
    return Tile(_("Dead"), value, _("kept now; see why"), links.causes(), "dead" if now.dead else "")


def _bad(past: Past) -> Tile:
    total = past.total
    share = f"{100 * total.bad / total.ended:.1f} %" if total.ended else NOTHING
    covers = _("%(bad)s of %(ended)s attempts, last %(window)s") % {
        "bad": number(int(total.bad)),
        "ended": number(int(total.ended)),
        "window": past.window.label,
    }
    return Tile(_("Failure rate"), share, covers, kind="dead" if total.bad else "")


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue in the table."""

    name: str
    note: str
    note_kind: str
    ready: str
    ready_url: str
    waited: str
    running: str
    running_url: str
    slots: str
    depth_spark: pictures.Spark
    age_spark: pictures.Spark


def queue_row(queue: QueueNow, samples: Sequence[Sample | None], links: Links) -> QueueRow:
    """Return a queue as the table shows it."""
    depth = queue.depth
    kind, note = note_of(queue)
    return QueueRow(
        visible(depth.queue),
        note,
        kind,
        _about(depth.ready, depth.is_estimate),
        links.jobs(status="ready", queue=depth.queue),
        NOTHING if depth.waited is None else age(depth.waited),
        number(depth.running),
        links.jobs(status="running", queue=depth.queue),
        number(queue.slots),
        pictures.depth_spark([sample.ready if sample else 0.0 for sample in samples]),
        pictures.age_spark([(sample.oldest or 0.0) if sample else 0.0 for sample in samples]),
    )


def note_of(queue: QueueNow) -> tuple[str, str]:
    """Return what is remarkable about a queue: a kind for its colour, and a word or two."""
    if queue.pause is not None:
        return "paused", _("drains") if queue.pause.is_draining else _("paused")
    if not queue.has_workers:
        return "bad" if queue.depth.ready else "quiet", _("no worker")
    if not queue.declared:
        return "quiet", _("not in QUEUES")
    return "", ""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task in the table."""

    task: Any
    queue: str
    ended: str
    bad: str
    bad_url: str
    runs: tuple[str, str]
    waits: tuple[str, str]
    total: str
    url: str


def task_row(task: TaskSums, past: Past, links: Links) -> TaskRow:
    """Return a task as the table shows it."""
    times = past.times_of_tasks.get((task.queue, task.task_path))
    sums = task.sums
    return TaskRow(
        breakable(task.task_path),
        visible(task.queue),
        number(int(sums.ended)),
        number(int(sums.bad)) if sums.bad else "",
        links.causes(task=task.task_path),
        percentiles(times.runs if times else ()),
        percentiles(times.waits if times else ()),
        duration(sums.run_seconds),
        links.jobs(task=task.task_path),
    )


def percentiles(counts: Sequence[int]) -> tuple[str, str]:
    """Return the median and the 95th percentile in words."""
    found = (histograms.percentile(counts, share) for share in (0.5, 0.95))
    first, second = (NOTHING if seconds is None else duration(seconds) for seconds in found)
    return first, second


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker in the short table."""

    host: str
    pid: int
    state: str
    queues: str
    busy: str
    beat: str


def worker_row(worker: Registered) -> WorkerRow:
    """Return a worker as the short table shows it."""
    holds = sum(child.holds for child in worker.children)
    return WorkerRow(
        visible(worker.host),
        worker.pid,
        worker.state,
        ", ".join(map(visible, worker.queues)) or _("all queues"),
        NOTHING if worker.state == DEAD else f"{number(holds)} / {number(worker.slots)}",
        age(worker.beat_ago),
    )


def _about(count: int, is_estimate: bool) -> str:
    return _("about %s") % number(count) if is_estimate else number(count)
