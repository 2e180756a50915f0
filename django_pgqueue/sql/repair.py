"""What people and APIs ask of jobs that nobody holds: cancel, retry and run now."""

from .tables import ATTEMPT, IS_FOLLOWER, JOB, POSITION, STATE, STEP, job_of

# --- cancel, by a person or an API -----------------------------------------------------------------

CANCEL = f"""
WITH asked AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE job_id = ANY(%(job_ids)s::bigint[]) AND status IN ('scheduled', 'ready', 'running')
    ORDER BY job_id
    FOR NO KEY UPDATE
)
UPDATE {STATE}
SET status = CASE WHEN status = 'running' THEN status ELSE 'cancelled' END,
    finished_at = CASE WHEN status = 'running' THEN NULL ELSE clock_timestamp() END,
    cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp())
WHERE job_id = ANY(ARRAY(SELECT job_id FROM asked)) AND status IN ('scheduled', 'ready', 'running')
RETURNING job_id, status
"""

# --- retry -----------------------------------------------------------------------------------------

# One job per unique key becomes live again: the newest asked for, and only if no other one lives.
RETRY = f"""
WITH asked AS MATERIALIZED (
    SELECT job_id, unique_key
    FROM {STATE}
    WHERE job_id = ANY(%(job_ids)s::bigint[]) AND status IN ('dead', 'cancelled')
    ORDER BY job_id
    FOR NO KEY UPDATE
), chosen AS (
    SELECT DISTINCT ON (coalesce(unique_key, 'job ' || job_id), unique_key IS NULL) job_id
    FROM asked
    WHERE NOT EXISTS (SELECT FROM {STATE} AS live
                      WHERE live.unique_key = asked.unique_key
                        AND live.status IN ('scheduled', 'ready', 'running'))
    ORDER BY coalesce(unique_key, 'job ' || job_id), unique_key IS NULL, job_id DESC
), retried AS (
    UPDATE {STATE} AS state
    SET status = 'ready', position = nextval('{POSITION}'), run_at = clock_timestamp(), finished_at = NULL,
        cancel_requested_at = NULL, cause = NULL,
        attempts_allowed = attempts + (SELECT max_attempts FROM {job_of("state")} AS job)
    WHERE job_id = ANY(ARRAY(SELECT job_id FROM chosen)) AND status IN ('dead', 'cancelled')
    RETURNING job_id, queue
)
SELECT job_id, queue FROM retried
UNION ALL
SELECT job_id, NULL FROM asked WHERE job_id NOT IN (SELECT job_id FROM retried)
"""

# --- run now ---------------------------------------------------------------------------------------

PROMOTE_NOW = f"""
WITH asked AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE job_id = ANY(%(job_ids)s::bigint[]) AND status = 'scheduled'
      AND (unique_key IS NULL OR NOT {IS_FOLLOWER})
    ORDER BY job_id
    FOR NO KEY UPDATE
)
UPDATE {STATE}
SET status = 'ready', position = nextval('{POSITION}'), run_at = clock_timestamp()
WHERE job_id = ANY(ARRAY(SELECT job_id FROM asked))
RETURNING job_id, queue
"""

# --- discard ---------------------------------------------------------------------------------------

# What prune does to the old, done to what somebody has given up.
DISCARD = f"""
WITH asked AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE job_id = ANY(%(job_ids)s::bigint[]) AND status IN ('dead', 'cancelled')
    ORDER BY job_id
    FOR UPDATE
), attempts AS (
    DELETE FROM {ATTEMPT} WHERE job_id = ANY(ARRAY(SELECT job_id FROM asked))
), steps AS (
    DELETE FROM {STEP} WHERE job_id = ANY(ARRAY(SELECT job_id FROM asked))
), jobs AS (
    DELETE FROM {JOB} WHERE id = ANY(ARRAY(SELECT job_id FROM asked))
)
DELETE FROM {STATE}
WHERE job_id = ANY(ARRAY(SELECT job_id FROM asked)) AND status IN ('dead', 'cancelled')
RETURNING job_id
"""

# --- move, reprioritise ------------------------------------------------------------------------------

# Job says what was asked; with ``replace``, these are the only ones that change it, and only while it waits.
# A job that waits on takes a new position: the end of where it goes.
_REPLACED = f"""
WITH asked AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE job_id = ANY(%(job_ids)s::bigint[]) AND status IN ('scheduled', 'ready')
    ORDER BY job_id
    FOR NO KEY UPDATE
), jobs AS (
    UPDATE {JOB} SET {{column}} = %({{column}})s WHERE id = ANY(ARRAY(SELECT job_id FROM asked))
)
UPDATE {STATE}
SET {{column}} = %({{column}})s, position = CASE WHEN status = 'ready' THEN nextval('{POSITION}') END
WHERE job_id = ANY(ARRAY(SELECT job_id FROM asked)) AND status IN ('scheduled', 'ready')
RETURNING job_id, queue, status
"""
MOVE = _REPLACED.format(column="queue")
REPRIORITISE = _REPLACED.format(column="priority")
