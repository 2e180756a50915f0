"""What every supervisor's keeper does for all: promote, rescue by expiry, prune.

Leaderless: each statement skips what another keeper has locked.  Jittered: keepers started together
do not work in step.  A duty that has become dear (dead index entries under a pinned xmin horizon) is
done less often, so that it never takes more than a tenth of the time.
"""

import logging
import random
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from .events import log
from .managers import PROMOTE_HEAD, PromoteMark
from .models import Job
from .retention import Rule, rules_of

BATCH = 1000
SHARE = 0.1
"""Part of the time that one duty may take."""
SWEEP_AT_LEAST_EVERY = 30.0
WALK_FOR = 0.25
"""Seconds that one look for jobs of queues with a retention of their own goes on at most."""
WALK_ANEW_EVERY = 6 * 3600.0
"""Seconds after which such a look begins at the oldest job again, for what was locked when it came by."""


class Duty:
    """Something to do every ``period`` seconds, jittered, and never more than a tenth of the time."""

    def __init__(self, name: str, period: float, act: Callable[[Any], int]) -> None:
        self.name = name
        self.period = period
        self._act = act
        self.due_at = time.monotonic() + period * random.uniform(0.0, 0.5)  # noqa: S311 - jitter

    def run(self, connection: Any) -> int:
        """Do it once; return how many rows it moved and set when it is due again."""
        began = time.monotonic()
        moved = self._act(connection)
        cost = time.monotonic() - began
        pause = 0.0 if moved >= BATCH else max(self.period * random.uniform(0.75, 1.25), cost / SHARE)  # noqa: S311
        self.due_at = time.monotonic() + pause
        return moved

    def postpone(self) -> None:
        """Try again after a period; for a failure."""
        self.due_at = time.monotonic() + self.period * random.uniform(0.75, 1.25)  # noqa: S311


class Promoter:
    """Makes due jobs ready, from a mark on; sweeps from the head while that is cheap."""

    def __init__(self) -> None:
        self._mark = PROMOTE_HEAD
        self._swept_at = float("-inf")
        self._sweep_cost = 0.0
        self.promoted: set[str] = set()
        self.next_in: float | None = None

    def __call__(self, connection: Any) -> int:
        """Promote one batch; return how many.  Most looks find nothing due: they are one cheap question."""
        began = time.monotonic()
        since = began - self._swept_at
        sweep = self._sweep_cost <= SHARE * since or since > SWEEP_AT_LEAST_EVERY
        after = PROMOTE_HEAD if sweep else self._mark
        self.next_in = Job.objects.next_run_at(after=after, connection=connection)
        rows: list[tuple[int, str, datetime]] = []
        if self.next_in is not None and self.next_in <= 0:
            rows = Job.objects.promote(limit=BATCH, after=after, connection=connection)
        if sweep:
            self._swept_at, self._sweep_cost = began, time.monotonic() - began
        if rows:
            self._mark = PromoteMark(rows[-1][2], rows[-1][0])
            self.promoted |= {queue for _, queue, _ in rows}
            log("promoted", jobs=len(rows))
            self.next_in = Job.objects.next_run_at(after=self._mark, connection=connection)
        return len(rows)


def rescue(connection: Any, *, server_up: float) -> int:
    """Take expired jobs from their workers; return how many."""
    rescued = Job.objects.rescue(limit=BATCH, server_up=server_up, connection=connection)
    for job in rescued:
        level = logging.ERROR if job.status == "dead" else logging.WARNING
        log(
            "rescued",
            level,
            job=job.job_id,
            task=job.task_path,
            queue=job.queue,
            status=job.status,
            attempt=job.attempts,
            worker=job.worker_id,
            reason="lease expired",
        )
    return len(rescued)


class Pruner:
    """Deletes ended jobs past their retention, bounded batches at a time."""

    def __init__(self, retention: Mapping[str, Any]) -> None:
        self._rules = rules_of(retention)
        self._after: dict[Rule, Any] = {}
        self._from_head_at: dict[Rule, float] = {}

    def __call__(self, connection: Any) -> int:
        """Prune one batch of each rule; return the size of the largest."""
        most = 0
        for rule in self._rules:
            deleted = self._of_all(rule, connection) if rule.is_general else self._of_some(rule, connection)
            if deleted:
                queues = None if rule.queues is None else ",".join(rule.queues)
                log("pruned", jobs=deleted, status=rule.status, queues=queues)
            most = max(most, deleted)
        return most

    def _of_all(self, rule: Rule, connection: Any) -> int:
        pruned = Job.objects.prune_by(rule, limit=BATCH, after=self._after.get(rule), connection=connection)
        # A full batch has more behind it; the next pass begins at the head again.
        self._after[rule] = pruned.after if pruned.goes_on else None
        return pruned.deleted

    def _of_some(self, rule: Rule, connection: Any) -> int:
        """Walk on from where the last pass ended: what lies before is of other queues, or gone."""
        began = time.monotonic()
        if began - self._from_head_at.get(rule, float("-inf")) > WALK_ANEW_EVERY:
            self._from_head_at[rule] = began
            self._after[rule] = None
        deleted = 0
        while True:
            pruned = Job.objects.prune_by(
                rule, limit=BATCH, after=self._after.get(rule), connection=connection
            )
            self._after[rule] = pruned.after
            deleted += pruned.deleted
            if not pruned.goes_on or deleted >= BATCH or time.monotonic() - began > WALK_FOR:
                return deleted
