"""Rows for the tests, made through the verbs only, and what must hold of all rows at any time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.db import connections

from django_pgqueue import sql, states
from django_pgqueue.models import Attempt, Job, JobState
from django_pgqueue.querying import Connection
from django_pgqueue.records import (
    Cancelled,
    Claimed,
    Completed,
    Cursor,
    Failed,
    Fence,
    NewJob,
    Released,
    Snoozed,
    WorkerIdentity,
)

WORKER = WorkerIdentity("worker-1", "host-1", 4711)
OTHER_WORKER = WorkerIdentity("worker-2", "host-2", 4712)
DONE, LOST, LOCKED = "done", "lost", "locked"
LEASE = 30.0
OVER = -1.0
"""A lease that has ended when it begins."""


@dataclass(frozen=True, slots=True)
class Made:
    """A job that a test asked for; ``fence`` is of its last claim, or of no claim at all."""

    job_id: int
    fence: Fence
    claimed: Claimed | None = None


def enqueue(**options: Any) -> int:
    """Enqueue one job and return its id."""
    return enqueue_many(1, **options)[0]


def enqueue_many(count: int, **options: Any) -> list[int]:
    """Enqueue jobs that are all alike and return their ids in order."""
    connection = options.pop("connection", None)
    new = NewJob(**({"task_path": "tests.tasks.ok"} | options))
    return [
        row.job_id
        for row in Job.objects.enqueue_many([new] * count, backend="default", connection=connection)
    ]


def claim(
    job_id: int, *, lease: float = LEASE, worker: WorkerIdentity = WORKER, connection: Connection = None
) -> Claimed:
    """Claim exactly this ready job."""
    (place,) = fetch(f"SELECT queue, priority, position FROM {sql.STATE} WHERE job_id = %s", [job_id])
    before = Cursor(-place["priority"], place["position"] or 0, job_id - 1)
    claimed = claim_queue(
        place["queue"], limit=1, lease=lease, worker=worker, after=before, connection=connection
    )
    assert [job.job_id for job in claimed] == [job_id], "the job was not ready, or somebody held it"
    return claimed[0]


def claim_queue(
    queue: str = "default",
    *,
    limit: int = 100,
    lease: float = LEASE,
    worker: WorkerIdentity = WORKER,
    **options: Any,
) -> list[Claimed]:
    """Claim what a queue has, with a new token."""
    return Job.objects.claim(
        queue, limit=limit, worker_id=worker.worker_id, lease_token=uuid4(), lease=lease, **options
    )


def hot_path(connection: Connection = None) -> None:
    """Set for the present transaction what the worker sets for its own."""
    params = {"statement_timeout": "0", "lock_timeout": "0"}
    fetch(sql.HOT_PATH, params, connection=connection)


def running(
    count: int = 1, *, lease: float = LEASE, worker: WorkerIdentity = WORKER, **options: Any
) -> list[Claimed]:
    """Enqueue jobs and claim each by itself."""
    return [claim(job_id, lease=lease, worker=worker) for job_id in enqueue_many(count, **options)]


def make(
    status: str,
    *,
    failures: int = 0,
    cancel_requested: bool = False,
    lease: float = LEASE,
    due: bool = False,
    **options: Any,
) -> Made:
    """Make a job in this state; ``failures`` attempts of it failed before."""
    job_id = enqueue(**{"max_attempts": 3} | options)
    for _ in range(failures):
        settle_one("fail", claim(job_id).fence, delay=0.0)
        Job.objects.promote_now([job_id])
    if status == states.READY:
        return Made(job_id, fence_of(job_id))
    if status == states.CANCELLED:
        Job.objects.cancel([job_id])
        return Made(job_id, fence_of(job_id))
    claimed = claim(job_id, lease=lease)
    if status == states.RUNNING and cancel_requested:
        Job.objects.cancel([job_id])
    elif status == states.SCHEDULED:
        settle_one("snooze", claimed.fence, delay=0.0 if due else 3600.0)
    elif status == states.SUCCEEDED:
        settle_one("complete", claimed.fence)
    elif status == states.DEAD:
        settle_one("fail", claimed.fence, final=True)
    assert status_of(job_id) == status
    return Made(job_id, claimed.fence, claimed)


def fence_of(job_id: int) -> Fence:
    """Return the job's fence as it stands; a made-up token where nobody holds the job."""
    (state,) = fetch(f"SELECT lease_version, lease_token FROM {sql.STATE} WHERE job_id = %s", [job_id])
    return Fence(job_id, state["lease_version"], state["lease_token"] or uuid4())


def completed(fence: Fence, **values: Any) -> Completed:
    return Completed(fence, started_ago=2.0, finished_ago=1.0)._replace(**values)


def failed(fence: Fence, **values: Any) -> Failed:
    plain = Failed(
        fence,
        started_ago=2.0,
        finished_ago=1.0,
        delay=60.0,
        final=False,
        exception_class="builtins.ValueError",
        message="no such order",
        traceback="Traceback: no such order",
        fingerprint="f1",
    )
    return plain._replace(**values)


def snoozed(fence: Fence, **values: Any) -> Snoozed:
    return Snoozed(fence, started_ago=2.0, finished_ago=1.0, delay=60.0, message="later")._replace(**values)


def released(fence: Fence, **values: Any) -> Released:
    return Released(fence, started_ago=2.0, message="shutdown")._replace(**values)


def cancelled(fence: Fence, **values: Any) -> Cancelled:
    return Cancelled(fence, started_ago=2.0, finished_ago=1.0, message="asked to stop")._replace(**values)


SETTLEMENTS = {
    "complete": completed,
    "fail": failed,
    "snooze": snoozed,
    "release": released,
    "cancel_held": cancelled,
}
"""The settling verbs, each with a maker of what it writes."""


def settle_one(verb: str, fence: Fence, *, connection: Connection = None, **values: Any) -> str:
    """Settle one job and return the answer's result."""
    settlement = SETTLEMENTS[verb](fence, **values)
    return getattr(Job.objects, verb)([settlement], worker=WORKER, connection=connection)[fence].result


def status_of(job_id: int) -> str | None:
    """Return the job's status, None when it is gone."""
    rows = fetch(f"SELECT status FROM {sql.STATE} WHERE job_id = %s", [job_id])
    return rows[0]["status"] if rows else None


def state_of(job_id: int) -> JobState:
    return JobState.objects.get(job_id=job_id)


def attempts_of(job_id: int) -> list[Attempt]:
    return list(Attempt.objects.filter(job_id=job_id).order_by("number"))


def outcomes_of(job_id: int) -> list[str]:
    return [attempt.outcome for attempt in attempts_of(job_id)]


def rows_of(job_id: int) -> dict[str, list[dict[str, Any]]]:
    """Return everything that is stored about a job."""
    return {
        "job": fetch(f"SELECT * FROM {sql.JOB} WHERE id = %s", [job_id]),
        "state": fetch(f"SELECT * FROM {sql.STATE} WHERE job_id = %s", [job_id]),
        "attempts": fetch(f"SELECT * FROM {sql.ATTEMPT} WHERE job_id = %s ORDER BY number", [job_id]),
    }


def fetch(
    statement: str, params: Sequence[Any] = (), *, connection: Connection = None
) -> list[dict[str, Any]]:
    """Return the rows of a query as dictionaries."""
    with (connection or connections["default"]).cursor() as cursor:
        cursor.execute(statement, params)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def assert_invariants(connection: Connection = None) -> None:
    """Check, over all rows, what must hold whatever happened."""
    jobs = {row["id"] for row in fetch(f"SELECT id FROM {sql.JOB}", connection=connection)}
    history: dict[int, list[dict[str, Any]]] = {job_id: [] for job_id in jobs}
    attempts = f"SELECT job_id, number, lease_version, outcome FROM {sql.ATTEMPT} ORDER BY job_id, number"
    for attempt in fetch(attempts, connection=connection):
        assert attempt["job_id"] in jobs, f"an attempt without a job: {attempt}"
        history[attempt["job_id"]].append(attempt)
    states_now = f"SELECT job_id, status, attempts, attempts_allowed, lease_version FROM {sql.STATE}"
    rows = fetch(states_now, connection=connection)
    assert {row["job_id"] for row in rows} == jobs, "each job has exactly one state"
    steps = {row["job_id"] for row in fetch(f"SELECT job_id FROM {sql.STEP}", connection=connection)}
    assert steps <= jobs, "steps without a job"
    for state in rows:
        _assert_history(state, history[state["job_id"]])


def _assert_history(state: dict[str, Any], attempts: list[dict[str, Any]]) -> None:
    status, outcomes = state["status"], [a["outcome"] for a in attempts]
    assert [a["number"] for a in attempts] == list(range(1, state["attempts"] + 1)), f"{state}: not 1..n"
    versions = [a["lease_version"] for a in attempts]
    assert versions == sorted(set(versions)), (
        f"{state}: two attempts share a claim, or lease_version went down"
    )
    assert all(version <= state["lease_version"] for version in versions), f"{state}: lease_version went down"
    if status == states.RUNNING:
        assert state["lease_version"] not in versions, f"{state}: the running attempt has ended already"
    assert states.SUCCEEDED not in outcomes[:-1], f"{state}: it ran again after it had succeeded"
    assert (outcomes[-1:] == [states.SUCCEEDED]) == (status == states.SUCCEEDED), f"{state}: {outcomes}"
    if status == states.DEAD:
        assert outcomes[-1] in states.CHARGED, f"{state}: dead after {outcomes[-1]}"
    if status in (states.READY, states.SCHEDULED, states.RUNNING):
        assert state["attempts"] < state["attempts_allowed"], f"{state}: alive without budget"


def shown(value: Any) -> str:
    """Return ``repr(value)`` without addresses: parallel test processes must agree on the ids of tests."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
