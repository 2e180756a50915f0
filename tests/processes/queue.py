"""The queue as the tests see it from outside: one psycopg session, the verbs, and the record of executions.

It takes no Django connection, so that it works on the test database and on a private server alike.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from django_pgqueue import sql, states
from django_pgqueue.models import Job
from django_pgqueue.records import CancelReport, NewJob
from django_pgqueue.tasks import PgQueueTask

from .. import support
from ..waiting import wait_until
from . import executions

ENDED = tuple(states.ENDED)


@dataclass(frozen=True, slots=True)
class Execution:
    """One call of a task that records itself; times of the monotonic clock, which all processes share."""

    job_id: int
    lease_version: int
    attempt: int
    pid: int
    began: float
    ended: float | None
    note: str


class Queue:
    """Enqueue, look, wait; ``url`` is the database's."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = psycopg.connect(url, autocommit=True)

    def prepare(self) -> None:
        """Make the table of executions."""
        self.session.execute(executions.TABLE)

    def reconnect(self) -> None:
        """Connect again after an outage; waits for the server."""
        self.session.close()
        self.session = wait_until(self._try_connect, 60.0, "the database did not come back")

    def _try_connect(self) -> psycopg.Connection | None:
        with suppress(psycopg.OperationalError):
            return psycopg.connect(self.url, autocommit=True)
        return None

    def __enter__(self) -> "Queue":
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def clear(self) -> None:
        """Delete every row."""
        for table in (sql.ATTEMPT, sql.STEP, sql.STATE, sql.JOB, executions.NAME):
            self.session.execute(f"DELETE FROM {table}")

    # --- in

    def enqueue(self, task: PgQueueTask | str, *args: Any, **options: Any) -> int:
        """Enqueue one job and return its id; see ``enqueue_many``."""
        return self.enqueue_many(task, [args], **options)[0]

    def enqueue_many(
        self, task: PgQueueTask | str, calls: Iterable[tuple[Any, ...]], **options: Any
    ) -> list[int]:
        """Enqueue a job for each tuple of arguments; options are fields of ``NewJob``."""
        options = {"backoff_base": 0.05, "backoff_cap": 0.1} | options
        options["kwargs"] = json.dumps(options.get("kwargs", {}))
        path = task if isinstance(task, str) else task.module_path
        jobs = [NewJob(task_path=path, args=json.dumps(args), **options) for args in calls]
        return [
            row.job_id for row in Job.objects.enqueue_many(jobs, backend="default", connection=self.session)
        ]

    def notify(self, queues: Iterable[str]) -> None:
        """Wake the workers that sleep on these queues, as enqueueing through Django does."""
        self.session.execute(sql.NOTIFY_SLEEPERS, {"queues": list(queues)})

    def promote(self, job_id: int) -> None:
        """Make a scheduled job ready now."""
        Job.objects.promote_now([job_id], connection=self.session)

    def cancel(self, job_id: int) -> CancelReport:
        """Ask that a job be cancelled."""
        return Job.objects.cancel([job_id], connection=self.session)

    # --- out

    def fetch(self, statement: str, params: Any = ()) -> list[dict[str, Any]]:
        """Return the rows of a query as dictionaries."""
        return support.fetch(statement, params, connection=self.session)

    def value(self, statement: str, params: Any = ()) -> Any:
        """Return the first column of the first row."""
        row = self.session.execute(statement, params).fetchone()
        return row[0] if row else None

    def state(self, job_id: int) -> Any:
        """Return the state row of a job."""
        with self.session.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(f"SELECT * FROM {sql.STATE} WHERE job_id = %s", [job_id]).fetchone()

    def status(self, job_id: int) -> str:
        """Return the status of a job."""
        return self.value(f"SELECT status FROM {sql.STATE} WHERE job_id = %s", [job_id])

    def statuses(self, job_ids: Iterable[int]) -> dict[int, str]:
        """Return the status of each job."""
        rows = self.fetch(f"SELECT job_id, status FROM {sql.STATE} WHERE job_id = ANY(%s)", [list(job_ids)])
        return {row["job_id"]: row["status"] for row in rows}

    def attempts(self, job_id: int) -> list[Any]:
        """Return the attempts of a job, oldest first."""
        with self.session.cursor(row_factory=namedtuple_row) as cursor:
            statement = f"SELECT * FROM {sql.ATTEMPT} WHERE job_id = %s ORDER BY number"
            return cursor.execute(statement, [job_id]).fetchall()

    def attempt(self, job_id: int) -> Any:
        """Return the only attempt of a job."""
        (attempt,) = self.attempts(job_id)
        return attempt

    def outcomes(self, job_id: int) -> list[str]:
        """Return the outcomes of a job's attempts."""
        return [attempt.outcome for attempt in self.attempts(job_id)]

    def executions(self, job_id: int | None = None) -> list[Execution]:
        """Return the recorded executions of one job, or of all, in the order of their beginning."""
        columns = ", ".join(Execution.__slots__)
        rows = self.session.execute(
            f"SELECT {columns} FROM {executions.NAME}"
            " WHERE %(job)s::bigint IS NULL OR job_id = %(job)s ORDER BY began",
            {"job": job_id},
        )
        return [Execution(*row) for row in rows]

    # --- waiting

    def wait(self, jobs: int | Iterable[int], *wanted: str, timeout: float = 15.0) -> None:
        """Wait until each job has one of the wanted statuses; without any, until each has ended."""
        wanted = wanted or ENDED
        ids = [jobs] if isinstance(jobs, int) else list(jobs)

        def all_there() -> bool:
            now = self.statuses(ids)
            waiting.clear()
            waiting.update({job_id: now.get(job_id) for job_id in ids if now.get(job_id) not in wanted})
            return not waiting

        waiting: dict[int, str | None] = {}
        try:
            wait_until(all_there, timeout)
        except AssertionError:
            shown = dict(list(waiting.items())[:10])
            raise AssertionError(
                f"after {timeout:g} s {len(waiting)} of {len(ids)} jobs are not {wanted}: {shown}"
            ) from None

    def wait_started(self, job_id: int, *, count: int = 1, timeout: float = 15.0) -> list[Execution]:
        """Wait until a recording task was called so many times for this job."""
        return wait_until(
            lambda: found if len(found := self.executions(job_id)) >= count else None,
            timeout,
            f"job {job_id} was not started {count} times",
        )

    # --- what must hold

    def assert_invariants(self) -> None:
        """Check I1 to I4 of all rows, and that no claim was executed twice."""
        with self.session.transaction():  # one snapshot: workers may be about
            self.session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            support.assert_invariants(self.session)
        expired = self.value(
            f"SELECT count(*) FROM {sql.STATE} WHERE status = 'running'"
            " AND lease_expires_at < clock_timestamp() - interval '3 s'"
        )
        assert not expired, f"{expired} running jobs whose lease ended long ago"
        twice = self.fetch(
            f"SELECT job_id, lease_version FROM {executions.NAME}"
            " GROUP BY job_id, lease_version HAVING count(*) > 1"
        )
        assert not twice, f"called twice under one claim: {twice}"
