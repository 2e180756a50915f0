"""How many jobs wait in each queue and for how long, now and over the last days: ``QueueSample.objects``.

A queue is counted up to a limit; beyond it the planner's estimate stands, and is said to be one.
"""

import json
from datetime import datetime
from typing import Any, NamedTuple

from django.db import router
from psycopg import sql as compose

from . import sql
from .guarded import GuardedManager
from .querying import Connection, queue_connection, run

COUNT_LIMIT = 1_000
"""Ready jobs of a queue that are counted one by one, and running jobs in all."""
MOST_QUEUES = 200
SAMPLE_EVERY = 60.0


class Depth(NamedTuple):
    """One queue: ``waited`` and ``ran`` are the seconds of its oldest ready and its oldest running job."""

    queue: str
    ready: int
    running: int
    waited: float | None
    ran: float | None
    is_estimate: bool = False


class Scheduled(NamedTuple):
    """Jobs with a time ahead; ``is_more``: more than were counted; ``next_in``: seconds, or None.

    ``now`` is the database's time of the look, in seconds of the epoch.
    """

    jobs: int
    is_more: bool
    next_in: float | None
    now: float


class Sample(NamedTuple):
    """The deepest and oldest that a queue was in a span; ``starts_at``: its beginning, in epoch seconds."""

    starts_at: int
    queue: str
    ready: float
    oldest: float | None


class SampleManager(GuardedManager):
    """See the module."""

    def depths(self, *, limit: int = COUNT_LIMIT, connection: Connection = None) -> list[Depth]:
        """Return the queues that hold ready or running jobs, by name; 200 with ready jobs at most."""
        connection = connection or self._connection()
        rows = run(connection, sql.DEPTHS, {"limit": limit, "queues": MOST_QUEUES})
        return [_estimated(Depth(*row), limit, connection) for row in rows]

    def scheduled(self, *, limit: int = COUNT_LIMIT, connection: Connection = None) -> Scheduled:
        """Return how many jobs have a time ahead."""
        jobs, next_in, now = run(connection or self._connection(), sql.SCHEDULED, {"limit": limit})[0]
        return Scheduled(jobs, jobs >= limit, next_in, now)

    def database_time(self, *, connection: Connection = None) -> datetime:
        """Return the database's time, aware or not as the connection gives it."""
        moment: datetime = run(connection or self._connection(), sql.NOW, {})[0][0]
        return moment

    def standing(self, *, connection: Connection = None) -> str:
        """Return what keeps the database from doing the queue's work, or nothing."""
        is_standby, is_read_only, has_tables = run(connection or self._connection(), sql.STANDING, {})[0]
        if is_standby:
            return "The database is a standby: it takes no writes until it is promoted."
        if is_read_only:
            return "The database is read-only: default_transaction_read_only is on."
        return "" if has_tables else "The queue's tables are missing: run manage.py migrate."

    def take(self, *, connection: Connection) -> int:
        """Store the depths of this minute, unless somebody has; return for how many queues."""
        last = run(connection, sql.LAST_SAMPLE, {})
        if last and last[0][0] < SAMPLE_EVERY:
            return 0
        depths = self.depths(connection=connection)
        columns = {
            "queues": [depth.queue for depth in depths],
            "ready": [depth.ready for depth in depths],
            "running": [depth.running for depth in depths],
            "oldest": [depth.waited for depth in depths],
        }
        return len(run(connection, sql.ADD_SAMPLE, columns))

    def samples(self, span: int, window: float) -> list[Sample]:
        """Return the depths of the last ``window`` seconds: the highest of each queue and span."""
        rows = run(self._connection(), sql.SAMPLES, {"span": span, "window": window})
        return [Sample(*row) for row in rows]

    def prune(self, *, age: float, limit: int, connection: Connection) -> int:
        """Delete up to ``limit`` samples that are older than ``age`` seconds."""
        return len(run(connection, sql.PRUNE_SAMPLES, {"age": age, "limit": limit}))

    def _connection(self) -> Connection:
        return queue_connection(self._db or router.db_for_write(self.model))


def _estimated(depth: Depth, limit: int, connection: Connection) -> Depth:
    if depth.ready < limit:
        return depth
    statement = compose.SQL(sql.PLANNED_READY).format(compose.Literal(depth.queue))
    with connection.cursor() as cursor:
        cursor.execute(statement)
        planned: Any = cursor.fetchone()[0]
    plan = json.loads(planned) if isinstance(planned, str) else planned
    rows = int(plan[0]["Plan"]["Plan Rows"])
    return depth._replace(ready=max(rows, depth.ready), is_estimate=True)
