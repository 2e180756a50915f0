"""The fence, and how an attempt is written: the parts that all fenced statements share."""

from .tables import ATTEMPT, STATE

FENCED = f"""
    SELECT given.*, state.*
    FROM (SELECT * FROM given ORDER BY job_id) AS given
    CROSS JOIN LATERAL (
        SELECT state.attempts AS ended, state.attempts_allowed AS allowed, state.claimed_at AS claimed_since,
               state.cancel_requested_at IS NOT NULL AS cancel_requested, state.worker_id AS owner
        FROM {STATE} AS state
        WHERE state.job_id = given.job_id
          AND state.lease_version = given.lease_version
          AND state.lease_token = given.lease_token
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS state
"""

FREE = "worker_id = NULL, lease_token = NULL, claimed_at = NULL, lease_expires_at = NULL"

ATTEMPT_COLUMNS = """job_id, number, lease_version, lease_token, worker_id, host, pid,
    started_at, finished_at, outcome, exception_class, message, traceback, fingerprint,
    return_value, log_tail, sql_queries, sql_seconds"""

# What was noted of an attempt; arrays that are NULL for a batch of which nothing was noted.
NOTES_GIVEN = "%(log_tail)s::text[], %(sql_queries)s::int[], %(sql_seconds)s::float8[]"
NOTES = "log_tail, sql_queries, sql_seconds"
WRITE_NOTES = "coalesce(log_tail, ''), sql_queries, sql_seconds"

# One moment for all that a statement writes of an attempt: with a clock read for each column, a short one
# could end before it began. The ages were taken right before the statement was sent.
WRITTEN = "statement_timestamp()"

WRITE_ATTEMPT = f"""
    INSERT INTO {ATTEMPT} ({ATTEMPT_COLUMNS})
    SELECT job_id, attempts, lease_version, lease_token, owner, %(host)s, %(pid)s,
           {WRITTEN} - make_interval(secs => started_ago),
           {WRITTEN} - make_interval(secs => finished_ago),
"""

# By place, not by job: a zombie's fence and the owner's may stand in one batch, and only one of them is done.
ANSWER = "SELECT place, status, attempts FROM settled"
