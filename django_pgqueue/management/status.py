"""What ``pgqueue_status`` shows, gathered once: queues, the last hour, workers, pauses."""

from dataclasses import dataclass
from typing import Any

from .. import histograms
from ..backend import PgQueueBackend
from ..models import Job
from ..operating import QueuePause, Rollup, Worker
from ..pauses import Pause
from ..readings import QueueStatus
from ..registry import DEAD, Registered
from ..rollups import Sums, TaskSums
from .output import table

SPAN, WINDOW = 60, 3600
TASKS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Status:
    """The present and the last hour; ``times`` are the seconds of run and wait, half and 95 % within."""

    queues: list[QueueStatus]
    worker_processes: int
    workers: list[Registered]
    pauses: dict[str, Pause]
    last_hour: Sums
    times: dict[str, float | None]
    tasks: list[TaskSums]

    def as_json(self, notes: dict[str, str]) -> dict[str, Any]:
        """Return everything for programs."""
        return {
            "worker_processes": self.worker_processes,
            "queues": [{**queue._asdict(), "note": notes[queue.queue]} for queue in self.queues],
            "pauses": [pause._asdict() for pause in self.pauses.values()],
            "last_hour": {**self.last_hour._asdict(), **self.times},
            "tasks": [
                {"queue": each.queue, "task_path": each.task_path, **each.sums._asdict()}
                for each in self.tasks
            ],
            "workers": [
                {**worker._asdict(), "state": worker.state, "slots": worker.slots} for worker in self.workers
            ],
        }

    def lines(self) -> list[str]:
        """Return what is shown below the queues: nothing for a part that has nothing to show."""
        return [*self._of_the_past(), *self._of_tasks(), *self._of_workers()]

    def _of_the_past(self) -> list[str]:
        sums = self.last_hour
        if not sums.ended:
            return []
        bad = f"{sums.bad:.0f} failed or were lost ({sums.bad / sums.ended:.1%})"
        names = (("ran", "run"), ("waited", "wait"))
        shown = {name: _seconds(seconds) for name, seconds in self.times.items()}
        times = "; ".join(
            f"{said} at most {shown[f'{name}_half']}, 95 % at most {shown[f'{name}_most']}"
            for said, name in names
        )
        return ["", f"The last hour: {sums.ended:.0f} attempts ended, {bad}.", f"Half {times}."]

    def _of_tasks(self) -> list[str]:
        rows = [
            (task.task_path, task.queue, f"{task.sums.ended:.0f}", f"{task.sums.bad:.0f}")
            for task in self.tasks[:TASKS_SHOWN]
        ]
        heads = ("task", "queue", "ended", "bad")
        return ["", *table([heads, *rows], numbers=frozenset({2, 3}))] if rows else []

    def _of_workers(self) -> list[str]:
        rows = [
            (
                worker.host,
                str(worker.pid),
                worker.state,
                "" if worker.state == DEAD else f"{sum(c.holds for c in worker.children)}/{worker.slots}",
                f"{worker.memory or 0} MB",
                f"{worker.beat_ago:.0f} s",
                worker.release,
            )
            for worker in self.workers
        ]
        heads = ("worker", "pid", "state", "held/slots", "memory", "beat", "release")
        return ["", *table([heads, *rows], numbers=frozenset({1, 3, 4, 5}))] if rows else []


def status_of(backend: PgQueueBackend) -> Status:
    """Ask once."""
    database = backend.settings.database
    jobs = Job.objects.db_manager(database)
    rollups = Rollup.objects.db_manager(database)
    times = list(rollups.times(SPAN, WINDOW).spans.values())
    runs = [sum(column) for column in zip(*(each.runs for each in times), strict=True)]
    waits = [sum(column) for column in zip(*(each.waits for each in times), strict=True)]
    return Status(
        jobs.queues(),
        jobs.worker_processes(),
        Worker.objects.db_manager(database).registered(),
        QueuePause.objects.db_manager(database).present(),
        Sums(*map(sum, zip(*rollups.series(SPAN, WINDOW).values(), strict=True))),
        {
            f"{name}_{share}": histograms.percentile(counts, part)
            for name, counts in (("run", runs), ("wait", waits))
            for share, part in (("half", 0.5), ("most", 0.95))
        },
        rollups.tasks(SPAN, WINDOW),
    )


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"
