"""Rescue: running jobs whose lease has ended, or whose child its own supervisor saw die."""

from ..retries import MAX_DELAY, MAX_EXPONENT
from .fence import ATTEMPT_COLUMNS, FENCED, FREE
from .tables import ATTEMPT, STATE, job_of

# Lost attempts have no frame that could tell them apart: the task and the class are the cause.
# Full jitter below the doubling ceiling, from the policy stored with the job: the task's code is not needed.
# The failures charged to the present budget are max_attempts - (allowed - ended).  Base and exponent are
# bounded before they meet: one job with an absurd policy must not make the statement fail for all others.
_LOSE = f"""
), decided AS MATERIALIZED (
    SELECT gone.*, job.task_path,
           CASE WHEN cancel_requested THEN 'cancelled'
                WHEN ended + 1 >= allowed THEN 'dead'
                ELSE 'scheduled' END AS next_status,
           (1 - %(jitter)s::float8 * random()) * least(
               {MAX_DELAY}, job.backoff_cap,
               least({MAX_DELAY}, job.backoff_base)
                   * 2.0::float8 ^ least(greatest(job.max_attempts - (allowed - ended), 0), {MAX_EXPONENT})
           ) AS delay
    FROM gone
    CROSS JOIN LATERAL {job_of("gone")} AS job
), settled AS (
    UPDATE {STATE} AS state
    SET status = next_status, attempts = state.attempts + 1, {FREE},
        run_at = CASE WHEN next_status = 'scheduled' THEN clock_timestamp() + make_interval(secs => delay)
                      ELSE state.run_at END,
        finished_at = CASE WHEN next_status = 'scheduled' THEN NULL ELSE clock_timestamp() END,
        cause = CASE WHEN next_status = 'dead'
                     THEN md5(decided.task_path || E'\\n' || %(exception_class)s::text) END
    FROM decided
    WHERE state.job_id = ANY(ARRAY[decided.job_id])
    RETURNING state.job_id, state.attempts, state.status, state.queue, decided.lease_version,
              decided.lease_token, decided.owner, decided.since, decided.message, decided.task_path
), written AS (
    INSERT INTO {ATTEMPT} ({ATTEMPT_COLUMNS})
    SELECT job_id, attempts, lease_version, lease_token, owner, %(host)s, %(pid)s, since, clock_timestamp(),
           'lost', %(exception_class)s, message, '', 'lost', NULL, '', NULL, NULL
    FROM settled
)
SELECT job_id, status, attempts, owner, task_path, queue FROM settled
"""

# The server must have been up for a lease: while it was away nobody could renew, every lease looks expired.
RESCUE = f"""
WITH gone AS MATERIALIZED (
    SELECT job_id, lease_version, lease_token, attempts AS ended, attempts_allowed AS allowed,
           cancel_requested_at IS NOT NULL AS cancel_requested, worker_id AS owner, claimed_at AS since,
           'the lease ended ' || date_trunc('second', clock_timestamp() - lease_expires_at)
           || ' ago; ' || worker_id || ' did not renew it' AS message
    FROM {STATE}
    WHERE status = 'running'
      AND lease_expires_at < (SELECT clock_timestamp())
      AND (SELECT clock_timestamp()) - pg_postmaster_start_time() > make_interval(secs => %(server_up)s)
    ORDER BY claimed_at, job_id
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
{_LOSE}
"""

RESCUE_WORKER = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(message)s::text[])
             AS given(job_id, lease_version, lease_token, started_ago, message)
), held AS MATERIALIZED ({FENCED}), gone AS MATERIALIZED (
    SELECT held.*, clock_timestamp() - make_interval(secs => started_ago) AS since FROM held
{_LOSE}
"""
