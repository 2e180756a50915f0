"""Tables of the harness beside the queue's, and what is read from all of them."""

import json
from typing import Any

import psycopg

from django_pgqueue import sql

from .history import Attempt, Overdue, Sighting, State

ORDERS, EFFECTS, ACCOUNTS, TRANSFERS = "chaos_order", "chaos_effect", "chaos_account", "chaos_transfer"
PEOPLE, OPENING_BALANCE = 100, 1_000_000
PORTION = 5000
CREATE = (
    f"CREATE TABLE {ORDERS} (tag text PRIMARY KEY)",
    f"CREATE TABLE {EFFECTS} (key text PRIMARY KEY, tag text NOT NULL)",
    f"CREATE TABLE {ACCOUNTS} (id int PRIMARY KEY, balance bigint NOT NULL)",
    # No key: a transfer that is made twice must be able to leave two rows.
    f"CREATE TABLE {TRANSFERS} (tag text NOT NULL, cents bigint NOT NULL)",
    f"INSERT INTO {ACCOUNTS} SELECT n, {OPENING_BALANCE} FROM generate_series(1, {PEOPLE}) n",
)


def create(session: psycopg.Connection) -> None:
    """Make the harness's own tables."""
    for statement in CREATE:
        session.execute(statement)


def ended(session: psycopg.Connection, after: tuple[float, int], lag: float) -> list[tuple[State, float]]:
    """Return jobs that ended after ``(time, job id)`` and over ``lag`` seconds ago, each with its time."""
    rows = session.execute(
        f"""
        SELECT s.job_id, j.args, s.status, s.attempts, s.attempts_allowed, s.lease_version,
               extract(epoch FROM s.finished_at)::numeric
        FROM {sql.STATE} s JOIN {sql.JOB} j ON j.id = s.job_id
        WHERE s.finished_at IS NOT NULL AND s.finished_at < clock_timestamp() - make_interval(secs => %s)
          AND (extract(epoch FROM s.finished_at), s.job_id) > (%s, %s)
        ORDER BY s.finished_at, s.job_id LIMIT {PORTION}
        """,
        [lag, *after],
    )
    return [(State(row[0], _tag(row[1]), *row[2:6]), row[6]) for row in rows]


def states(session: psycopg.Connection) -> list[State]:
    """Return all jobs as they stand."""
    rows = session.execute(
        f"SELECT s.job_id, j.args, s.status, s.attempts, s.attempts_allowed, s.lease_version"
        f" FROM {sql.STATE} s LEFT JOIN {sql.JOB} j ON j.id = s.job_id"
    )
    return [State(row[0], _tag(row[1]), *row[2:]) for row in rows]


def attempts(session: psycopg.Connection, job_ids: list[int] | None = None) -> list[Attempt]:
    """Return the attempts of these jobs, or all."""
    rows = session.execute(
        "SELECT job_id, number, lease_version, outcome, worker_id, extract(epoch FROM started_at)::float8,"
        f" extract(epoch FROM finished_at)::float8, return_value, exception_class FROM {sql.ATTEMPT}"
        " WHERE %(jobs)s::bigint[] IS NULL OR job_id = ANY(%(jobs)s)",
        {"jobs": job_ids},
    )
    return [
        Attempt(row[0], row[1], row[2], row[3], pid_of(row[4]), row[5], row[6], row[7], row[8])
        for row in rows
    ]


def orders(session: psycopg.Connection) -> set[str]:
    """Return the tags of the caller's own rows."""
    return {row[0] for row in session.execute(f"SELECT tag FROM {ORDERS}")}


def effects(session: psycopg.Connection) -> dict[str, int]:
    """Return how often each tag had its effect."""
    counts = (f"SELECT tag, count(*) FROM {table} GROUP BY tag" for table in (EFFECTS, TRANSFERS))
    return dict(session.execute(" UNION ALL ".join(counts)).fetchall())


def sightings(session: psycopg.Connection, at: float, limit: int = 200) -> list[Sighting]:
    """Look at some jobs: those that are touched last and some that were ended before."""
    rows = session.execute(
        f"SELECT job_id, status, attempts, lease_version FROM {sql.STATE} TABLESAMPLE SYSTEM (5) LIMIT %s",
        [limit],
    )
    return [Sighting(at, *row) for row in rows]


def overdue(session: psycopg.Connection, at: float) -> list[Overdue]:
    """Return the running jobs whose lease is over."""
    rows = session.execute(
        "SELECT job_id, extract(epoch FROM clock_timestamp() - lease_expires_at)::float8"
        f" FROM {sql.STATE} WHERE status = 'running' AND lease_expires_at < clock_timestamp()"
    )
    return [Overdue(at, *row) for row in rows]


def unfinished(session: psycopg.Connection) -> int:
    """Return how many jobs have not ended."""
    row = session.execute(f"SELECT count(*) FROM {sql.STATE} WHERE finished_at IS NULL").fetchone()
    return int(row[0]) if row else 0


def balances(session: psycopg.Connection) -> tuple[int, int]:
    """Return the sum of all accounts and the number of transfers."""
    row = session.execute(
        f"SELECT (SELECT sum(balance)::bigint FROM {ACCOUNTS}), (SELECT count(*) FROM {TRANSFERS})"
    ).fetchone()
    return (row[0], row[1]) if row else (0, 0)


def pid_of(worker_id: str) -> int:
    """Return the process id in a worker id: host.pid.random."""
    parts = worker_id.split(".")
    return int(parts[-2]) if len(parts) > 2 and parts[-2].isdigit() else 0


def _tag(args: Any) -> str:
    values = json.loads(args) if isinstance(args, str) else args or [""]
    return str(values[0])
