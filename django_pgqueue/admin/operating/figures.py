"""What the overview shows, as numbers: gathered by a constant number of short queries.

Two windows of the past, each read from rollups of one span; and the present, by bounded looks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from django_pgqueue import histograms
from django_pgqueue.depths import Depth, Sample, Scheduled
from django_pgqueue.models import Job
from django_pgqueue.operating import QueuePause, QueueSample, Rollup, Worker
from django_pgqueue.pauses import Pause
from django_pgqueue.readings import COUNT_LIMIT
from django_pgqueue.registry import ALIVE, DEAD, Registered
from django_pgqueue.rollups import Sums, TaskSums, Times


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the past: ``bins`` bins of ``span`` seconds, the last of which has only begun."""

    name: str
    span: int
    bins: int

    @property
    def label(self) -> str:
        """Return how long it is, in words."""
        hours = self.seconds // 3600
        return _("hour") if hours == 1 else _("%d hours") % hours

    @property
    def seconds(self) -> int:
        """Return its length."""
        return self.span * self.bins

    def starts(self, now: float) -> list[int]:
        """Return the times at which its bins begin, in seconds of the epoch."""
        last = int(now) // self.span * self.span
        return [last - ago * self.span for ago in range(self.bins - 1, -1, -1)]


HOUR = Window("1h", 60, 60)
DAY = Window("24h", 900, 96)
WINDOWS = {window.name: window for window in (HOUR, DAY)}


@dataclass(frozen=True, slots=True)
class Past:
    """What happened in a window: one value for each of its bins, oldest first."""

    window: Window
    starts: list[int]
    sums: list[Sums]
    times: list[Times]
    samples: dict[str, list[Sample | None]]
    tasks: list[TaskSums]
    times_of_tasks: dict[tuple[str, str], Times]

    @property
    def total(self) -> Sums:
        """Return the sums of the whole window."""
        return Sums(*map(sum, zip(*self.sums, strict=True)))

    @property
    def all_times(self) -> Times:
        """Return the histograms of the whole window."""
        return Times(_added([times.runs for times in self.times]), _added([t.waits for t in self.times]))


@dataclass(frozen=True, slots=True)
class QueueNow:
    """A queue as it stands; ``declared``: some alias of TASKS names it."""

    depth: Depth
    pause: Pause | None
    slots: int
    has_workers: bool
    declared: bool


@dataclass(frozen=True, slots=True)
class Now:
    """The present."""

    at: float
    queues: list[QueueNow]
    scheduled: Scheduled
    dead: int
    dead_is_more: bool
    workers: list[Registered]
    pauses: dict[str, Pause]

    @property
    def alive(self) -> list[Registered]:
        """Return the workers that have been heard of lately."""
        return [worker for worker in self.workers if worker.state != DEAD]

    @property
    def slots(self) -> int:
        """Return how many jobs the threads of the workers that take new ones can run at once."""
        return sum(worker.slots for worker in self.workers if worker.state == ALIVE)


def past(window: Window, now: float) -> Past:
    """Return what happened in a window that ends now."""
    starts = window.starts(now)
    sums = Rollup.objects.series(window.span, window.seconds)
    times = Rollup.objects.times(window.span, window.seconds)
    none = Times(histograms.empty(), histograms.empty())
    return Past(
        window,
        starts,
        [sums.get(start, Sums()) for start in starts],
        [times.spans.get(start, none) for start in starts],
        samples_of(window, now),
        Rollup.objects.tasks(window.span, window.seconds),
        times.tasks,
    )


def samples_of(window: Window, now: float) -> dict[str, list[Sample | None]]:
    """Return how deep each queue was in each bin of a window that ends now."""
    samples: dict[str, dict[int, Sample]] = {}
    for sample in QueueSample.objects.samples(window.span, window.seconds):
        samples.setdefault(sample.queue, {})[sample.starts_at] = sample
    starts = window.starts(now)
    return {queue: [found.get(start) for start in starts] for queue, found in samples.items()}


def present(declared: Sequence[str]) -> Now:
    """Return how things stand; ``declared`` are the queues that settings name, shown though they be empty."""
    scheduled = QueueSample.objects.scheduled()
    workers = Worker.objects.registered()
    pauses = QueuePause.objects.present()
    found = {depth.queue: depth for depth in QueueSample.objects.depths()}
    dead = Job.objects.status_counts()["dead"]
    names = sorted({*declared, *found, *(queue for queue in pauses if queue)})
    queues = [
        QueueNow(
            found.get(name) or Depth(name, 0, 0, None, None),
            pauses.get(name) or pauses.get(""),
            sum(worker.slots for worker in workers if worker.state == ALIVE and _serves(worker, name)),
            any(worker.state != DEAD and _serves(worker, name) for worker in workers),
            name in declared,
        )
        for name in names
    ]
    return Now(scheduled.now, queues, scheduled, dead, dead >= COUNT_LIMIT, workers, pauses)


def _serves(worker: Registered, queue: str) -> bool:
    return not worker.queues or queue in worker.queues


def _added(columns: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*columns, strict=True)] if columns else histograms.empty()
