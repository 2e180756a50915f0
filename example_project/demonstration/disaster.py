"""``kill -9``, aimed: at a worker process that has jobs in its hands at that moment."""

import os
import signal
import time
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from django_pgqueue.models import Attempt, JobState
from django_pgqueue.states import RUNNING

from .faults import DemoFailed
from .services import Services

PATIENCE = 20.0
"""Seconds to find a process at work."""

SETTLED = 0.3
"""Seconds after which what a stopped process had already sent to the database is committed."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A killed worker process and the jobs that it had claimed and not settled.

    ``jobs`` maps each to the number of the attempt that was due.
    """

    pid: int
    worker_id: str
    jobs: dict[int, int]

    @property
    def shown(self) -> str:
        """The jobs for people: "12, 13, 14 and 5 more"."""
        more = f" and {len(self.jobs) - 3} more" if len(self.jobs) > 3 else ""
        return ", ".join(map(str, list(self.jobs)[:3])) + more


def kill_a_working_child(services: Services) -> Victim:
    """Kill one of the worker's processes that has jobs and return it.  Raises DemoFailed if all stay idle."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        services.check()
        for worker_id in _busiest():
            if victim := _killed_if_busy(worker_id):
                return victim
        time.sleep(0.02)
    raise DemoFailed(f"No worker process had a job within {PATIENCE:.0f} s. See {services.log('workers')}.")


def interrupted_attempts(victim: Victim) -> list[Attempt]:
    """Return the attempts that the victim had begun when it was killed.

    A job that it had only claimed has none: nothing was spent on it.
    """
    attempts = Attempt.objects.filter(job_id__in=victim.jobs, worker_id=victim.worker_id)
    return [attempt for attempt in attempts if attempt.number == victim.jobs[attempt.job_id]]


def _killed_if_busy(worker_id: str) -> Victim | None:
    """Stop the process, look at what it has, and kill it there, so that no job ends between look and kill."""
    # A worker id is HOST.PID.CHANCE.
    pid = int(worker_id.rsplit(".", 2)[1])
    try:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(SETTLED)
        held = _running().filter(worker_id=worker_id).order_by("job_id")
        jobs = {state.job_id: state.attempts + 1 for state in held}
        os.kill(pid, signal.SIGKILL if jobs else signal.SIGCONT)
    except ProcessLookupError:
        return None  # it died of itself: one of the jobs kills its process
    return Victim(pid, worker_id, jobs) if jobs else None


def _busiest() -> list[str]:
    counted = _running().values("worker_id").annotate(jobs=Count("job")).order_by("-jobs")
    return [str(row["worker_id"]) for row in counted]


def _running() -> QuerySet[JobState]:
    return JobState.objects.filter(status=RUNNING)
