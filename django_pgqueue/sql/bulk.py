"""Bulk operations: asked for, taken a batch at a time, moved on, stopped."""

from .tables import JOB, STATE

BULK = "django_pgqueue_bulkoperation"
BATCH = "django_pgqueue_bulkbatch"

# The second press of the same button finds the first one's row.
START_BULK = f"""
WITH started AS (
    INSERT INTO {BULK} (token, kind, filters, expected, per_minute, standing, changed, skipped, conflicts,
                        last_id, error, user_id, user_name, stopped_by, created_at)
    SELECT %(token)s::uuid, %(kind)s, %(filters)s::json, %(expected)s, %(per_minute)s::float8, 'running',
           0, 0, 0, coalesce((SELECT max(id) FROM {JOB}), 0), '', %(user_id)s, %(user_name)s, '',
           clock_timestamp()
    ON CONFLICT (token) DO NOTHING
    RETURNING id
)
SELECT id, true FROM started
UNION ALL
SELECT id, false FROM {BULK} WHERE token = %(token)s::uuid
LIMIT 1
"""

STOP_BULK = f"""
UPDATE {BULK}
SET standing = 'stopped', stopped_by = %(user_name)s, ended_at = clock_timestamp()
WHERE id = %(id)s AND standing = 'running'
RETURNING id
"""

# What its rate allows: as many as the time since the start is worth, less what it did.  The row stays locked
# while its batch is done: another keeper takes another operation.
NEXT_PART = f"""
SELECT id, kind, filters, place, created_at, last_id, allowed
FROM (
    SELECT bulk.*, CASE WHEN per_minute IS NULL THEN %(limit)s::bigint ELSE least(%(limit)s::bigint, floor(
               1 + extract(epoch FROM clock_timestamp() - created_at)::float8 / 60.0 * per_minute
               - changed)::bigint) END AS allowed
    FROM {BULK} AS bulk
    WHERE standing = 'running' AND (%(id)s::bigint IS NULL OR id = %(id)s::bigint)
    ORDER BY advanced_at NULLS FIRST, id
    FOR NO KEY UPDATE SKIP LOCKED
) AS running
WHERE allowed > 0
LIMIT 1
"""

ADVANCE_BULK = f"""
WITH batch AS (
    INSERT INTO {BATCH} (operation_id, job_ids)
    SELECT %(id)s, to_json(%(changed)s::bigint[]) WHERE cardinality(%(changed)s::bigint[]) > 0
)
UPDATE {BULK}
SET changed = changed + cardinality(%(changed)s::bigint[]), skipped = skipped + %(skipped)s,
    conflicts = conflicts + %(conflicts)s,
    place = %(place)s::json, advanced_at = clock_timestamp(),
    standing = CASE WHEN %(place)s::text IS NULL THEN 'finished' ELSE standing END,
    ended_at = CASE WHEN %(place)s::text IS NULL THEN clock_timestamp() END
WHERE id = %(id)s AND standing = 'running'
RETURNING id
"""

FAIL_BULK = f"""
UPDATE {BULK}
SET standing = 'stopped', error = %(error)s, ended_at = clock_timestamp()
WHERE id = %(id)s AND standing = 'running'
RETURNING id
"""

BULK_OUTCOMES = f"""
WITH touched AS MATERIALIZED (
    SELECT json_array_elements_text(job_ids)::bigint AS job_id
    FROM (SELECT job_ids FROM {BATCH} WHERE operation_id = %(id)s
          ORDER BY id DESC LIMIT %(batches)s) AS latest
)
SELECT coalesce(state.status, 'gone'), count(*),
       (array_agg(touched.job_id ORDER BY touched.job_id DESC))[1:%(examples)s]
FROM touched
LEFT JOIN {STATE} AS state ON state.job_id = ANY(ARRAY[touched.job_id])
GROUP BY 1
"""
