"""Questions: they change nothing. What operators, tasks and the admin pages ask."""

from .tables import ATTEMPT, JOB, STATE
from .wakeup import somebody_sleeps_on

UNKNOWN_SINCE = f"""
SELECT given.job_id, extract(epoch FROM clock_timestamp() - min(attempt.started_at))::float8, count(*)
FROM unnest(%(job_ids)s::bigint[]) AS given(job_id)
JOIN {ATTEMPT} AS attempt ON attempt.job_id = ANY(ARRAY[given.job_id])
WHERE attempt.exception_class = %(exception_class)s
GROUP BY given.job_id
"""

# What waits and runs in each queue, and whether a worker sleeps there: one partial index for each state.
_LIVE_OF = f"SELECT queue, status, count(*) AS jobs, min(run_at) AS since FROM {STATE} WHERE status = "
QUEUES = f"""
WITH live AS (
    {_LIVE_OF} 'ready' GROUP BY queue, status
    UNION ALL {_LIVE_OF} 'running' GROUP BY queue, status
    UNION ALL {_LIVE_OF} 'scheduled' GROUP BY queue, status
), queues AS (
    SELECT queue, coalesce(sum(jobs) FILTER (WHERE status = 'ready'), 0)::bigint AS ready,
           coalesce(sum(jobs) FILTER (WHERE status = 'running'), 0)::bigint AS running,
           coalesce(sum(jobs) FILTER (WHERE status = 'scheduled'), 0)::bigint AS scheduled,
           extract(epoch FROM clock_timestamp()
                   - min(since) FILTER (WHERE status = 'ready'))::float8 AS waited
    FROM live GROUP BY queue
)
SELECT queue, ready, running, scheduled, waited,
       {somebody_sleeps_on("queue")} OR {somebody_sleeps_on("'*'")}
FROM queues ORDER BY queue
"""
WORKERS = """
SELECT count(DISTINCT application_name) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'django_pgqueue child %%'
"""

# The latest attempts of jobs that are tried again: what a task sees of its own past.
HISTORY = f"""
SELECT past.job_id, past.number, past.worker_id, past.started_at, past.outcome, past.exception_class,
       past.traceback, past.message
FROM unnest(%(job_ids)s::bigint[]) AS given(job_id)
CROSS JOIN LATERAL (
    SELECT * FROM {ATTEMPT} AS attempt
    WHERE attempt.job_id = given.job_id
    ORDER BY number DESC
    LIMIT %(limit)s
) AS past
ORDER BY past.job_id, past.number
"""

# --- what the admin pages ask ----------------------------------------------------------------------

# Of the last attempts only: a job that was snoozed a hundred thousand times must not be walked to its start.
LAST_ERRORS = f"""
SELECT given.job_id, past.number, past.outcome, past.exception_class, left(past.message, %(characters)s)
FROM unnest(%(job_ids)s::bigint[]) AS given(job_id)
CROSS JOIN LATERAL (
    SELECT *
    FROM (SELECT * FROM {ATTEMPT} AS attempt WHERE attempt.job_id = given.job_id
          ORDER BY number DESC LIMIT %(attempts)s) AS latest
    WHERE outcome IN ('failed', 'lost') OR exception_class <> ''
    ORDER BY number DESC
    LIMIT 1
) AS past
"""

# One probe per distinct path, like READY_QUEUES; on the index of (task_path, id).
TASK_PATHS = f"""
WITH RECURSIVE found AS (
    (SELECT task_path, 1 AS place FROM {JOB} ORDER BY task_path LIMIT 1)
    UNION ALL
    SELECT (SELECT task_path FROM {JOB} WHERE task_path > found.task_path ORDER BY task_path LIMIT 1),
           place + 1
    FROM found
    WHERE found.task_path IS NOT NULL AND place < %(limit)s
)
SELECT task_path FROM found WHERE task_path IS NOT NULL
"""

# Each sub-select is ordered as its index is: unordered, a LIMIT tempts the planner into walking the table.
STATUS_COUNTS = f"""
SELECT (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'scheduled'
                              ORDER BY run_at, job_id LIMIT %(limit)s) AS counted),
       (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'ready'
                              ORDER BY queue, (priority * -1), position, job_id LIMIT %(limit)s) AS counted),
       (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'running'
                              ORDER BY claimed_at, job_id LIMIT %(limit)s) AS counted),
       (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'succeeded' AND finished_at IS NOT NULL
                              ORDER BY finished_at DESC LIMIT %(limit)s) AS counted),
       (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'dead' AND finished_at IS NOT NULL
                              ORDER BY finished_at DESC LIMIT %(limit)s) AS counted),
       (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'cancelled' AND finished_at IS NOT NULL
                              ORDER BY finished_at DESC LIMIT %(limit)s) AS counted)
"""

# By its index, whatever the statistics say: with a parent that has most of the children, those of another one
# would be looked for along the primary key.
CHILDREN = f"""
SELECT id
FROM {JOB}
WHERE parent_id IS NOT NULL
  AND (parent_id, id) > (%(job_id)s::bigint, %(after)s::bigint)
  AND parent_id <= %(job_id)s
ORDER BY parent_id, id
LIMIT %(limit)s
"""

# Ids that were given out, for jobs that were rolled back, too: it only grows, and no row is looked at.
IDS_GIVEN = f"""
SELECT coalesce(pg_sequence_last_value(sequence), 0)
FROM (SELECT pg_get_serial_sequence('{JOB}', 'id')::regclass AS sequence) AS named
WHERE has_sequence_privilege(sequence, 'USAGE, SELECT')
"""

DEAD = f"""
SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'dead' AND finished_at IS NOT NULL
                      ORDER BY finished_at DESC LIMIT %(limit)s) AS counted
"""

ESTIMATE = f"SELECT reltuples::bigint FROM pg_class WHERE oid = '{JOB}'::regclass"

# A binary search in the primary key: ids and times are drawn together, so they rise together.
FIRST_ID_AT = f"""
WITH RECURSIVE probe AS (
    SELECT min(id) AS low, max(id) + 1 AS high FROM {JOB}
    UNION ALL
    SELECT CASE WHEN seen.earlier THEN seen.id + 1 ELSE low END,
           CASE WHEN seen.earlier THEN high ELSE (low + high) / 2 END
    FROM probe
    CROSS JOIN LATERAL (
        SELECT id, enqueued_at < %(moment)s::timestamptz AS earlier
        FROM {JOB}
        WHERE id >= (low + high) / 2
        ORDER BY id
        LIMIT 1
    ) AS seen
    WHERE low < high
)
SELECT low FROM probe WHERE low >= high
"""

STATUS = f"SELECT status FROM {STATE} WHERE job_id = %(job_id)s"
