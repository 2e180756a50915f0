"""How many jobs a child takes at once: bounded by time, not by count.

Short jobs are fetched ahead, so that no thread waits for a round trip; long ones are not hoarded.
The measure is the moving mean of how long a job occupies a thread.
"""

import random

from ..execution import Execution
from .config import WorkerConfig
from .runners import Runners

BUDGET = 0.1
"""Seconds of work that may wait inside a child."""
MOST = 500
"""Jobs: the largest batch; beyond it a longer statement gains nothing."""
STALL = 1.0
"""Seconds after which jobs that wait behind long ones go back for other workers."""
_WEIGHT = 1 / 16
_SHORTEST = 20e-6


class Prefetch:
    """Decides how many jobs to claim; holds the moving mean."""

    def __init__(self, config: WorkerConfig) -> None:
        self._threads = config.threads
        self._coroutines = config.coroutines
        self._poll = config.poll_interval
        self._mean: float | None = None

    def note(self, execution: Execution) -> None:
        """Take in how long an execution occupied its thread."""
        if execution.started is not None and execution.finished is not None:
            lasted = execution.finished - execution.started
            self._mean = lasted if self._mean is None else self._mean + (lasted - self._mean) * _WEIGHT

    def wanted(self, *, idle: int, waiting: int, awaiting: int) -> int:
        """Return how many jobs to claim now; 0 when enough wait already."""
        room = idle + (self._coroutines - awaiting if awaiting else 0)
        ahead = (
            0 if self._mean is None else min(int(self._threads * BUDGET / max(self._mean, _SHORTEST)), MOST)
        )
        wanted = room + ahead - waiting
        return wanted if wanted >= max(1, ahead // 2) or (idle > waiting and wanted > 0) else 0

    def stalled(self, runners: Runners, now: float) -> bool:
        """True when prefetched jobs wait behind long ones while other workers could run them."""
        if runners.waiting == 0 or now - runners.last_start <= STALL:
            return False
        self._mean = max(self._mean or 0.0, STALL)  # until short jobs end again, take no more than can start
        return True

    def poll_pause(self) -> float:
        """Return the seconds to the next look at an empty queue: jittered, or idle workers poll in step."""
        return self._poll * random.uniform(0.5, 1.5)  # noqa: S311 - jitter
