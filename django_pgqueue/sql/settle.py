"""How an owner ends a running job: complete, consume, fail, snooze, release, cancel; all behind the fence."""

from .fence import ANSWER, FENCED, FREE, NOTES, NOTES_GIVEN, WRITE_ATTEMPT, WRITE_NOTES, WRITTEN
from .tables import POSITION, STATE, without

# --- complete --------------------------------------------------------------------------------------

COMPLETE = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(finished_ago)s::float8[], %(return_value)s::text[],
                         {NOTES_GIVEN})
             WITH ORDINALITY
             AS given(job_id, lease_version, lease_token, started_ago, finished_ago, return_value, {NOTES},
                      place)
), held AS MATERIALIZED ({FENCED}), settled AS (
    UPDATE {STATE} AS state
    SET status = 'succeeded', attempts = state.attempts + 1, {FREE},
        finished_at = {WRITTEN} - make_interval(secs => held.finished_ago)
    FROM held
    WHERE state.job_id = ANY(ARRAY[held.job_id])
    RETURNING held.place, state.job_id, state.attempts, state.status, held.lease_version, held.lease_token,
              owner, started_ago, finished_ago, return_value, {NOTES}
), written AS ({WRITE_ATTEMPT}
           'succeeded', '', '', '', '', return_value::json, {WRITE_NOTES}
    FROM settled
)
{ANSWER}
"""

# --- consume ---------------------------------------------------------------------------------------

# complete and prune in one: a job that is not kept need not be written a second time before it goes.
CONSUME = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[])
             WITH ORDINALITY AS given(job_id, lease_version, lease_token, place)
), held AS MATERIALIZED ({FENCED}), settled AS (
    DELETE FROM {STATE} AS state
    USING held
    WHERE state.job_id = ANY(ARRAY[held.job_id])
    RETURNING held.place, state.job_id, state.attempts + 1 AS attempts, 'succeeded' AS status
), {without("settled")}
{ANSWER}
"""

# --- fail ------------------------------------------------------------------------------------------

FAIL = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(finished_ago)s::float8[], %(delay)s::float8[],
                         %(final)s::bool[], %(exception_class)s::text[], %(message)s::text[],
                         %(traceback)s::text[], %(fingerprint)s::text[], {NOTES_GIVEN})
             WITH ORDINALITY
             AS given(job_id, lease_version, lease_token, started_ago, finished_ago, delay, final,
                      exception_class, message, traceback, fingerprint, {NOTES}, place)
), held AS MATERIALIZED ({FENCED}), decided AS MATERIALIZED (
    SELECT held.*,
           CASE WHEN cancel_requested THEN 'cancelled'
                WHEN final OR ended + 1 >= allowed THEN 'dead'
                ELSE 'scheduled' END AS next_status
    FROM held
), settled AS (
    UPDATE {STATE} AS state
    SET status = next_status, attempts = state.attempts + 1, {FREE},
        run_at = CASE WHEN next_status = 'scheduled' THEN clock_timestamp() + make_interval(secs => delay)
                      ELSE state.run_at END,
        finished_at = CASE WHEN next_status = 'scheduled' THEN NULL
                           ELSE {WRITTEN} - make_interval(secs => finished_ago) END,
        cause = CASE WHEN next_status = 'dead' THEN coalesce(nullif(fingerprint, ''), 'unknown') END
    FROM decided
    WHERE state.job_id = ANY(ARRAY[decided.job_id])
    RETURNING decided.place, state.job_id, state.attempts, state.status, decided.lease_version,
              decided.lease_token, owner, started_ago, finished_ago,
              exception_class, message, traceback, fingerprint, {NOTES}
), written AS ({WRITE_ATTEMPT}
           'failed', exception_class, message, traceback, fingerprint, NULL, {WRITE_NOTES}
    FROM settled
)
{ANSWER}
"""

# --- snooze ----------------------------------------------------------------------------------------

# attempts_allowed grows with attempts: the ending is not charged.
SNOOZE = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(finished_ago)s::float8[], %(delay)s::float8[],
                         %(exception_class)s::text[], %(message)s::text[], {NOTES_GIVEN})
             WITH ORDINALITY AS given(job_id, lease_version, lease_token, started_ago, finished_ago, delay,
                      exception_class, message, {NOTES}, place)
), held AS MATERIALIZED ({FENCED}), settled AS (
    UPDATE {STATE} AS state
    SET status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'scheduled' END,
        attempts = state.attempts + 1, attempts_allowed = state.attempts_allowed + 1, {FREE},
        run_at = clock_timestamp() + make_interval(secs => delay),
        finished_at = CASE WHEN cancel_requested THEN clock_timestamp() END
    FROM held
    WHERE state.job_id = ANY(ARRAY[held.job_id])
    RETURNING held.place, state.job_id, state.attempts, state.status, held.lease_version, held.lease_token,
              owner, started_ago, finished_ago, exception_class, message, {NOTES}
), written AS ({WRITE_ATTEMPT}
           'snoozed', exception_class, message, '', '', NULL, {WRITE_NOTES}
    FROM settled
)
{ANSWER}
"""

# --- release ---------------------------------------------------------------------------------------

# A prefetched job that never started goes back as if it had not been claimed: no attempt, no charge.
RELEASE = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(message)s::text[], {NOTES_GIVEN})
             WITH ORDINALITY
             AS given(job_id, lease_version, lease_token, started_ago, message, {NOTES}, place)
), held AS MATERIALIZED ({FENCED}), settled AS (
    UPDATE {STATE} AS state
    SET status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'ready' END,
        position = nextval('{POSITION}'),
        attempts = state.attempts + (started_ago IS NOT NULL)::int,
        attempts_allowed = state.attempts_allowed + (started_ago IS NOT NULL)::int, {FREE},
        finished_at = CASE WHEN cancel_requested THEN clock_timestamp() END
    FROM held
    WHERE state.job_id = ANY(ARRAY[held.job_id])
    RETURNING held.place, state.job_id, state.attempts, state.status, held.lease_version, held.lease_token,
              owner, started_ago, 0::float8 AS finished_ago, message, {NOTES}
), written AS ({WRITE_ATTEMPT}
           'released', '', message, '', '', NULL, {WRITE_NOTES}
    FROM settled
    WHERE started_ago IS NOT NULL
)
{ANSWER}
"""

# --- cancel, by the worker that holds the job -----------------------------------------------------

CANCEL_HELD = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(finished_ago)s::float8[], %(message)s::text[],
                         {NOTES_GIVEN})
             WITH ORDINALITY
             AS given(job_id, lease_version, lease_token, started_ago, finished_ago, message, {NOTES}, place)
), held AS MATERIALIZED ({FENCED}), settled AS (
    UPDATE {STATE} AS state
    SET status = 'cancelled', attempts = state.attempts + 1, {FREE},
        finished_at = {WRITTEN} - make_interval(secs => finished_ago)
    FROM held
    WHERE state.job_id = ANY(ARRAY[held.job_id])
    RETURNING held.place, state.job_id, state.attempts, state.status, held.lease_version, held.lease_token,
              owner, started_ago, finished_ago, message, {NOTES}
), written AS ({WRITE_ATTEMPT}
           'cancelled', '', message, '', '', NULL, {WRITE_NOTES}
    FROM settled
)
{ANSWER}
"""
