"""For tests of projects only: time that passes at once, and sessions of workers that were killed."""

from .tables import ATTEMPT, STATE

# The database's clock cannot be set, but what was stored by it can be moved back: then time has passed.
# Not in Job, which is never updated: the idempotency key holds the time of enqueueing.
FORWARD_TIME = f"""
WITH given AS (
    SELECT make_interval(secs => %(seconds)s::float8) AS passed
), attempts AS (
    UPDATE {ATTEMPT} AS attempt
    SET started_at = started_at - passed, finished_at = finished_at - passed
    FROM given
)
UPDATE {STATE} AS state
SET run_at = run_at - passed, claimed_at = claimed_at - passed,
    lease_expires_at = lease_expires_at - passed, finished_at = finished_at - passed,
    cancel_requested_at = cancel_requested_at - passed
FROM given
"""

# A killed worker's sessions may go on until their statement ends, and hold locks and the database until then.
END_SESSIONS = """
SELECT pid, pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE application_name = %(application_name)s
"""
