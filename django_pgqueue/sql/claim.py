"""Claim: ready jobs of one queue become this worker's, behind its cursor."""

from .pause import IS_PAUSED
from .tables import STATE, job_of

# The cursor is an index range, never a filter: entries that died before it are not walked.
# A paused queue has nothing to claim; the look is done once, before the first row.
# Only one queue, by equality: with ANY(array) PostgreSQL sorts every pending row of those queues.
CLAIM = f"""
WITH picked AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE status = 'ready'
      AND queue = %(queue)s
      AND ((priority * -1), position, job_id)
          > (%(after_rank)s::int, %(after_position)s::bigint, %(after_job_id)s::bigint)
      AND {IS_PAUSED} IS NULL
    ORDER BY (priority * -1), position, job_id
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
), claimed AS (
    UPDATE {STATE} AS state
    SET status = 'running',
        lease_version = state.lease_version + 1,
        lease_token = %(lease_token)s,
        worker_id = %(worker_id)s,
        claimed_at = clock_timestamp(),
        lease_expires_at = clock_timestamp() + make_interval(secs => %(lease)s)
    FROM picked
    WHERE state.job_id = ANY(ARRAY[picked.job_id])
    RETURNING state.job_id, state.lease_version, state.attempts, state.attempts_allowed,
              state.priority * -1 AS rank, state.position, state.claimed_at
)
SELECT claimed.job_id, claimed.lease_version, claimed.attempts, claimed.attempts_allowed,
       claimed.rank, claimed.position, claimed.claimed_at,
       job.backend, job.task_path, job.args::text, job.kwargs::text, job.queue, job.priority, job.run_after,
       job.enqueued_at, job.metadata::text, job.max_attempts, job.timeout, job.backoff_base, job.backoff_cap
FROM claimed
CROSS JOIN LATERAL {job_of("claimed")} AS job
"""

# PostgreSQL has no loose index scan: one probe per distinct queue emulates it.
READY_QUEUES = f"""
WITH RECURSIVE found AS (
    (SELECT queue FROM {STATE} WHERE status = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM {STATE} WHERE status = 'ready' AND queue > found.queue ORDER BY queue LIMIT 1)
    FROM found
    WHERE found.queue IS NOT NULL
)
SELECT queue FROM found WHERE queue IS NOT NULL
"""
