"""From calls to rows: one job, many, those with a unique key, and the change of one that waits."""

from .functions import ENQUEUE_FUNCTION
from .tables import JOB, LIVE, POSITION, STATE

# A web request's statement: PostgreSQL plans what a function does once for a connection, not for each call.
ENQUEUE_ONE = f"""
SELECT id, enqueued_at, run_after, sleepers, is_notified
FROM {ENQUEUE_FUNCTION}(
    backend => %(backend)s, task_path => %(task_path)s, args => %(args)s::json, kwargs => %(kwargs)s::json,
    queue => %(queue)s, priority => %(priority)s, not_before => %(run_after)s::timestamptz,
    delay => %(delay)s::float8, metadata => %(metadata)s::json, max_attempts => %(max_attempts)s,
    timeout => %(timeout)s::float8, backoff_base => %(backoff_base)s, backoff_cap => %(backoff_cap)s,
    unique_key => %(unique_key)s, parent_id => %(parent_id)s::bigint,
    look => %(look)s, may_notify => %(may_notify)s)
"""

# The id is drawn in ``given`` so that both inserts and the caller's list agree on it, in order; its sequence
# is looked up once, by a scalar sub-select.  The clock is asked once for each job, so that a delay of nothing
# makes a ready one.  A column that is the same for all jobs comes as one value, ``all_...``, beside an empty
# array: unnest fills short arrays up with NULL.
_GIVEN_JOBS = f"""
WITH given AS MATERIALIZED (
    SELECT nextval((SELECT pg_get_serial_sequence('{JOB}', 'id')::regclass)) AS id, enqueued_at,
           coalesce(task_path, %(all_task_path)s) AS task_path, coalesce(args, %(all_args)s) AS args,
           coalesce(kwargs, %(all_kwargs)s) AS kwargs, coalesce(queue, %(all_queue)s) AS queue,
           coalesce(priority, %(all_priority)s::int) AS priority,
           coalesce(run_after, %(all_run_after)s::timestamptz,
                    enqueued_at + make_interval(secs => coalesce(delay, %(all_delay)s::float8))) AS run_after,
           coalesce(metadata, %(all_metadata)s) AS metadata,
           coalesce(max_attempts, %(all_max_attempts)s::int) AS max_attempts,
           coalesce(timeout, %(all_timeout)s::float8) AS timeout,
           coalesce(backoff_base, %(all_backoff_base)s::float8) AS backoff_base,
           coalesce(backoff_cap, %(all_backoff_cap)s::float8) AS backoff_cap,
           coalesce(parent_id, %(all_parent_id)s::bigint) AS parent_id,
           coalesce(unique_key, %(all_unique_key)s) AS unique_key
    FROM (SELECT *, clock_timestamp() AS enqueued_at
          FROM unnest(%(task_path)s::text[], %(args)s::text[], %(kwargs)s::text[], %(queue)s::text[],
                      %(priority)s::int[], %(run_after)s::timestamptz[], %(delay)s::float8[],
                      %(metadata)s::text[], %(max_attempts)s::int[], %(timeout)s::float8[],
                      %(backoff_base)s::float8[], %(backoff_cap)s::float8[], %(parent_id)s::bigint[],
                      %(unique_key)s::text[], %(place)s::int[])
               AS given(task_path, args, kwargs, queue, priority, run_after, delay, metadata, max_attempts,
                        timeout, backoff_base, backoff_cap, parent_id, unique_key, place)
         ) AS given
)"""

_INSERT_JOB = f"""
    INSERT INTO {JOB} (id, backend, task_path, args, kwargs, queue, priority, run_after, enqueued_at,
                       metadata, max_attempts, timeout, backoff_base, backoff_cap, parent_id)
    SELECT id, %(backend)s, task_path, args::json, kwargs::json, queue, priority, run_after, enqueued_at,
           metadata::json, max_attempts, timeout, backoff_base, backoff_cap, parent_id
    FROM given
"""

_INSERT_STATE = f"""
    INSERT INTO {STATE} (job_id, queue, priority, status, position, run_at, attempts, attempts_allowed,
                         lease_version, unique_key)
    SELECT id, queue, priority,
           CASE WHEN run_after > enqueued_at THEN 'scheduled' ELSE 'ready' END,
           CASE WHEN run_after > enqueued_at THEN NULL ELSE nextval('{POSITION}') END,
           coalesce(run_after, enqueued_at), 0, max_attempts, 0, unique_key
    FROM given
"""

ENQUEUE = f"""{_GIVEN_JOBS}, job AS ({_INSERT_JOB}), state AS ({_INSERT_STATE})
SELECT id, enqueued_at, run_after FROM given
"""

# Keys in one order: two bulk inserts of the same keys wait for each other and cannot deadlock.
ENQUEUE_UNIQUE = f"""{_GIVEN_JOBS}, held AS MATERIALIZED (
    SELECT unique_key, job_id
    FROM {STATE}
    WHERE unique_key = ANY(ARRAY(SELECT unique_key FROM given)) AND status IN {LIVE}
), state AS ({_INSERT_STATE}
    ORDER BY unique_key, id
    ON CONFLICT (unique_key) WHERE status IN {LIVE} AND unique_key IS NOT NULL DO NOTHING
    RETURNING job_id
), job AS ({_INSERT_JOB}
    WHERE id IN (SELECT job_id FROM state)
)
SELECT given.id, given.enqueued_at, given.run_after, state.job_id IS NOT NULL, held.job_id
FROM given
LEFT JOIN state ON state.job_id = given.id
LEFT JOIN held ON held.unique_key = given.unique_key
"""

LIVE_BY_KEY = f"""
SELECT unique_key, job_id FROM {STATE} WHERE unique_key = ANY(%(unique_keys)s::text[]) AND status IN {LIVE}
"""

# The one update of a Job row: a waiting job that nobody has started gets new arguments and a new time.
REPLACE = f"""
WITH waiting AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE unique_key = %(unique_key)s AND status IN ('scheduled', 'ready')
    FOR NO KEY UPDATE
), job AS (
    UPDATE {JOB} AS job
    SET task_path = %(task_path)s, args = %(args)s::json, kwargs = %(kwargs)s::json, queue = %(queue)s,
        priority = %(priority)s, metadata = %(metadata)s::json, max_attempts = %(max_attempts)s,
        timeout = %(timeout)s, backoff_base = %(backoff_base)s, backoff_cap = %(backoff_cap)s,
        parent_id = %(parent_id)s,
        run_after = coalesce(%(run_after)s::timestamptz,
                             clock_timestamp() + make_interval(secs => %(delay)s::float8))
    FROM waiting
    WHERE job.id = waiting.job_id
    RETURNING job.id, job.enqueued_at, job.run_after, job.max_attempts
)
UPDATE {STATE} AS state
SET queue = %(queue)s, priority = %(priority)s, attempts_allowed = state.attempts + job.max_attempts,
    status = CASE WHEN job.run_after > clock_timestamp() THEN 'scheduled' ELSE 'ready' END,
    position = CASE WHEN job.run_after > clock_timestamp() THEN NULL ELSE nextval('{POSITION}') END,
    run_at = coalesce(job.run_after, clock_timestamp())
FROM job
WHERE state.job_id = job.id
RETURNING job.id, job.enqueued_at, job.run_after
"""
