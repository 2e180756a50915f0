"""claim-plan: what one claim of ten jobs costs the server, and by which plan, in a large table.

A tenth of the states are ready, in four queues. Three ways to ask for the next jobs: several queues by an
array, then the order (the usual statement of queues on PostgreSQL); one queue by equality; and this project's
own claim with all that belongs to it: cursor, lease, payload, transaction settings. The first two take the
jobs in the same way and return their ids only.
"""

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import psycopg

from benchmarks.contenders.base import BEST
from benchmarks.contenders.ours import OURS
from benchmarks.core.benchmark import Benchmark, Setting
from benchmarks.core.filling import QUEUES, one_in_ten_ready
from benchmarks.core.lanes import Lane, Race, Sample
from benchmarks.core.processes import Failed
from benchmarks.core.statistics import ratio_of_pairs
from django_pgqueue import sql
from django_pgqueue.connections import LOCK_TIMEOUT, STATEMENT_TIMEOUT
from django_pgqueue.records import HEAD

CLAIMED = 10
ARRAY, EQUALITY = "array predicate", "equality predicate"
WARM_UP = 3
"""Executions before the one that counts: the pages are in memory, as a worker has them."""

USUAL = f"""
WITH picked AS MATERIALIZED (
    SELECT job_id
    FROM {sql.STATE}
    WHERE status = 'ready' AND queue = {{queues}}
    ORDER BY (priority * -1), position, job_id
    LIMIT {CLAIMED}
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {sql.STATE} AS state
SET status = 'running', lease_version = state.lease_version + 1, lease_token = gen_random_uuid(),
    worker_id = 'worker', claimed_at = clock_timestamp(),
    lease_expires_at = clock_timestamp() + interval '30 s'
FROM picked
WHERE state.job_id = picked.job_id
RETURNING state.job_id
"""
STATEMENTS = {
    ARRAY: USUAL.format(queues="ANY(%(queues)s)"),
    EQUALITY: USUAL.format(queues="%(queue)s"),
    "ours": sql.CLAIM,
}


def lanes(setting: Setting) -> list[Lane]:
    """Return the three ways to claim, on one and the same table: what they do is undone."""
    return [Lane(name, partial(claim, setting, name)) for name in STATEMENTS]


def claim(setting: Setting, way: str) -> Sample:
    """Claim in one way; the value is the server's execution time in milliseconds."""
    environ = OURS.environ(BEST, Path(os.devnull), {})
    fill = (f"_plan_{setting.size}", one_in_ten_ready(setting.size))
    return explained(setting.databases.url(OURS.template(setting.databases, 0, environ, fill)), way)


def explained(url: str, way: str) -> Sample:
    """Explain a claim on a database, after a few that warm up; all are rolled back."""
    with psycopg.connect(url, cursor_factory=psycopg.ClientCursor) as connection:
        for _ in range(WARM_UP):
            _explain(connection, way, "ANALYZE, TIMING OFF")
        timed = _explain(connection, way, "ANALYZE, TIMING OFF, BUFFERS")
        plan = _explain(connection, way, "ANALYZE, BUFFERS")
    facts = {
        "find_ms": _finding(plan),
        "buffers": _buffers(timed),
        "planning_ms": _planning(timed),
        "plan": plan,
    }
    return Sample(_milliseconds(timed), facts)


def _explain(connection: psycopg.Connection[Any], way: str, options: str) -> str:
    if way == "ours":
        connection.execute(sql.HOT_PATH, _TIMEOUTS)
    rows = connection.execute(f"EXPLAIN ({options}) {STATEMENTS[way]}", _parameters()).fetchall()
    connection.rollback()
    return "\n".join(row[0] for row in rows)


_TIMEOUTS = {"statement_timeout": f"{STATEMENT_TIMEOUT:g}s", "lock_timeout": f"{LOCK_TIMEOUT:g}s"}


def _parameters() -> Mapping[str, Any]:
    return {
        "queue": QUEUES[0],
        "queues": list(QUEUES),
        "after_rank": HEAD.rank,
        "after_position": HEAD.position,
        "after_job_id": HEAD.job_id,
        "limit": CLAIMED,
        "lease_token": uuid4(),
        "worker_id": "worker",
        "lease": 30.0,
    }


def _milliseconds(plan: str) -> float:
    return _time_in(plan, r"Execution Time: ([\d.]+) ms")


def _planning(plan: str) -> float:
    return _time_in(plan, r"Planning Time: ([\d.]+) ms")


def _finding(plan: str) -> float:
    """Return the time until the last of the next jobs was found and locked, before any was taken."""
    return _time_in(plan, r"CTE picked\n\s*->  Limit .*?actual time=[\d.]+\.\.([\d.]+)")


def _time_in(plan: str, pattern: str) -> float:
    found = re.search(pattern, plan)
    if not found:
        raise Failed(f"EXPLAIN shows nothing like {pattern!r}: {plan}")
    return float(found[1])


def _buffers(plan: str) -> int:
    """Return the pages that the whole statement touched: those of its topmost node."""
    found = re.search(r"Buffers: shared([^\n]*)", plan)
    return sum(int(n) for n in re.findall(r"(?:hit|read)=(\d+)", found[1])) if found else 0


def finish(race: Race) -> dict[str, Any]:
    """Return how many times longer the others take, for a claim and for finding alone, and every plan."""
    ours = race.values("ours")
    finding = {name: [s.facts["find_ms"] for s in samples] for name, samples in race.samples.items()}
    return {
        "ours_ms": median(ours),
        "array_over_ours": ratio_of_pairs(race.values(ARRAY), ours),
        "equality_over_ours": ratio_of_pairs(race.values(EQUALITY), ours),
        "array_find_over_ours": ratio_of_pairs(finding[ARRAY], finding["ours"]),
        "plans": {name: _taken(samples) for name, samples in race.samples.items()},
    }


def _taken(samples: list[Sample]) -> str:
    """Take the plan out of every sample, so that it stands in the result once; return the last."""
    return [str(sample.facts.pop("plan")) for sample in samples][-1]


BENCHMARK = Benchmark(
    name="claim-plan",
    unit="ms",
    about=f"the server's time for one claim of {CLAIMED} jobs; a tenth of the states are ready",
    sized="states",
    size=1_000_000,
    short=100_000,
    lanes=lanes,
    better="lower",
    finish=finish,
    takes_peers=False,
)
