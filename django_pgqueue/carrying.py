"""Carries out bulk operations: a batch at a time, each a transaction of its own with its progress.

A batch locks a thousand rows at most, for as long as one verb takes.  Whoever calls ``advance`` works on
the operation that has waited longest and that nobody else has in hand: keepers do so for ever, and the
request that asked for an operation does the first batches itself.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from django.db import DatabaseError

from . import states
from .bulk import Kind, Part, Progress
from .events import log
from .maintenance import Duty
from .models import BulkOperation, Job
from .querying import ROWS_PER_STATEMENT, Connection, savepoint
from .selecting import JobFilter, Place, place_from_json

BATCH = ROWS_PER_STATEMENT
PERIOD = 5.0
"""Seconds between two looks for something to do."""
# In the order of a job's life: one that moves on meanwhile is met later.
STATUSES = {
    Kind.RETRY.value: (states.CANCELLED, states.DEAD),
    Kind.DISCARD.value: (states.CANCELLED, states.DEAD),
    Kind.CANCEL.value: (states.SCHEDULED, states.READY, states.RUNNING),
    Kind.RUN_NOW.value: (states.SCHEDULED,),
}


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch did: of which operation, to how many jobs, which queues have jobs ready by it."""

    operation_id: int
    jobs: int
    queues: frozenset[str] = frozenset()
    is_last: bool = False


def advance(
    *, operation_id: int | None = None, limit: int = BATCH, connection: Connection = None
) -> Batch | None:
    """Do the next batch of an operation, in the connection's present transaction; None when none is due.

    An operation that the database refuses is stopped, with what it said.
    """
    part = BulkOperation.objects.next_part(limit=limit, operation_id=operation_id, connection=connection)
    if part is None:
        return None
    try:
        with savepoint(connection or Job.objects.write_connection()):
            batch, progress = _do(part, connection)
    except (psycopg.errors.DataError, psycopg.errors.IntegrityError, DatabaseError, ValueError) as error:
        BulkOperation.objects.fail(part.id, str(error)[:2000], connection=connection)
        return Batch(part.id, 0, is_last=True)
    BulkOperation.objects.advance(part.id, progress, connection=connection)
    return batch


class CarryDuty(Duty):
    """What keepers do for operators: carry out bulk operations.

    ``ready`` collects the queues that have jobs ready by it, until the keeper has woken who sleeps on them.
    """

    def __init__(self) -> None:
        self.ready: set[str] = set()
        super().__init__("carry", PERIOD, self._carry)

    def run(self, connection: Any) -> int:
        """Do it once; return how many rows it moved and set when it is due again."""
        began = time.monotonic()
        moved = self._carry(connection)
        cost = time.monotonic() - began
        jitter = random.uniform(0.75, 1.25)  # noqa: S311 - jitter
        # As long as there is something to do, it takes half of the time: the others have their turns, too.
        self.due_at = time.monotonic() + (cost if moved else self.period * jitter)
        return moved

    def _carry(self, connection: Any) -> int:
        batch = advance(connection=connection)
        if batch is None:
            return 0
        self.ready |= batch.queues
        log("bulk", operation=batch.operation_id, jobs=batch.jobs, ended=batch.is_last)
        return max(batch.jobs, 1)


def statuses_of(kind: str, asked: JobFilter) -> tuple[str, ...]:
    """Return the states whose jobs an operation of this kind would touch."""
    return tuple(status for status in STATUSES[kind] if status in asked.statuses)


def _do(part: Part, connection: Connection) -> tuple[Batch, Progress]:
    asked = JobFilter.from_json(part.filters)
    statuses = statuses_of(part.kind, asked)
    if not statuses:
        return Batch(part.id, 0, is_last=True), Progress()
    status, place = _standing(part, asked, statuses)
    walked = Job.objects.walk(
        _snapshot(asked.within(status), part), limit=part.allowed, place=place, connection=connection
    )
    changed, skipped, conflicts = (
        _VERBS[part.kind](walked.job_ids, connection) if walked.job_ids else ((), 0, 0)
    )
    wakes = part.kind in (Kind.RETRY.value, Kind.RUN_NOW.value)
    queues = Job.objects.queues_of(changed, connection=connection) if wakes and changed else []
    if walked.end is not None:
        following: tuple[str | None, Place | None] = (status, walked.end)
    else:
        left = statuses[statuses.index(status) + 1 :]
        following = (left[0] if left else None, None)
    progress = Progress(changed, skipped, conflicts, *following)
    return Batch(part.id, len(walked.job_ids), frozenset(queues), progress.status is None), progress


def _standing(part: Part, asked: JobFilter, statuses: Sequence[str]) -> tuple[str, Place | None]:
    if part.place is None:
        return statuses[0], None
    status, place = part.place["status"], part.place["place"]
    return status, place_from_json(asked.within(status).order, place) if place is not None else None


def _snapshot(asked: JobFilter, part: Part) -> JobFilter:
    """Return the same, without what came after the operation was asked for: what it retried may die again."""
    end_id = min(asked.end_id or part.last_id + 1, part.last_id + 1)
    if asked.status not in states.ENDED:
        return replace(asked, end_id=end_id)
    finished_to = min(asked.finished_to or part.created_at, part.created_at)
    return replace(asked, finished_to=finished_to, end_id=asked.end_id)


Answer = tuple[Sequence[int], int, int]
"""The jobs that were changed, and how many were skipped and in conflict."""


def _retry(job_ids: Sequence[int], connection: Connection) -> Answer:
    report = Job.objects.retry(job_ids, connection=connection)
    return report.retried, len(report.skipped), len(report.conflicts)


def _discard(job_ids: Sequence[int], connection: Connection) -> Answer:
    gone = Job.objects.discard(job_ids, connection=connection)
    return gone, len(job_ids) - len(gone), 0


def _cancel(job_ids: Sequence[int], connection: Connection) -> Answer:
    report = Job.objects.cancel(job_ids, connection=connection)
    return [*report.cancelled, *report.requested], len(report.skipped), 0


def _run_now(job_ids: Sequence[int], connection: Connection) -> Answer:
    ready = [job_id for job_id, _queue in Job.objects.promote_now(job_ids, connection=connection)]
    return ready, len(job_ids) - len(ready), 0


_VERBS: dict[str, Callable[[Sequence[int], Any], Answer]] = {
    Kind.RETRY.value: _retry,
    Kind.DISCARD.value: _discard,
    Kind.CANCEL.value: _cancel,
    Kind.RUN_NOW.value: _run_now,
}
