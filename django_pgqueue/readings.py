"""What the pages for people ask: reads that change nothing, take no locks and stay short at any size.

They run on the alias that the router names for writing: a replica may not have the rows yet.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import router

from . import sql, states
from .guarded import GuardedManager
from .querying import queue_connection

COUNT_LIMIT = 1000
"""States are counted up to here."""
MOST_TASK_PATHS = 1000
ATTEMPTS_LOOKED_AT = 100
STUCK_AFTER = 5.0
"""Seconds after which a due job that nobody takes is remarkable."""
MESSAGE_LENGTH = 300
"""Characters of a message that a list shows at most."""


class LastError(NamedTuple):
    """The latest attempt of a job that did not go well."""

    number: int
    outcome: str
    exception_class: str
    message: str


class QueueStatus(NamedTuple):
    """What lives in a queue; ``waited``: seconds since its longest waiting ready job was due."""

    queue: str
    ready: int
    running: int
    scheduled: int
    waited: float | None
    has_sleepers: bool

    @property
    def is_stuck(self) -> bool:
        """True when jobs are due, and no worker has been seen to take any of this queue."""
        return (self.waited or 0.0) > STUCK_AFTER and not self.running and not self.has_sleepers


class JobReadings(GuardedManager):
    """The reading half of ``Job.objects``."""

    def last_errors(self, job_ids: Sequence[int]) -> dict[int, LastError]:
        """Return the last failed or lost attempt of each job, among its latest hundred.

        An attempt that was put back for an error (no worker knows the task) counts too.
        """
        params = {"job_ids": list(job_ids), "attempts": ATTEMPTS_LOOKED_AT, "characters": MESSAGE_LENGTH}
        return {job_id: LastError(*row) for job_id, *row in self._read(sql.LAST_ERRORS, params)}

    def task_paths(self) -> list[str]:
        """Return the distinct task paths of all jobs in order, a thousand at most."""
        return [row[0] for row in self._read(sql.TASK_PATHS, {"limit": MOST_TASK_PATHS})]

    def status_counts(self) -> dict[str, int]:
        """Return the number of jobs in each state, counted up to ``COUNT_LIMIT``."""
        return dict(
            zip(states.STATUSES, self._read(sql.STATUS_COUNTS, {"limit": COUNT_LIMIT})[0], strict=True)
        )

    def dead(self, limit: int) -> int:
        """Return the number of dead jobs, counted up to ``limit``."""
        count: int = self._read(sql.DEAD, {"limit": limit})[0][0]
        return count

    def ids_given(self) -> int | None:
        """Return how many ids of jobs were given out, for jobs that were rolled back, too.

        None for a role that may not enqueue: it cannot see that.
        """
        rows = self._read(sql.IDS_GIVEN, {})
        return rows[0][0] if rows else None

    def queues(self) -> list[QueueStatus]:
        """Return what waits and runs in each queue that has a live job, in order of their names."""
        return [QueueStatus(*row) for row in self._read(sql.QUEUES, {})]

    def worker_processes(self) -> int:
        """Return how many children of workers are connected, as far as this role may see them."""
        count: int = self._read(sql.WORKERS, {})[0][0]
        return count

    def estimate(self) -> int | None:
        """Return the planner's idea of how many jobs there are; None before the first ANALYZE."""
        rows = self._read(sql.ESTIMATE, {})[0][0]
        return rows if rows >= 0 else None

    def first_id_at(self, moment: datetime) -> int:
        """Return the id from which on jobs were enqueued at ``moment`` or later.

        Exact while the server's clock only moved forward; 1 when there are no jobs.
        """
        rows = self._read(sql.FIRST_ID_AT, {"moment": moment})
        return rows[0][0] if rows else 1

    def _read(self, statement: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
        with queue_connection(self._db or router.db_for_write(self.model)).cursor() as cursor:
            cursor.execute(statement, params)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows
