"""What an owner says of jobs that it goes on holding, and how it finds out which of them it still holds."""

from .fence import FENCED, FREE
from .tables import ATTEMPT, POSITION, STATE

# --- renew -----------------------------------------------------------------------------------------

# Only lease_expires_at changes, which no index names: the update can be HOT.
RENEW = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[])
             WITH ORDINALITY AS given(job_id, lease_version, lease_token, place)
), held AS MATERIALIZED ({FENCED})
UPDATE {STATE} AS state
SET lease_expires_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM held
WHERE state.job_id = ANY(ARRAY[held.job_id])
RETURNING held.place, held.cancel_requested
"""

# --- progress --------------------------------------------------------------------------------------

# Not a transition: a note on a running job, behind the same fence.
PROGRESS = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(progress)s::text[])
             AS given(job_id, lease_version, lease_token, progress)
), held AS MATERIALIZED ({FENCED})
UPDATE {STATE} AS state
SET progress = held.progress::json
FROM held
WHERE state.job_id = ANY(ARRAY[held.job_id])
RETURNING state.job_id
"""

# --- after replies that never came ----------------------------------------------------------------

# After a claim whose reply never came: what this worker owns in the table but does not hold in memory.
RELEASE_UNHELD = f"""
WITH unheld AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE status = 'running' AND claimed_at > (SELECT clock_timestamp()) - make_interval(secs => %(within)s)
      AND worker_id = %(worker_id)s AND job_id <> ALL(%(held)s::bigint[])
    ORDER BY job_id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {STATE} AS state
SET status = CASE WHEN cancel_requested_at IS NULL THEN 'ready' ELSE 'cancelled' END,
    finished_at = CASE WHEN cancel_requested_at IS NOT NULL THEN clock_timestamp() END,
    position = nextval('{POSITION}'), {FREE}
FROM unheld
WHERE state.job_id = ANY(ARRAY[unheld.job_id])
RETURNING state.job_id
"""

BACKEND_LIVES = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %(pid)s::int)"

# --- what became of the rows that a fenced statement did not return --------------------------------

# "done": an earlier try wrote the outcome and its reply was lost.  "locked": the fence still holds, somebody
# else has the row.  "lost": the job has another owner, or none.  An attempt that rescue wrote is not ours.
# Scalar sub-selects, as in PROMOTE.
WHEREABOUTS = f"""
SELECT given.place,
       CASE WHEN (SELECT true FROM {ATTEMPT} AS attempt
                  WHERE attempt.job_id = given.job_id AND attempt.lease_token = given.lease_token
                    AND attempt.lease_version = given.lease_version AND attempt.outcome <> 'lost'
                  ORDER BY attempt.job_id DESC, attempt.number DESC
                  LIMIT 1)
            THEN 'done'
            WHEN (SELECT true FROM {STATE} AS state
                  WHERE state.job_id = given.job_id AND state.lease_version = given.lease_version
                    AND state.lease_token = given.lease_token)
            THEN 'locked'
            ELSE 'lost' END,
       (SELECT state.status FROM {STATE} AS state WHERE state.job_id = given.job_id),
       (SELECT state.attempts FROM {STATE} AS state WHERE state.job_id = given.job_id)
FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[])
     WITH ORDINALITY AS given(job_id, lease_version, lease_token, place)
"""

# --- the lock of an atomic task ----------------------------------------------------------------------

# Unlike all the others these wait: the row is the task's own, and nobody holds it for long.
_LOCK = f"""
SELECT job_id
FROM {STATE}
WHERE job_id = %(job_id)s AND lease_version = %(lease_version)s AND lease_token = %(lease_token)s"""

LOCK_HELD = f"{_LOCK} FOR NO KEY UPDATE"

# The first statement of its transaction: a stricter level takes its snapshot here and holds the row.
LOCK_IF_STRICT = f"""
WITH level AS (
    SELECT current_setting('transaction_isolation') IN ('repeatable read', 'serializable') AS is_strict
), held AS MATERIALIZED ({_LOCK} AND (SELECT is_strict FROM level) FOR NO KEY UPDATE)
SELECT is_strict, EXISTS (SELECT FROM held) FROM level
"""
