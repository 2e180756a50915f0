"""All rows, as the database has them and as the model tells them, in the same words."""

from typing import Any

import psycopg

from django_pgqueue import sql
from django_pgqueue.states import LIVE, READY, RUNNING, SCHEDULED
from tests.support import fetch

from .world import Ended, Row

Told = dict[int, dict[str, Any]]
"""What one side says of each job, by words."""

STATES = f"""
SELECT job.id, job.max_attempts, state.*,
       lease_expires_at < clock_timestamp() AS lease_over, run_at <= clock_timestamp() AS due
FROM {sql.STATE} AS state
FULL JOIN {sql.JOB} AS job ON job.id = state.job_id
"""
ATTEMPTS = (
    f"SELECT job_id, number, lease_version, lease_token, outcome FROM {sql.ATTEMPT} ORDER BY job_id, number"
)


def compare(stored: Told, told: Told, where: str) -> None:
    differences = [
        f"job {i}, {name}: stored {stored.get(i, {}).get(name)!r}, told {told.get(i, {}).get(name)!r}"
        for i in stored.keys() | told.keys()
        for name in stored.get(i, told.get(i, {}))
        if stored.get(i, {}).get(name) != told.get(i, {}).get(name)
    ]
    assert not differences, "\n".join([f"{where}:", *differences])


def stored_rows(session: psycopg.Connection) -> Told:
    history: dict[int, list[Ended]] = {}
    for row in fetch(ATTEMPTS, connection=session):
        ended = history.setdefault(row["job_id"], [])
        ended.append(Ended(row["lease_version"], row["lease_token"], row["outcome"]))
        assert row["number"] == len(ended), f"the attempts of job {row['job_id']} are not 1..n"
    steps: dict[int, set[str]] = {}
    for row in fetch(f"SELECT job_id, name FROM {sql.STEP}", connection=session):
        steps.setdefault(row["job_id"], set()).add(row["name"])
    stored = {}
    for row in fetch(STATES, connection=session):
        assert row["id"] == row["job_id"], f"a job without a state, or a state without a job: {row}"
        stored[row["job_id"]] = {
            "status": row["status"],
            "priority": row["priority"],
            "key": row["unique_key"],
            "attempts": row["attempts"],
            "allowed": row["attempts_allowed"],
            "budget": row["max_attempts"],
            "version": row["lease_version"],
            "token": row["lease_token"],
            "worker": row["worker_id"],
            "asked to cancel": row["cancel_requested_at"] is not None,
            "has ended": row["finished_at"] is not None,
            "due": row["status"] != SCHEDULED or row["due"],
            "lease over": row["status"] == RUNNING and row["lease_over"],
            "position": row["position"] if row["status"] == READY else None,
            "progress": row["progress"],
            "steps": steps.pop(row["job_id"], set()),
            "history": history.pop(row["job_id"], []),
        }
    assert history == {}, "attempts without a job"
    assert steps == {}, "steps without a job"
    return stored


def told_rows(rows: dict[int, Row]) -> Told:
    return {
        i: {
            "status": row.status,
            "priority": row.priority,
            "key": row.key,
            "attempts": row.attempts,
            "allowed": row.allowed,
            "budget": row.max_attempts,
            "version": row.version,
            "token": row.token,
            "worker": row.worker,
            "asked to cancel": row.asked_to_cancel,
            "has ended": row.status not in LIVE,
            "due": row.status != SCHEDULED or row.due,
            "lease over": row.status == RUNNING and row.lease_over,
            "position": row.position if row.status == READY else None,
            "progress": row.progress,
            "steps": set(row.steps),
            "history": list(row.history),
        }
        for i, row in rows.items()
    }
