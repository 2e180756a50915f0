"""Where a worker looks for its next jobs: queues in their order, a cursor for each, and the sweep rule.

While any transaction pins the xmin horizon, the index entries of jobs that were claimed stay dead at
the head of the claim index, and a claim from the head walks them all.  So a claim starts behind the
last row it took, and sweeps from the head only when the last sweep's cost is small against the time
since then.  In a healthy database a sweep is cheap, happens nearly every time, and order is exact.
"""

import random
import time
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ..models import Job
from ..records import HEAD, Claimed, Cursor

SWEEP_SHARE = 0.1
"""Part of the time that may go into sweeping."""
SWEEP_AT_LEAST_EVERY = 5.0
"""Seconds: the longest that a job may wait before the cursor."""
QUEUES_KNOWN_FOR = 1.0
"""Seconds for which the list of queues with ready jobs is kept, when any queue is served."""


@dataclass(slots=True)
class QueueCursor:
    """The place behind which one queue is claimed, and what the last sweep cost."""

    after: Cursor = HEAD
    must_sweep: bool = True
    swept_at: float = 0.0
    sweep_cost: float = 0.0

    def start(self, now: float) -> Cursor:
        """Return where the next claim begins; ``HEAD`` for a sweep."""
        since = now - self.swept_at
        cheap = self.sweep_cost <= SWEEP_SHARE * since
        if self.must_sweep or cheap or since >= SWEEP_AT_LEAST_EVERY:
            return HEAD
        return self.after

    def note(self, started: Cursor, jobs: list[Claimed], limit: int, now: float, cost: float) -> bool:
        """Take in a claim's result; return True when it shows that nothing is ready in the queue.

        A short claim says so only if it looked from the head.
        """
        swept = started == HEAD
        short = len(jobs) < limit
        if swept:
            self.swept_at, self.sweep_cost = now, cost
        places = [(job.rank, job.position, job.job_id) for job in jobs]
        if jobs:
            self.after = jobs[-1].cursor
        self.must_sweep = short or places != sorted(places)
        return swept and short


class Claimer:
    """Claims jobs of the worker's queues, one queue a statement, strictly in their order."""

    def __init__(self, queues: tuple[str, ...], *, worker_id: str, lease: float) -> None:
        self._queues = queues
        self._worker_id = worker_id
        self._lease = lease
        self._cursors: dict[str, QueueCursor] = {}
        self._found: list[str] = []
        self._found_at = float("-inf")

    def reset(self) -> None:
        """Sweep at the next claim; after a reconnect."""
        for cursor in self._cursors.values():
            cursor.must_sweep = True
        self._found_at = float("-inf")

    def claim(self, limit: int, *, connection: Any) -> tuple[list[Claimed], bool]:
        """Claim up to ``limit`` jobs; return them, and True when every queue was seen to hold no more."""
        jobs: list[Claimed] = []
        empty = True
        for queue in self._queues_now(connection):
            while len(jobs) < limit:
                more, nothing = self._claim_queue(queue, limit - len(jobs), connection)
                jobs += more
                if nothing:
                    break
            else:
                empty = False
        return jobs, empty

    def _claim_queue(self, queue: str, limit: int, connection: Any) -> tuple[list[Claimed], bool]:
        cursor = self._cursors.setdefault(queue, QueueCursor())
        began = time.monotonic()
        start = cursor.start(began)
        jobs = Job.objects.claim(
            queue,
            limit=limit,
            worker_id=self._worker_id,
            lease_token=uuid4(),
            lease=self._lease,
            after=start,
            connection=connection,
        )
        now = time.monotonic()
        return jobs, cursor.note(start, jobs, limit, now, now - began)

    def _queues_now(self, connection: Any) -> list[str]:
        if self._queues:
            return list(self._queues)
        now = time.monotonic()
        if now - self._found_at > QUEUES_KNOWN_FOR or not self._found:
            self._found = Job.objects.ready_queues(connection=connection)
            self._found_at = now
            random.shuffle(self._found)  # no queue stands in front of the others when any is served
        return self._found
