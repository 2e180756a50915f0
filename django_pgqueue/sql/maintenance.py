"""What every supervisor does for all: promote what is due, and prune what has been kept long enough."""

from .tables import FOLLOWER, IS_FOLLOWER, LEADER_KEY, LIVE, POSITION, STATE, without

# --- promote ---------------------------------------------------------------------------------------

# clock_timestamp() alone is volatile and could not be an index condition; as a sub-select it can.
# A scalar sub-select: for an EXISTS PostgreSQL may hash the whole table, whatever HOT_PATH forbids.
# Followers are named only: giving them their key may have to wait for a transaction that has just taken it.
PROMOTE = f"""
WITH due AS MATERIALIZED (
    SELECT job_id, run_at, unique_key IS NOT NULL AND {IS_FOLLOWER} AS follows
    FROM {STATE} AS waiting
    WHERE status = 'scheduled'
      AND run_at <= (SELECT clock_timestamp())
      AND (run_at, job_id) > (%(after_run_at)s::timestamptz, %(after_job_id)s::bigint)
      AND (unique_key IS NULL OR NOT {IS_FOLLOWER} OR (
          SELECT true FROM {STATE} AS leader
          WHERE leader.unique_key = left(waiting.unique_key, -{len(FOLLOWER)}) AND leader.status IN {LIVE}
      ) IS NULL)
    ORDER BY run_at, job_id
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
), placed AS MATERIALIZED (
    SELECT job_id, nextval('{POSITION}') AS position FROM due WHERE NOT follows
), promoted AS (
    UPDATE {STATE} AS state
    SET status = 'ready', position = placed.position
    FROM placed
    WHERE state.job_id = ANY(ARRAY[placed.job_id])
    RETURNING state.job_id, state.queue, state.run_at
)
SELECT job_id, queue, run_at, false FROM promoted
UNION ALL
SELECT job_id, NULL, run_at, true FROM due WHERE follows
"""

# What the leaders' keys are guarded by is the index: a leader that came meanwhile is a unique violation.
PROMOTE_FOLLOWERS = f"""
WITH asked AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE job_id = ANY(%(job_ids)s::bigint[]) AND status = 'scheduled' AND {IS_FOLLOWER}
    ORDER BY job_id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {STATE}
SET status = 'ready', position = nextval('{POSITION}'), unique_key = {LEADER_KEY}
WHERE job_id = ANY(ARRAY(SELECT job_id FROM asked))
RETURNING job_id, queue, run_at
"""

# Far below deadlock_timeout: the keeper gives up, not the caller's transaction that it waits for.
WAIT_BRIEFLY = "SELECT current_setting('lock_timeout'), set_config('lock_timeout', '50ms', true)"
WAIT_AS_BEFORE = "SELECT set_config('lock_timeout', %(lock_timeout)s::text, true)"

NEXT_RUN_AT = f"""
SELECT extract(epoch FROM run_at - clock_timestamp())::float8
FROM {STATE}
WHERE status = 'scheduled' AND (run_at, job_id) > (%(after_run_at)s::timestamptz, %(after_job_id)s::bigint)
ORDER BY run_at, job_id
LIMIT 1
"""

# --- prune -----------------------------------------------------------------------------------------

# The mark carries one pass over entries that its own earlier batches left dead in the index.
PRUNE = f"""
WITH old AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE status = %(status)s
      AND finished_at IS NOT NULL
      AND finished_at < (SELECT clock_timestamp()) - make_interval(secs => %(age)s)
      AND (finished_at, job_id) > (%(after_finished_at)s::timestamptz, %(after_job_id)s::bigint)
    ORDER BY finished_at, job_id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), states AS (
    DELETE FROM {STATE} AS state USING old WHERE state.job_id = ANY(ARRAY[old.job_id])
    RETURNING state.job_id, state.finished_at
), {without("old")}
SELECT job_id, finished_at FROM states
"""

# A queue's own retention has no index: a bounded stretch of the index by time is looked through, and the mark
# moves past what belongs to other queues.  What is locked is left to the next walk from the head.
PRUNE_QUEUES = f"""
WITH seen AS MATERIALIZED (
    SELECT job_id, queue, finished_at
    FROM {STATE}
    WHERE status = %(status)s
      AND finished_at IS NOT NULL
      AND finished_at < (SELECT clock_timestamp()) - make_interval(secs => %(age)s)
      AND (finished_at, job_id) > (%(after_finished_at)s::timestamptz, %(after_job_id)s::bigint)
    ORDER BY finished_at, job_id
    LIMIT %(look)s
), wanted AS MATERIALIZED (
    SELECT job_id, finished_at FROM seen
    WHERE CASE WHEN %(named)s THEN queue = ANY(%(queues)s::text[]) ELSE queue <> ALL(%(queues)s::text[]) END
    ORDER BY finished_at, job_id
    LIMIT %(limit)s
), old AS MATERIALIZED (
    SELECT locked.job_id
    FROM (SELECT job_id FROM wanted ORDER BY job_id) AS wanted
    CROSS JOIN LATERAL (
        SELECT state.job_id FROM {STATE} AS state
        WHERE state.job_id = wanted.job_id AND state.status = %(status)s
          AND state.finished_at < (SELECT clock_timestamp()) - make_interval(secs => %(age)s)
        FOR UPDATE SKIP LOCKED
    ) AS locked
), states AS (
    DELETE FROM {STATE} AS state USING old WHERE state.job_id = ANY(ARRAY[old.job_id])
    RETURNING state.job_id
), {without("old")}, reached AS (
    (SELECT finished_at, job_id, true AS goes_on FROM wanted
     WHERE (SELECT count(*) FROM wanted) >= %(limit)s ORDER BY finished_at DESC, job_id DESC LIMIT 1)
    UNION ALL
    (SELECT finished_at, job_id, (SELECT count(*) FROM seen) >= %(look)s FROM seen
     WHERE (SELECT count(*) FROM wanted) < %(limit)s ORDER BY finished_at DESC, job_id DESC LIMIT 1)
)
SELECT (SELECT count(*) FROM states), finished_at, job_id, goes_on FROM reached
"""
