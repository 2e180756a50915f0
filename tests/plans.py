"""Plans as PostgreSQL really used them, and large tables to use them on.

``auto_explain`` tells the plan of each statement that a session executes, through whatever protocol and with
whatever prepared statement it was: here the worker's own connection, its transaction settings and the verbs.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from psycopg.errors import InsufficientPrivilege, UndefinedFile

from django_pgqueue import sql
from django_pgqueue.connections import PrivateConnection
from django_pgqueue.records import Fence

TABLES = (sql.JOB, sql.STATE, sql.ATTEMPT)
RUNNING = 500
"""Jobs 1 to 500 of a filled table run, and their leases are over."""

SETTINGS = {
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_format": "json",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "client_min_messages": "log",
}


class Session:
    """The worker's connection, telling its plans."""

    def __init__(self, name: str, plan_cache_mode: str) -> None:
        self.name = name
        self.plans: list[Plan] = []
        self._private = PrivateConnection("default", "plans")
        with self._private.guarded() as connection:
            connection.execute("LOAD 'auto_explain'")
            for name, value in (SETTINGS | {"plan_cache_mode": plan_cache_mode}).items():
                connection.execute("SELECT set_config(%s, %s, false)", [name, value])
            connection.add_notice_handler(self._hear)

    @contextmanager
    def plain(self) -> Iterator[psycopg.Connection]:
        """A transaction as a web request has it, undone at its end."""
        self.plans.clear()
        with self._private.guarded() as connection, connection.transaction():
            yield connection
            raise psycopg.Rollback

    @contextmanager
    def hot(self) -> Iterator[psycopg.Connection]:
        """The worker's transaction, undone at its end; ``plans`` are of the statements in it."""
        self.plans.clear()
        with self._private.hot() as connection:
            yield connection
            raise psycopg.Rollback

    def close(self) -> None:
        self._private.close()

    def _hear(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        message = diagnostic.message_primary or ""
        if "plan:" in message:
            duration, _, explained = message.partition("plan:")
            plan = Plan(json.loads(explained), float(duration.split()[1]), self.name)
            if "set_config" not in plan.text:  # HOT_PATH itself: a plan is told when the next statement comes
                self.plans.append(plan)


class Plan:
    """One executed statement: its text, its nodes, the pages it touched, the time it took."""

    def __init__(self, explained: dict[str, Any], milliseconds: float, session: str) -> None:
        self.session = session
        self.milliseconds = milliseconds
        self.text: str = explained["Query Text"]
        self.nodes = list(_nodes(explained["Plan"], []))
        top = explained["Plan"]
        self.buffers: int = top["Shared Hit Blocks"] + top["Shared Read Blocks"]

    def scans(self) -> list[dict[str, Any]]:
        """Return the nodes that read the queue's tables."""
        return [
            node for node in self.nodes if node.get("Relation Name") in TABLES and "Scan" in node["Node Type"]
        ]

    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.nodes if "Index Name" in node}

    def scan_of(self, index: str) -> dict[str, Any]:
        """Return the only node that reads this index."""
        found = [node for node in self.nodes if node.get("Index Name") == index]
        assert len(found) == 1, f"{index} in {self}"
        return found[0]

    def most_rows(self) -> float:
        """Return the number of rows that the busiest node handled, all its loops together."""
        return max(node["Actual Rows"] * node["Actual Loops"] for node in self.nodes)

    def sorted_rows_of_tables(self) -> list[dict[str, Any]]:
        """Return the Sort nodes above a scan of the queue's tables."""
        scans = self.scans()
        return [
            n for n in self.nodes if "Sort" in n["Node Type"] and any(n in scan["above"] for scan in scans)
        ]

    def __repr__(self) -> str:
        lines = [f"{self.session}: {self.buffers} buffers, {self.milliseconds} ms"]
        for node in self.nodes:
            told = {k: v for k, v in node.items() if k in SHOWN}
            lines.append("  " * len(node["above"]) + " ".join(f"{k}={v}" for k, v in told.items()))
        return "\n".join(lines)


SHOWN = (
    "Node Type",
    "Relation Name",
    "Index Name",
    "Index Cond",
    "Filter",
    "Actual Rows",
    "Rows Removed by Filter",
)


def _nodes(node: dict[str, Any], above: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    node["above"] = above
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child, [*above, node])


def can_tell_plans(connection: psycopg.Connection) -> bool:
    """Return whether this role may load auto_explain (a superuser may)."""
    try:
        connection.execute("LOAD 'auto_explain'")
    except (InsufficientPrivilege, UndefinedFile):
        return False
    return True


# --- large tables


def empty(connection: psycopg.Connection) -> None:
    """Make the tables as they are after the migration: without rows, and never analysed."""
    for table in TABLES:
        connection.execute(f"TRUNCATE {table}")
        connection.execute("DELETE FROM pg_statistic WHERE starelid = %s::regclass", [table])
        connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")


def leave(connection: psycopg.Connection) -> None:
    """Undo what the filling did."""
    for table in TABLES:
        connection.execute(f"TRUNCATE {table}")
        connection.execute(f"ALTER TABLE {table} RESET (autovacuum_enabled)")


def analyse_with(connection: psycopg.Connection, rows: int) -> None:
    """Have the tables analysed while so many rows live in pages of dead ones."""
    fill(connection, succeeded=500, ready=rows)
    for table, key in ((sql.JOB, "id"), (sql.STATE, "job_id"), (sql.ATTEMPT, "job_id")):
        connection.execute(f"DELETE FROM {table} WHERE {key} <= %s", [RUNNING + 500])
    analyse(connection)
    for table in TABLES:
        connection.execute(f"DELETE FROM {table}")


def fill(connection: psycopg.Connection, **counts: int) -> None:
    """Put jobs into these states; besides them ``RUNNING`` run. ``queue_x=n``: ready ones of queue x.

    Of many alike only the first have a row of their own in the table of jobs: those that are claimed.
    """
    first = 1
    for name, count in ({"running": RUNNING} | counts if counts else {}).items():
        status, queue = (
            ("ready", name.removeprefix("queue_")) if name.startswith("queue_") else (name, "default")
        )
        values = {"status": status, "queue": queue, "first": first, "last": first + count - 1}
        connection.execute(FILL, values)
        connection.execute(FILL_JOBS, values | {"last": min(values["last"], first + MOST_JOBS)})
        if status == "succeeded":
            connection.execute(FILL_ATTEMPTS, values)
        first += count


MOST_JOBS = 20_000
FILL_JOBS = f"""
INSERT INTO {sql.JOB} (id, backend, task_path, args, kwargs, queue, priority, enqueued_at, metadata,
                       max_attempts, backoff_base, backoff_cap)
SELECT id, 'default', 'tests.tasks.ok', '[]', '{{}}', %(queue)s::text, 0, now(), '{{}}', 5, 5, 3600
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS id
"""
LATER = "now() + interval '1 day' + id * interval '1 s'"
RUN_AT = f"CASE WHEN %(status)s::text = 'scheduled' THEN {LATER} ELSE now() END"
ENDED = "(%(status)s::text IN ('succeeded', 'dead', 'cancelled'))"
RUNS = "CASE WHEN %(status)s::text = 'running' THEN"
FILL = f"""
INSERT INTO {sql.STATE} (job_id, queue, priority, status, position, run_at, attempts, attempts_allowed,
                         lease_version, lease_token, worker_id, claimed_at, lease_expires_at, finished_at)
SELECT id, %(queue)s::text, 0, %(status)s::text, CASE WHEN %(status)s::text = 'ready' THEN id END, {RUN_AT},
       {ENDED}::int, 5, 1,
       {RUNS} ('00000000-0000-0000-0000-' || lpad(id::text, 12, '0'))::uuid END, {RUNS} 'worker-1' END,
       {RUNS} now() END, {RUNS} now() - interval '1 hour' END,
       CASE WHEN {ENDED} THEN now() - interval '1 hour' + id * interval '1 ms' END
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS id
"""
# One attempt for every tenth ended job: prune looks them up by key, so their number matters little.
FILL_ATTEMPTS = f"""
INSERT INTO {sql.ATTEMPT} (job_id, number, lease_version, lease_token, worker_id, host, started_at,
                           finished_at, outcome, exception_class, message, traceback, fingerprint, log_tail)
SELECT id, 1, 1, '00000000-0000-0000-0000-000000000000', 'worker-1', '', now(),
       now(), 'succeeded', '', '', '', '', ''
FROM generate_series(%(first)s::bigint, %(last)s::bigint, 10) AS id
"""


def analyse(connection: psycopg.Connection) -> None:
    for table in TABLES:
        connection.execute(f"ANALYZE {table}")


def fences(count: int = 20) -> list[Fence]:
    """Return fences of jobs that run, once the tables are filled."""
    return [Fence(number, 1, UUID(int=int(str(number), 16))) for number in range(1, count + 1)]
