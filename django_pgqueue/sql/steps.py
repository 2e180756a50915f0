"""Steps: what parts of a job have done already, told behind the fence of the attempt that did them."""

from .tables import STATE, STEP


def _record(lock: str) -> str:
    # The state row is not changed, so it is locked: nobody can take the job before the step is committed.
    return f"""
WITH held AS MATERIALIZED (
    SELECT job_id, lease_version
    FROM {STATE}
    WHERE job_id = %(job_id)s AND lease_version = %(lease_version)s AND lease_token = %(lease_token)s
    {lock}
), written AS (
    INSERT INTO {STEP} (job_id, name, result, lease_version, recorded_at)
    SELECT job_id, %(name)s, %(result)s::json, lease_version, clock_timestamp()
    FROM held
    ON CONFLICT (job_id, name) DO NOTHING
    RETURNING job_id
)
SELECT EXISTS (SELECT FROM held), EXISTS (SELECT FROM written)
"""


RECORD_STEP = _record("FOR SHARE")
# Where the attempt's own transaction has locked the row against everybody else, and must not be waited for.
RECORD_STEP_OF_LOCKED = _record("FOR KEY SHARE")

STEPS = f"SELECT name, result FROM {STEP} WHERE job_id = %(job_id)s"
