"""What every keeper does so that people can see: rollups, samples of the queues, the ends of drains.

Like the rest of maintenance it is leaderless: whoever comes first counts, the others find nothing to do.  It
costs a few short statements every ten seconds while nothing runs, every five while attempts are counted.
"""

import logging
import random
import time
from typing import Any

from .events import log
from .maintenance import SHARE, Duty
from .operating import QueuePause, QueueSample, Rollup, Worker

COUNT_EVERY, COUNT_IDLE = 5.0, 10.0
"""Seconds between two countings while attempts come in, and while none do."""
ATTEMPTS_AT_ONCE = 20_000
SAMPLE_EVERY = 60.0
TIDY_EVERY = 300.0
TIDY_ROWS = 5_000
HOUR = 3600.0
KEPT = {60: 26 * HOUR, 900: 15 * 24 * HOUR}
"""Seconds for which rollups are kept, by their span; samples as long as the longest."""
DEAD_WORKERS_KEPT = 24 * HOUR


class Watcher:
    """A duty's act: one bounded counting, and now and then the rest."""

    def __init__(self) -> None:
        self._sample_at = self._tidy_at = time.monotonic()
        self.period = COUNT_IDLE

    def __call__(self, connection: Any) -> int:
        """Do what is due; return how many attempts were counted."""
        now = time.monotonic()
        counted = Rollup.objects.count_attempts(limit=ATTEMPTS_AT_ONCE, connection=connection)
        if counted.passed_over:
            log("attempts_not_counted", logging.WARNING, more_than=ATTEMPTS_AT_ONCE)
        self.period = COUNT_EVERY if counted.attempts else COUNT_IDLE
        if counted.is_behind:
            self.period = 0.0
        for queue in QueuePause.objects.end_drains(connection=connection):
            log("queue_drained", queue=queue)
        if now >= self._sample_at:
            self._sample_at = now + SAMPLE_EVERY
            QueueSample.objects.take(connection=connection)
        if now >= self._tidy_at:
            self._tidy_at = now + TIDY_EVERY
            tidy(connection)
        return counted.attempts


def tidy(connection: Any) -> None:
    """Delete what has been kept long enough, a bounded number of rows of each kind."""
    for span, age in KEPT.items():
        Rollup.objects.prune(span, age=age, limit=TIDY_ROWS, connection=connection)
    QueueSample.objects.prune(age=max(KEPT.values()), limit=TIDY_ROWS, connection=connection)
    Worker.objects.forget_stale(age=DEAD_WORKERS_KEPT, limit=TIDY_ROWS, connection=connection)


class WatchDuty(Duty):
    """Counts sooner while there is something to count, and never takes more than a tenth of the time."""

    def __init__(self) -> None:
        self._watcher = Watcher()
        super().__init__("watch", COUNT_EVERY, self._watcher)

    def run(self, connection: Any) -> int:
        """Do it once; return how many attempts were counted."""
        began = time.monotonic()
        counted = self._watcher(connection)
        cost = time.monotonic() - began
        jitter = random.uniform(0.75, 1.25)  # noqa: S311 - jitter
        self.due_at = time.monotonic() + max(self._watcher.period * jitter, cost / SHARE)
        return counted
