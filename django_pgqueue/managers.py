"""The verbs: one method for each statement in ``sql``, in the order of a job's life.

Those on jobs that a worker holds, between claim and cancel, are in ``holding``, the rarer ones of operators
in ``repairing``.

Nothing else in the package runs these statements.  A verb runs on the connection it is given (a
Django connection or a psycopg one), in whatever transaction that connection has; without one it
runs on the alias that the router names for writing.  Every verb returns what it did, row by row:
zero rows is an answer, not an error.
"""

import random
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from django.db import DatabaseError, IntegrityError

from . import sql
from .exceptions import QueueError
from .listing import JobLists
from .querying import ROWS_PER_STATEMENT, Connection, array, chunks, plain_ids, run, savepoint
from .records import (
    HEAD,
    CancelReport,
    Claimed,
    Cursor,
    Enqueued,
    NewJob,
    PastAttempt,
    Pruned,
    RetryReport,
)
from .repairing import RepairedJobs
from .retention import Rule

TRIES = 5
"""How often an insert is tried whose unique key is taken at the insert and free at the look."""


FOLLOWERS_TRIED = 10
"""Of those that cannot all be promoted at once, so many are tried one by one."""
KEY_IS_TAKEN = (psycopg.errors.LockNotAvailable, psycopg.errors.UniqueViolation)


class _KeyChangedHands(Exception):
    """A key was taken at the insert, by a job that came after it began, and is free at the look."""


class PromoteMark(NamedTuple):
    """Where the last promotion stopped; the next one begins behind it."""

    run_at: str | datetime
    job_id: int


PROMOTE_HEAD = PromoteMark("-infinity", 0)


class JobManager(RepairedJobs, JobLists):
    """``Job.objects``: the only way in which jobs change."""

    # --- enqueue

    def enqueue(
        self,
        job: NewJob,
        *,
        backend: str,
        look: bool = False,
        may_notify: bool = False,
        connection: Connection = None,
    ) -> Enqueued:
        """Insert one job in the connection's present transaction.

        ``look``: see whether somebody sleeps on its queue; ``may_notify``: wake them if that holds up nobody.
        """
        params = {**job._asdict(), "backend": backend, "look": look, "may_notify": may_notify}
        row = run(connection or self._write_connection(), sql.ENQUEUE_ONE, params)[0]
        job_id, enqueued_at, run_after, sleepers, is_notified = row
        return Enqueued(job_id, enqueued_at, run_after, sleepers=sleepers, is_notified=is_notified)

    def enqueue_many(
        self, jobs: Iterable[NewJob], *, backend: str, connection: Connection = None
    ) -> list[Enqueued]:
        """Insert jobs in the connection's present transaction, a statement per thousand, in order.

        Outside a transaction each thousand commits by itself, unless the caller opens one.
        """
        connection = connection or self._write_connection()
        inserted: list[Enqueued] = []
        for chunk in chunks(list(jobs), ROWS_PER_STATEMENT):
            rows = run(connection, sql.ENQUEUE, {**_job_columns(chunk), "backend": backend})
            inserted += [Enqueued(*row) for row in sorted(rows)]
        return inserted

    def enqueue_unique(
        self, jobs: Sequence[NewJob], *, backend: str, connection: Connection = None
    ) -> list[Enqueued]:
        """Insert those of ``jobs`` whose unique key no live job holds, and answer in order.

        The others are answered with the live job's id and ``inserted=False``.  Inserts go by the order of
        the keys, over all statements: two calls with the same keys never wait for each other in a circle.
        """
        connection = connection or self._write_connection()
        places = sorted(range(len(jobs)), key=lambda place: jobs[place].unique_key or "")
        for _ in range(TRIES):
            # What was inserted goes again, too: a second try for one key alone could close a circle.
            with suppress(_KeyChangedHands), savepoint(connection) if len(jobs) > 1 else nullcontext():
                answers: dict[int, Enqueued] = {}
                for chunk in chunks(places, ROWS_PER_STATEMENT):
                    answers |= self._enqueue_unique(chunk, jobs, backend, connection)
                return [answers[place] for place in range(len(jobs))]
        raise QueueError(
            f"a unique key changed hands {TRIES} times while its job was being enqueued; try again"
        )

    def _enqueue_unique(
        self, places: Sequence[int], jobs: Sequence[NewJob], backend: str, connection: Connection
    ) -> dict[int, Enqueued]:
        params = _job_columns([jobs[place] for place in places])
        rows = sorted(run(connection, sql.ENQUEUE_UNIQUE, {**params, "backend": backend}))
        given = dict(zip(places, rows, strict=True))
        answers = {place: Enqueued(*row[:4]) for place, row in given.items() if row[3]}
        clashes = {place: row[4] for place, row in given.items() if not row[3]}
        if clashes:
            keys = {"unique_keys": sorted({jobs[place].unique_key or "" for place in clashes})}
            live = dict(run(connection, sql.LIVE_BY_KEY, keys))
            for place, was_live in clashes.items():
                # A job that held the key at the insert and has just ended is an answer as good.
                job_id = live.get(jobs[place].unique_key, was_live)
                if job_id is None:
                    raise _KeyChangedHands
                answers[place] = Enqueued(job_id, None, None, False)
        return answers

    def replace(self, job: NewJob, *, connection: Connection = None) -> Enqueued | None:
        """Give the waiting job of this unique key new arguments and a new time; None when none waits."""
        params = job._asdict()
        rows = run(connection or self._write_connection(), sql.REPLACE, params)
        return Enqueued(*rows[0])._replace(inserted=False) if rows else None

    # --- promote

    def promote(
        self, *, limit: int, after: PromoteMark = PROMOTE_HEAD, connection: Connection = None
    ) -> list[tuple[int, str, datetime]]:
        """Make due scheduled jobs ready; return ``(job_id, queue, run_at)``, earliest first.

        A follower whose key an open transaction has taken stays for a later call; it holds up no other job.
        """
        connection = connection or self._write_connection()
        params = {"limit": limit, "after_run_at": after.run_at, "after_job_id": after.job_id}
        rows = run(connection, sql.PROMOTE, params)
        promoted = [(job_id, queue, run_at) for job_id, queue, run_at, follows in rows if not follows]
        followers = [row[0] for row in rows if row[3]]
        if followers:
            promoted += _promote_followers(followers, connection)
        return sorted(promoted, key=lambda row: (row[2], row[0]))

    def promote_now(
        self, job_ids: Iterable[int | str], *, connection: Connection = None
    ) -> list[tuple[int, str]]:
        """Make these scheduled jobs ready whatever their time; return ``(job_id, queue)``."""
        connection = connection or self._write_connection()
        return [
            row
            for chunk in chunks(plain_ids(job_ids), ROWS_PER_STATEMENT)
            for row in run(connection, sql.PROMOTE_NOW, {"job_ids": chunk})
        ]

    def next_run_at(
        self, *, after: PromoteMark = PROMOTE_HEAD, connection: Connection = None
    ) -> float | None:
        """Return the seconds until the next job scheduled behind a mark is due (below 0: late), or None."""
        params = {"after_run_at": after.run_at, "after_job_id": after.job_id}
        rows = run(connection or self._write_connection(), sql.NEXT_RUN_AT, params)
        return rows[0][0] if rows else None

    # --- claim

    def claim(
        self,
        queue: str,
        *,
        limit: int,
        worker_id: str,
        lease_token: UUID,
        lease: float,
        after: Cursor = HEAD,
        connection: Connection = None,
    ) -> list[Claimed]:
        """Take up to ``limit`` ready jobs of one queue for ``lease`` seconds.

        ``lease_token`` is new for every call.  ``after`` is the cursor; ``HEAD`` makes it a sweep.
        The jobs come as the index gave them: a batch out of claim order holds a row that was changed
        while it was being locked, and its last row is then no place to go on from.
        """
        params = {
            "queue": queue,
            "limit": limit,
            "worker_id": worker_id,
            "lease_token": lease_token,
            "lease": lease,
            "after_rank": after.rank,
            "after_position": after.position,
            "after_job_id": after.job_id,
        }
        rows = run(connection or self._write_connection(), sql.CLAIM, params)
        return [Claimed._make((*row, lease_token)) for row in rows]

    def ready_queues(self, *, connection: Connection = None) -> list[str]:
        """Return the names of all queues that hold a ready job."""
        return [row[0] for row in run(connection or self._write_connection(), sql.READY_QUEUES, {})]

    # --- cancel, retry

    def cancel(self, job_ids: Iterable[int | str], *, connection: Connection = None) -> CancelReport:
        """End waiting jobs as cancelled and ask running ones to stop."""
        connection = connection or self._write_connection()
        report = CancelReport()
        for chunk in chunks(plain_ids(job_ids), ROWS_PER_STATEMENT):
            became = dict(run(connection, sql.CANCEL, {"job_ids": chunk}))
            report.cancelled.extend(i for i in chunk if became.get(i) == "cancelled")
            report.requested.extend(i for i in chunk if became.get(i) == "running")
            report.skipped.extend(i for i in chunk if i not in became)
        return report

    def retry(self, job_ids: Iterable[int | str], *, connection: Connection = None) -> RetryReport:
        """Make dead and cancelled jobs ready with a fresh budget; their history stays.

        At most one job of a unique key becomes live; the others are reported as conflicts.
        """
        report = RetryReport()
        for chunk in chunks(plain_ids(job_ids), ROWS_PER_STATEMENT):
            asked = self._retry_chunk(chunk, connection or self._write_connection())
            report.retried.extend(i for i in chunk if asked.get(i) is not None)
            report.conflicts.extend(i for i in chunk if i in asked and asked[i] is None)
            report.skipped.extend(i for i in chunk if i not in asked)
        return report

    def _retry_chunk(self, chunk: Sequence[int], connection: Connection) -> dict[int, str | None]:
        try:
            with savepoint(connection):
                return dict(run(connection, sql.RETRY, {"job_ids": chunk}))
        except (IntegrityError, psycopg.IntegrityError):
            # A live job took a key between the look and the write: one row must not stop the others.
            if len(chunk) == 1:
                return {chunk[0]: None}
            return {key: value for i in chunk for key, value in self._retry_chunk([i], connection).items()}

    # --- prune

    def prune(
        self,
        status: str,
        *,
        age: float,
        limit: int,
        after: tuple[Any, int] | None = None,
        connection: Connection = None,
    ) -> list[tuple[int, datetime]]:
        """Delete up to ``limit`` jobs that ended in ``status`` more than ``age`` seconds ago.

        Returns ``(job_id, finished_at)``; pass the last one's as ``after`` to go on from there.
        """
        finished_at, job_id = after or ("-infinity", 0)
        params = {
            "status": status,
            "age": age,
            "limit": limit,
            "after_finished_at": finished_at,
            "after_job_id": job_id,
        }
        rows = run(connection or self._write_connection(), sql.PRUNE, params)
        return sorted(rows, key=lambda row: (row[1], row[0]))

    def prune_by(
        self, rule: Rule, *, limit: int, after: tuple[Any, int] | None = None, connection: Connection = None
    ) -> Pruned:
        """Delete up to ``limit`` jobs that a rule of retention is about; see ``Pruned`` for how to go on.

        For a rule of some queues, ten times as many ended jobs are looked at, at most.
        """
        if rule.is_general:
            rows = self.prune(rule.status, age=rule.age, limit=limit, after=after, connection=connection)
            return Pruned(len(rows), (rows[-1][1], rows[-1][0]) if rows else after, len(rows) == limit)
        finished_at, job_id = after or ("-infinity", 0)
        params = {
            "status": rule.status,
            "age": rule.age,
            "queues": list(rule.but_not if rule.queues is None else rule.queues),
            "named": rule.queues is not None,
            "limit": limit,
            "look": 10 * limit,
            "after_finished_at": finished_at,
            "after_job_id": job_id,
        }
        walked = run(connection or self._write_connection(), sql.PRUNE_QUEUES, params)
        if not walked:
            return Pruned(0, after, False)
        deleted, finished_at, job_id, goes_on = walked[0]
        return Pruned(deleted, (finished_at, job_id), goes_on)

    # --- tests of projects

    def forward_time(self, seconds: float, *, connection: Connection = None) -> None:
        """Move the times of states and attempts back by ``seconds``; for ``testing.forward_time``."""
        with (connection or self._write_connection()).cursor() as cursor:
            cursor.execute(sql.FORWARD_TIME, {"seconds": seconds})

    # --- reading back

    def unknown_since(
        self, job_ids: Sequence[int], *, exception_class: str, connection: Connection = None
    ) -> dict[int, tuple[float, int]]:
        """Return, for jobs put back with this class, the seconds since the first time and the count."""
        params = {"job_ids": list(job_ids), "exception_class": exception_class}
        rows = run(connection or self._write_connection(), sql.UNKNOWN_SINCE, params)
        return {row[0]: (row[1], row[2]) for row in rows}

    def history(
        self, job_ids: Sequence[int], *, limit: int = 50, connection: Connection = None
    ) -> dict[int, list[PastAttempt]]:
        """Return the latest ``limit`` attempts of each job, oldest first."""
        past: dict[int, list[PastAttempt]] = {}
        params = {"job_ids": list(job_ids), "limit": limit}
        for job_id, *row in run(connection or self._write_connection(), sql.HISTORY, params):
            past.setdefault(job_id, []).append(PastAttempt(*row))
        return past


def _promote_followers(job_ids: list[int], connection: Connection) -> list[tuple[int, str, datetime]]:
    """Make followers ready, under the key of those they followed; all at once, else a few one by one."""
    rows = _try_followers(job_ids, connection)
    if rows is None and len(job_ids) > 1:
        some = random.sample(job_ids, min(len(job_ids), FOLLOWERS_TRIED))  # nosec B311 - any will do
        return [row for job_id in some for row in _try_followers([job_id], connection) or ()]
    return rows or []


def _try_followers(job_ids: list[int], connection: Connection) -> list[tuple[Any, ...]] | None:
    try:
        with savepoint(connection):
            before = run(connection, sql.WAIT_BRIEFLY, {})[0][0]
            rows = run(connection, sql.PROMOTE_FOLLOWERS, {"job_ids": job_ids})
            run(connection, sql.WAIT_AS_BEFORE, {"lock_timeout": before})
            return rows
    except (psycopg.Error, DatabaseError) as error:
        if isinstance(error.__cause__ or error, KEY_IS_TAKEN):
            return None
        raise


def _job_columns(jobs: Sequence[NewJob]) -> dict[str, Any]:
    """Return arrays of what differs between jobs, and single values of what does not."""
    params: dict[str, Any] = {"place": array(list(range(len(jobs))))}
    for name, column in zip(NewJob._fields, map(list, zip(*jobs, strict=True)), strict=True):
        same = column.count(column[0]) == len(column)
        params[name] = "{}" if same else array(column)
        params[f"all_{name}"] = column[0] if same else None
    return params
