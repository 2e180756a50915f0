"""The verbs: one method for each statement in ``sql``, in the order of a job's life.

Nothing else in the package runs these statements.  A verb runs on the connection it is given (a
Django connection or a psycopg one), in whatever transaction that connection has; without one it
runs on the alias that the router names for writing.  Every verb returns what it did, row by row:
zero rows is an answer, not an error.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from django.db import IntegrityError, connections, router, transaction

from . import sql
from .exceptions import QueueError
from .readings import JobReadings
from .records import (
    DONE,
    HEAD,
    Answer,
    Cancelled,
    CancelReport,
    Claimed,
    Completed,
    Cursor,
    Enqueued,
    Failed,
    Fence,
    NewJob,
    PastAttempt,
    Released,
    Renewal,
    Rescued,
    RetryReport,
    Settlement,
    Snoozed,
    WorkerIdentity,
)

ROWS_PER_STATEMENT = 1000
TRIES = 5
"""How often an insert is tried whose unique key is taken at the insert and free at the look."""

Connection = Any
"""A Django ``DatabaseWrapper`` or a ``psycopg.Connection``."""


class PromoteMark(NamedTuple):
    """Where the last promotion stopped; the next one begins behind it."""

    run_at: str | datetime
    job_id: int


PROMOTE_HEAD = PromoteMark("-infinity", 0)


class JobManager(JobReadings):
    """``Job.objects``: the only way in which jobs change."""

    # --- enqueue

    def enqueue(self, job: NewJob, *, backend: str, connection: Connection = None) -> Enqueued:
        """Insert one job in the connection's present transaction."""
        return self.enqueue_many([job], backend=backend, connection=connection)[0]

    def enqueue_many(
        self, jobs: Iterable[NewJob], *, backend: str, connection: Connection = None
    ) -> list[Enqueued]:
        """Insert jobs in the connection's present transaction, a statement per thousand, in order.

        Outside a transaction each thousand commits by itself, unless the caller opens one.
        """
        connection = connection or self._write_connection()
        inserted: list[Enqueued] = []
        for chunk in chunks(list(jobs), ROWS_PER_STATEMENT):
            params = {name: [getattr(job, name) for job in chunk] for name in NewJob.__slots__}
            rows = run(connection, sql.ENQUEUE, {**params, "backend": backend})
            inserted += [Enqueued(*row) for row in sorted(rows)]
        return inserted

    def enqueue_unique(
        self, jobs: Sequence[NewJob], *, backend: str, connection: Connection = None
    ) -> list[Enqueued]:
        """Insert those of ``jobs`` whose unique key no live job holds; in order.

        The others are answered with the live job's id and ``inserted=False``.
        """
        connection = connection or self._write_connection()
        answers: dict[int, Enqueued] = {}
        for _ in range(TRIES):
            todo = [(place, job) for place, job in enumerate(jobs) if place not in answers]
            for chunk in chunks(todo, ROWS_PER_STATEMENT):
                answers |= self._enqueue_unique(chunk, backend, connection)
            if len(answers) == len(jobs):
                return [answers[place] for place in range(len(jobs))]
        raise QueueError(
            f"a unique key changed hands {TRIES} times while its job was being enqueued; try again"
        )

    def _enqueue_unique(
        self, chunk: Sequence[tuple[int, NewJob]], backend: str, connection: Connection
    ) -> dict[int, Enqueued]:
        params = {name: [getattr(job, name) for _, job in chunk] for name in NewJob.__slots__}
        rows = sorted(run(connection, sql.ENQUEUE_UNIQUE, {**params, "backend": backend}))
        answers = {place: Enqueued(*row) for (place, _), row in zip(chunk, rows, strict=True) if row[3]}
        clashes = [(place, job.unique_key) for place, job in chunk if place not in answers]
        if clashes:
            keys = {"unique_keys": sorted({key for _, key in clashes if key})}
            live = dict(run(connection, sql.LIVE_BY_KEY, keys))
            # A key that is free again has lost its job since: its place is tried once more.
            answers |= {
                place: Enqueued(live[key], None, None, False) for place, key in clashes if key in live
            }
        return answers

    def replace(self, job: NewJob, *, connection: Connection = None) -> Enqueued | None:
        """Give the waiting job of this unique key new arguments and a new time; None when none waits."""
        params = {name: getattr(job, name) for name in NewJob.__slots__}
        rows = run(connection or self._write_connection(), sql.REPLACE, params)
        return Enqueued._make((*rows[0], False)) if rows else None

    # --- promote

    def promote(
        self, *, limit: int, after: PromoteMark = PROMOTE_HEAD, connection: Connection = None
    ) -> list[tuple[int, str, datetime]]:
        """Make due scheduled jobs ready; return ``(job_id, queue, run_at)``, earliest first."""
        params = {"limit": limit, "after_run_at": after.run_at, "after_job_id": after.job_id}
        rows = run(connection or self._write_connection(), sql.PROMOTE, params)
        return sorted(rows, key=lambda row: (row[2], row[0]))

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

    def next_run_at(self, *, connection: Connection = None) -> float | None:
        """Return the seconds until the next scheduled job is due (negative: overdue), or None."""
        rows = run(connection or self._write_connection(), sql.NEXT_RUN_AT, {})
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

    # --- renew

    def renew(
        self, fences: Sequence[Fence], *, lease: float, connection: Connection = None
    ) -> dict[Fence, Renewal]:
        """Extend leases to ``lease`` seconds from now; an expired one too while nobody took the job."""
        connection = connection or self._write_connection()
        rows = run(connection, sql.RENEW, {**_fence_columns(fences), "lease": lease})
        answers = {Fence(*row[:3]): Renewal(DONE, row[3]) for row in rows}
        for fence, answer in self._whereabouts(fences, answers, connection).items():
            answers[fence] = Renewal(answer.result, False)
        return answers

    def report_progress(
        self, reports: Sequence[tuple[Fence, str]], *, connection: Connection = None
    ) -> list[int]:
        """Store JSON texts as the progress of running jobs; return the ids of those that still run there."""
        params = _fence_columns([fence for fence, _ in reports]) | {"progress": [text for _, text in reports]}
        return [row[0] for row in run(connection or self._write_connection(), sql.PROGRESS, params)]

    # --- the settles

    def complete(
        self, settled: Sequence[Completed], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> succeeded."""
        return self._settle(sql.COMPLETE, settled, worker, connection)

    def fail(
        self, settled: Sequence[Failed], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> scheduled, or dead when the budget is spent or the failure is final."""
        return self._settle(sql.FAIL, settled, worker, connection)

    def snooze(
        self, settled: Sequence[Snoozed], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> scheduled, uncharged."""
        return self._settle(sql.SNOOZE, settled, worker, connection)

    def release(
        self, settled: Sequence[Released], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> ready, uncharged; a job that never started leaves no attempt."""
        return self._settle(sql.RELEASE, settled, worker, connection)

    def cancel_held(
        self, settled: Sequence[Cancelled], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> cancelled, by the worker that holds the job."""
        return self._settle(sql.CANCEL_HELD, settled, worker, connection)

    def settle(
        self, settled: Sequence[Settlement], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """Write settlements of any kinds, each kind by its own verb; answer for each fence."""
        connection = connection or self._write_connection()
        answers: dict[Fence, Answer] = {}
        for kind, statement in _STATEMENT_OF.items():
            group = [settlement for settlement in settled if type(settlement) is kind]
            if group:
                answers |= self._settle(statement, group, worker, connection)
        return answers

    def release_unheld(
        self, held: Sequence[int], *, worker_id: str, within: float, connection: Connection = None
    ) -> list[int]:
        """Give back what this worker owns in the table but does not hold; return the job ids.

        For a claim whose reply was lost.  ``within`` bounds the look to claims of the last seconds.
        """
        params = {"held": list(held), "worker_id": worker_id, "within": within}
        return [row[0] for row in run(connection or self._write_connection(), sql.RELEASE_UNHELD, params)]

    def _settle(
        self, statement: str, settled: Sequence[Any], worker: WorkerIdentity, connection: Connection
    ) -> dict[Fence, Answer]:
        if not settled:
            return {}
        connection = connection or self._write_connection()
        done = self._write_outcomes(statement, settled, worker, connection)
        fences = [settlement.fence for settlement in settled]
        answers = done | self._whereabouts(fences, done, connection)
        return {fence: answers[fence] for fence in fences}

    def _write_outcomes(
        self, statement: str, settled: Sequence[Any], worker: WorkerIdentity, connection: Connection
    ) -> dict[Fence, Answer]:
        params = _fence_columns([settlement.fence for settlement in settled])
        for name in type(settled[0]).__slots__:
            if name != "fence":
                params[name] = array([getattr(settlement, name) for settlement in settled])
        rows = run(connection, statement, {**params, "host": worker.host, "pid": worker.pid})
        return {Fence(*row[:3]): Answer(DONE, *row[3:]) for row in rows}

    def _whereabouts(
        self, fences: Sequence[Fence], answered: Any, connection: Connection
    ) -> dict[Fence, Answer]:
        missing = [fence for fence in fences if fence not in answered]
        if not missing:
            return {}
        rows = run(connection, sql.WHEREABOUTS, _fence_columns(missing))
        return {Fence(*row[:3]): Answer(*row[3:]) for row in rows}

    # --- rescue

    def rescue(
        self, *, limit: int, server_up: float, jitter: float = 1.0, connection: Connection = None
    ) -> list[Rescued]:
        """Take running jobs whose lease is over from their workers; the attempts are charged.

        Does nothing until the server has been up for ``server_up`` seconds.  ``jitter`` is the part of the
        delay that is left to chance; with 0 the next attempt waits for the longest that backoff can ask for.
        """
        params = {
            "limit": limit,
            "server_up": server_up,
            "jitter": jitter,
            "host": "",
            "pid": None,
            "exception_class": "django_pgqueue.exceptions.LeaseExpired",
        }
        return [Rescued(*row) for row in run(connection or self._write_connection(), sql.RESCUE, params)]

    def rescue_worker(
        self,
        lost: Sequence[Released],
        *,
        worker: WorkerIdentity,
        jitter: float = 1.0,
        connection: Connection = None,
    ) -> list[Rescued]:
        """Take the jobs of a dead worker process: started ones are charged, the others go back.

        ``jitter``: see ``rescue``.
        """
        connection = connection or self._write_connection()
        rescued: list[Rescued] = []
        started = [job for job in lost if job.started_ago is not None]
        waiting = [job for job in lost if job.started_ago is None]
        if started:
            params = _fence_columns([job.fence for job in started]) | {
                "started_ago": [job.started_ago for job in started],
                "message": [job.message for job in started],
                "host": worker.host,
                "pid": worker.pid,
                "exception_class": "django_pgqueue.exceptions.WorkerDied",
                "jitter": jitter,
            }
            rescued += [Rescued(*row) for row in run(connection, sql.RESCUE_WORKER, params)]
        if waiting:
            for fence, answer in self._write_outcomes(sql.RELEASE, waiting, worker, connection).items():
                rescued.append(
                    Rescued(fence.job_id, answer.status or "", answer.attempts or 0, worker.worker_id)
                )
        return rescued

    def backend_lives(self, pid: int, *, connection: Connection = None) -> bool:
        """True while the server has a backend of this process id; 0 names none."""
        rows = run(connection or self._write_connection(), sql.BACKEND_LIVES, {"pid": pid})
        return bool(rows[0][0])

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
            with _savepoint(connection):
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

    # --- tests of projects

    def forward_time(self, seconds: float, *, connection: Connection = None) -> None:
        """Move every stored time back by ``seconds``, as if they had passed; for ``testing.forward_time``."""
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

    def _write_connection(self) -> Connection:
        return connections[self._db or router.db_for_write(self.model)]


_STATEMENT_OF = {
    Completed: sql.COMPLETE,
    Failed: sql.FAIL,
    Snoozed: sql.SNOOZE,
    Released: sql.RELEASE,
    Cancelled: sql.CANCEL_HELD,
}


def run(connection: Connection, statement: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Execute a statement of ``sql`` and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def _savepoint(connection: Connection) -> AbstractContextManager[Any]:
    """Return a transaction of the connection, or a savepoint in the one that it has."""
    if isinstance(connection, psycopg.Connection):
        return connection.transaction()
    atomic: AbstractContextManager[Any] = transaction.atomic(using=connection.alias)
    return atomic


def plain_ids(job_ids: Iterable[int | str]) -> list[int]:
    """Return ids as sorted whole numbers, each once; the id of a TaskResult is a string.

    Raises ValueError for what is no job id, before any SQL.
    """
    try:
        return sorted({int(job_id) for job_id in job_ids})
    except (TypeError, ValueError):
        raise ValueError(f"job ids are whole numbers or the ids of results, not {job_ids!r}") from None


def chunks(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    """Yield slices of at most ``size`` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _fence_columns(fences: Sequence[Fence]) -> dict[str, Any]:
    return {
        "job_id": array([fence.job_id for fence in fences]),
        "lease_version": array([fence.lease_version for fence in fences]),
        "lease_token": array([fence.lease_token for fence in fences]),
    }


def array(values: list[Any]) -> Any:
    """Return an array parameter: a literal where no value needs quoting, which is far cheaper than a list.

    psycopg dumps a list element by element in Python; a batch has thousands of elements.
    """
    if any(isinstance(value, (str, bool)) for value in values):
        return values
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"
