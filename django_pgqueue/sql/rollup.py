"""Rollups: what attempts came to, by minute and quarter of an hour, each attempt counted exactly once.

Attempts commit in another order than they are numbered, so a mark on time or id would miss some.  Each
attempt carries the id of the transaction that wrote it.  The mark is a snapshot of transactions: all before
``next_xid`` are counted, but those in ``pending``, which had not ended when they were passed.  One statement
reads, under one snapshot, what has ended since; the mark's row is locked meanwhile, so that several keepers
take turns.
"""

from ..histograms import THRESHOLDS
from .tables import ATTEMPT, job_of

ROLLUP = "django_pgqueue_rollup"
MARK = "django_pgqueue_rollupmark"

EVER = 2**31 - 1
"""In place of a span's seconds: all that was ever counted, in one row of a task and queue, never pruned."""
SPANS = (60, 900, EVER)
"""Seconds of a rollup: a minute for the last hours, a quarter of an hour for the last days, and ever."""

# The look first: an insert alone would wait for whoever has the row.
MAKE_MARK = f"""
INSERT INTO {MARK} (id, next_xid, pending, counted_from)
SELECT 1, 0, '{{}}', '-infinity' WHERE NOT EXISTS (SELECT FROM {MARK})
ON CONFLICT (id) DO NOTHING
"""
# In a statement of its own: the next one must look with a newer snapshot than the one that took the lock.
LOCK_MARK = f"""
SELECT next_xid, pending, counted_from::text,
       next_xid > pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS is_ahead
FROM {MARK}
WHERE id = 1
FOR NO KEY UPDATE SKIP LOCKED
"""

# A database restored elsewhere has younger transaction ids than the mark: nothing would be new for a long
# time, and then old attempts a second time.  So the mark begins anew, and what had ended before is left out.
RESTART_MARK = f"""
UPDATE {MARK} SET next_xid = pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pending = '{{}}',
       counted_from = clock_timestamp()
WHERE id = 1
RETURNING next_xid, pending, counted_from::text
"""

_ENDED_ATTEMPT = "job_id, number, outcome, started_at, finished_at"
_BUCKET = f"ARRAY[{', '.join(f'{threshold:g}' for threshold in THRESHOLDS)}]::float8[]"

# One transaction that wrote more attempts than the limit is no settle but a bulk load: it is passed over.
# Rows come by groups, and at least one row that says how far the mark moves.
COUNT_ATTEMPTS = f"""
WITH present AS MATERIALIZED (
    SELECT pg_snapshot_xmax(snapshot)::text::bigint AS next_xid,
           ARRAY(SELECT xid::text::bigint FROM pg_snapshot_xip(snapshot) AS running(xid)) AS running
    FROM (SELECT pg_current_snapshot() AS snapshot) AS now
), ahead AS MATERIALIZED (
    SELECT recorded_xid, {_ENDED_ATTEMPT}
    FROM {ATTEMPT}
    WHERE recorded_xid >= %(next_xid)s::bigint AND recorded_xid < (SELECT next_xid FROM present)
    ORDER BY recorded_xid
    LIMIT %(limit)s::int + 1
), reach AS MATERIALIZED (
    SELECT CASE WHEN count(*) <= %(limit)s::int THEN greatest((SELECT next_xid FROM present), %(next_xid)s)
                WHEN min(recorded_xid) < max(recorded_xid) THEN max(recorded_xid)
                ELSE max(recorded_xid) + 1 END AS until_xid,
           count(*) > %(limit)s::int AND min(recorded_xid) = max(recorded_xid) AS passed_over
    FROM ahead
), late AS MATERIALIZED (
    SELECT xid, xid >= present.next_xid OR xid = ANY(present.running) AS runs
    FROM unnest(%(pending)s::bigint[]) AS pending(xid)
    CROSS JOIN present
), fresh AS MATERIALIZED (
    SELECT {_ENDED_ATTEMPT} FROM ahead
    WHERE recorded_xid < (SELECT until_xid FROM reach) AND NOT (SELECT passed_over FROM reach)
    UNION ALL
    SELECT {_ENDED_ATTEMPT}
    FROM late
    CROSS JOIN LATERAL (SELECT {_ENDED_ATTEMPT}, count(*) OVER () AS written
                        FROM (SELECT {_ENDED_ATTEMPT} FROM {ATTEMPT} WHERE recorded_xid = late.xid
                              ORDER BY recorded_xid LIMIT %(limit)s::int + 1) AS attempt) AS attempt
    WHERE NOT late.runs AND written <= %(limit)s::int
), counted AS (
    SELECT date_bin('1 minute', fresh.finished_at, '2000-01-01 00:00+00') AS minute,
           job.queue, job.task_path, fresh.outcome,
           width_bucket(extract(epoch FROM fresh.finished_at - fresh.started_at)::float8, {_BUCKET}) AS run,
           CASE WHEN fresh.number = 1 THEN width_bucket(
               extract(epoch FROM fresh.started_at - coalesce(job.run_after, job.enqueued_at))::float8,
               {_BUCKET}
           ) END AS wait,
           count(*) AS attempts,
           sum(extract(epoch FROM fresh.finished_at - fresh.started_at))::float8 AS seconds
    FROM fresh
    CROSS JOIN LATERAL {job_of("fresh")} AS job
    WHERE fresh.finished_at >= %(counted_from)s::timestamptz
    GROUP BY 1, 2, 3, 4, 5, 6
)
SELECT reach.until_xid,
       ARRAY(SELECT xid FROM late WHERE runs UNION
             SELECT xid FROM present CROSS JOIN LATERAL unnest(present.running) AS running(xid)
             WHERE xid >= %(next_xid)s::bigint AND xid < reach.until_xid) AS pending,
       reach.passed_over, (SELECT count(*) FROM ahead) > %(limit)s::int AS is_behind, counted.*
FROM reach
LEFT JOIN counted ON true
"""

MOVE_MARK = f"""
UPDATE {MARK} SET next_xid = %(next_xid)s, pending = %(pending)s WHERE id = 1
  AND (next_xid, pending) IS DISTINCT FROM (%(next_xid)s, %(pending)s::bigint[])
RETURNING next_xid
"""

_COUNTS = ("succeeded", "failed", "lost", "snoozed", "released", "cancelled", "run_seconds")


def _sum_of(name: str) -> str:
    return (
        f"{name} = ARRAY(SELECT here + more FROM unnest(rollup.{name}, excluded.{name}) WITH ORDINALITY "
        "AS pair(here, more, place) ORDER BY place)"
    )


ADD_ROLLUPS = f"""
INSERT INTO {ROLLUP} AS rollup (span, starts_at, queue, task_path, {", ".join(_COUNTS)}, runs, waits)
SELECT span, starts_at, queue, task_path, {", ".join(_COUNTS)}, runs, waits
FROM jsonb_to_recordset(%(rollups)s::jsonb) AS given(
    span int, starts_at timestamptz, queue text, task_path text, succeeded bigint, failed bigint, lost bigint,
    snoozed bigint, released bigint, cancelled bigint, run_seconds float8, runs bigint[], waits bigint[])
ORDER BY span, starts_at, queue, task_path
ON CONFLICT (span, starts_at, queue, task_path) DO UPDATE
SET {", ".join(f"{name} = rollup.{name} + excluded.{name}" for name in _COUNTS)},
    {_sum_of("runs")}, {_sum_of("waits")}
RETURNING 1
"""

PRUNE_ROLLUPS = f"""
WITH old AS MATERIALIZED (
    SELECT span, starts_at, queue, task_path
    FROM {ROLLUP}
    WHERE span = %(span)s AND starts_at < (SELECT clock_timestamp()) - make_interval(secs => %(age)s)
    ORDER BY span, starts_at, queue, task_path
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM {ROLLUP} AS rollup USING old
WHERE (rollup.span, rollup.starts_at, rollup.queue, rollup.task_path)
      = (old.span, old.starts_at, old.queue, old.task_path)
RETURNING 1
"""

# --- what the overview asks ------------------------------------------------------------------------

_WINDOW = """span = %(span)s
  AND starts_at > date_bin(make_interval(secs => %(span)s), (SELECT clock_timestamp()), '2000-01-01 00:00+00')
                  - make_interval(secs => %(window)s)"""
_SUMS = ", ".join(f"sum({name})::float8" for name in _COUNTS)

# Times as seconds: what they become in Python depends on a project's USE_TZ.
SERIES = f"""
SELECT extract(epoch FROM starts_at)::bigint, {_SUMS} FROM {ROLLUP} WHERE {_WINDOW}
GROUP BY starts_at ORDER BY starts_at
"""

# The names of tasks are as many as the project has; those with most failures first, then the busiest.
TASKS = f"""
SELECT queue, task_path, {_SUMS} FROM {ROLLUP} WHERE {_WINDOW} GROUP BY queue, task_path
ORDER BY sum(failed + lost) DESC, sum(run_seconds) DESC, queue, task_path
LIMIT %(limit)s
"""

HISTOGRAMS = f"""
SELECT extract(epoch FROM starts_at)::bigint, queue, task_path, place::int,
       sum(run)::bigint, sum(wait)::bigint
FROM {ROLLUP}
CROSS JOIN LATERAL unnest(runs, waits) WITH ORDINALITY AS bucket(run, wait, place)
WHERE {_WINDOW} AND (run > 0 OR wait > 0)
GROUP BY GROUPING SETS ((starts_at, place), (queue, task_path, place))
"""

# --- what metrics ask --------------------------------------------------------------------------------

# Of more tasks than the limit, those with most attempts: their counts go on from one look to the next.
TOTALS = f"""
SELECT queue, task_path, {", ".join(f"{name}::float8" for name in _COUNTS)}, runs, waits,
       count(*) OVER ()
FROM {ROLLUP} WHERE span = %(span)s
ORDER BY succeeded + failed + lost + snoozed + released + cancelled DESC, queue, task_path
LIMIT %(limit)s
"""
