"""The tables: migrations, the storage settings, dead rows, indexes, statistics, and the plan of a claim."""

import json
from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID

import psycopg
from django.db import transaction
from django.db.migrations.executor import MigrationExecutor

from .. import sql
from ..models import Attempt, Job, JobState
from ..records import HEAD
from .findings import BAD, TABLES, WARN, Finding, Patient, span

DEAD_SHARE, DEAD_LEAST = 0.5, 100_000
"""Dead rows for each live one, and how many at least, that are worth a word."""
BLOATED, LEAST_SIZE = 400, 256 * 2**20
"""Bytes of an index for each of its entries, and its whole size, from which on it is bloated."""
NEVER_ANALYSED = 100_000
EXPECTED = {
    "fillfactor": "70",
    "vacuum_index_cleanup": "on",
    "autovacuum_vacuum_scale_factor": "0",
    "autovacuum_vacuum_threshold": "20000",
}
CLAIM_INDEX = "pgqueue_state_claim"
TIMEOUTS = {"statement_timeout": "10s", "lock_timeout": "2s"}


def look_at_tables(patient: Patient) -> Iterator[Finding]:
    """Yield what is amiss with the tables."""
    unapplied = _unapplied(patient)
    if unapplied:
        said = f"Migrations of django_pgqueue have not been applied: {', '.join(unapplied)}."
        yield Finding(
            "migrations", BAD, said, f"manage.py migrate django_pgqueue --database {patient.database}"
        )
        return
    for row in patient.ask(sql.TABLES, tables=TABLES):
        yield from _table(*row)
    yield from _indexes(patient)
    yield from _claim_plans(patient)


def _unapplied(patient: Patient) -> list[str]:
    executor = MigrationExecutor(patient.connection)
    targets = [node for node in executor.loader.graph.leaf_nodes() if node[0] == Job._meta.app_label]
    return [migration.name for migration, _ in executor.migration_plan(targets)]


def _table(
    name: str, live: int, dead: int, vacuumed: float | None, analysed: float | None, size: int,
    options: Any, estimate: int,
) -> Iterator[Finding]:  # fmt: skip
    given = dict(option.split("=", 1) for option in options)
    if name == sql.STATE:
        lost = [key for key, value in EXPECTED.items() if given.get(key) != value]
        if lost:
            wanted = ", ".join(f"{key} = {EXPECTED[key]}" for key in lost)
            said = f"{name} has lost storage settings of its migration, or has others: {', '.join(lost)}."
            yield Finding("storage-settings", WARN, said, f"ALTER TABLE {name} SET ({wanted});")
    if given.get("autovacuum_enabled") in ("off", "false"):
        said = f"Autovacuum is off for {name}."
        yield Finding("autovacuum", BAD, said, f"ALTER TABLE {name} RESET (autovacuum_enabled);")
    if dead > DEAD_LEAST and dead > DEAD_SHARE * max(live, 1):
        last = f"last vacuumed {span(vacuumed)} ago" if vacuumed is not None else "never vacuumed"
        said = f"{name} has {dead:,} dead rows beside {live:,} live ones ({size / 2**20:,.0f} MB, {last})."
        yield Finding(
            "dead-rows", WARN, said, f"VACUUM (ANALYZE) {name}; -- and see who holds the xmin horizon"
        )
    if analysed is None and max(live, estimate) > NEVER_ANALYSED:
        said = f"{name} holds {max(live, estimate):,} rows and was never analysed."
        yield Finding("statistics", WARN, said, f"ANALYZE {name};")


def _indexes(patient: Patient) -> Iterator[Finding]:
    found = {row[0]: row[1:] for row in patient.ask(sql.INDEXES, tables=TABLES)}
    for name, (valid, size, entries) in found.items():
        if not valid:
            said = f"The index {name} is not valid: its building was broken off."
            yield Finding("invalid-index", BAD, said, f"REINDEX INDEX CONCURRENTLY {name};")
        elif size > LEAST_SIZE and size > BLOATED * max(entries, 1):
            said = f"The index {name} has {size / 2**20:,.0f} MB for about {max(entries, 0):,} entries."
            yield Finding("index-bloat", WARN, said, f"REINDEX INDEX CONCURRENTLY {name};")
    expected = {index.name: model for model in (Job, JobState, Attempt) for index in model._meta.indexes}
    expected |= {
        constraint.name: JobState for constraint in JobState._meta.constraints if "key" in constraint.name
    }
    for name in sorted(set(expected) - set(found)):
        said = f"The index {name} of {expected[name]._meta.db_table} is missing."
        mend = "CREATE INDEX CONCURRENTLY ..., as manage.py sqlmigrate django_pgqueue prints it"
        yield Finding("missing-index", BAD, said, mend)


def _claim_plans(patient: Patient) -> Iterator[Finding]:
    queues = (
        [row[0] for row in patient.ask(sql.READY_QUEUES)] or sorted(patient.backend.queues)[:1] or ["default"]
    )
    for queue in queues[:20]:
        plan = _claim_plan(patient, queue)
        nodes = list(_nodes(plan))
        picks = [node for node in nodes if node.get("Index Name") == CLAIM_INDEX]
        wrong = [
            node["Node Type"]
            for node in nodes
            if node.get("Relation Name") in TABLES and node["Node Type"] == "Seq Scan"
        ]
        if not picks or wrong:
            plan_is = ", ".join(wrong) or "another index"
            said = f"A claim of the queue {queue!r} does not go by {CLAIM_INDEX}: {plan_is}."
            yield Finding("claim-plan", BAD, said, f"ANALYZE {sql.STATE}; ANALYZE {sql.JOB};")


def _claim_plan(patient: Patient, queue: str) -> dict[str, Any]:
    params = {
        "queue": queue,
        "limit": 50,
        "worker_id": "doctor",
        "lease_token": UUID(int=0),
        "lease": 1.0,
        "after_rank": HEAD.rank,
        "after_position": HEAD.position,
        "after_job_id": HEAD.job_id,
    }
    with transaction.atomic(using=patient.database):
        # EXPLAIN without ANALYZE plans and does not execute: nothing is claimed.
        with psycopg.ClientCursor(patient.connection.connection) as cursor:
            cursor.execute(sql.HOT_PATH, TIMEOUTS)
            cursor.execute(cast(Any, sql.EXPLAIN_CLAIM), params)
            (found,) = cursor.fetchone() or ([{"Plan": {}}],)
        transaction.set_rollback(True, using=patient.database)
    plan: dict[str, Any] = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return plan


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)
