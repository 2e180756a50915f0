"""Every raw statement of the queue, one per verb, in the order of a job's life.

Rules that hold throughout:

* The database clock decides: callers pass durations in seconds, never times of their own.
* Each statement re-checks its own precondition; the rows it returns are the answer.
* A fenced statement names ``(job_id, lease_version, lease_token)``.  ``lease_token`` is NULL unless
  the job runs, so the fence implies ``status = 'running'``.  Repeating the status would let the
  planner drive from the small-looking partial index, which fills with dead entries.
* Many rows are locked first, in id order, through a LATERAL sub-select with SKIP LOCKED: the only
  plan of that shape is a nested loop over the primary key, and nobody ever waits for a row.
* Rows found by one step are joined to a table as ``table.id = ANY(ARRAY[found.id])``.  By that operator
  nothing can be sorted or hashed, so the one plan left is a look-up by key for each found row.  A plain
  ``=`` lets the planner walk the whole table and compare each row with the found ones, which looks free
  to it while the statistics say that the table holds no rows: autovacuum may have counted them between
  two bursts, and counts again after tens of thousands of changes only.
* What people ask runs in their own transaction, without ``HOT_PATH``: there the found rows come as one
  array, and no join is left to be planned.
* Tables are named without a schema, so that ``search_path`` decides where the queue lives.
* Statements of the worker run after ``HOT_PATH`` in the same transaction, never under session settings.
"""

from typing import LiteralString

from .retries import MAX_DELAY, MAX_EXPONENT

JOB = "django_pgqueue_job"
STATE = "django_pgqueue_jobstate"
ATTEMPT = "django_pgqueue_attempt"
POSITION = "django_pgqueue_position_seq"

# A generic plan cached while a table was small keeps its Seq Scan when the table has grown.  SET LOCAL
# ends with the transaction, so nothing leaks behind a transaction-pooling PgBouncer.
HOT_PATH = """
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('jit', 'off', true), set_config('statement_timeout', %(statement_timeout)s::text, true),
       set_config('lock_timeout', %(lock_timeout)s::text, true),
       set_config('DateStyle', 'ISO', true) -- the only one that psycopg reads; a role may have another
"""


def _job_of(found: str) -> str:
    """Return a sub-select of the job that belongs to a found row, by primary key.

    Only the primary key gives ids in order.  Without the order PostgreSQL may as well take the index of
    (task_path, id), and read it from end to end, while it believes the table to be empty.
    """
    return f"""(SELECT job.*, job.ctid AS place FROM {JOB} AS job
      WHERE job.id >= {found}.job_id AND job.id <= {found}.job_id ORDER BY job.id LIMIT 1)"""


# --- enqueue ---------------------------------------------------------------------------------------

LOCK_CLASS = "1346850129"
"""First key of the advisory locks that say "somebody sleeps on this queue", as it stands in a statement."""


def _somebody_sleeps_on(queue: LiteralString) -> LiteralString:
    """Return an expression: does a worker hold the key of this queue shared?

    The key is taken for a moment, and for the session: for the transaction it would keep sleepers waiting.
    Where it is not to be had, another enqueuer may have it for its moment, so the locks themselves are asked.
    """
    key = f"{LOCK_CLASS}, hashtext({queue})"
    return f"""CASE WHEN pg_try_advisory_lock({key}) THEN NOT pg_advisory_unlock({key}) ELSE EXISTS (
        SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND classid = {LOCK_CLASS} AND mode = 'ShareLock' AND granted
          AND objid = (hashtext({queue})::bigint & 4294967295)::oid
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) END"""


# A web request's statement: without the arrays of the one below it is planned and run in half the time.
ENQUEUE_ONE = f"""
WITH job AS (
    INSERT INTO {JOB} (backend, task_path, args, kwargs, queue, priority, run_after, enqueued_at,
                       metadata, max_attempts, timeout, backoff_base, backoff_cap)
    SELECT %(backend)s, %(task_path)s, %(args)s::json, %(kwargs)s::json, %(queue)s, %(priority)s,
           coalesce(%(run_after)s::timestamptz, moment + make_interval(secs => %(delay)s::float8)), moment,
           %(metadata)s::json, %(max_attempts)s, %(timeout)s, %(backoff_base)s, %(backoff_cap)s
    FROM clock_timestamp() AS moment
    RETURNING id, enqueued_at, run_after
), state AS (
    INSERT INTO {STATE} (job_id, queue, priority, status, position, run_at, attempts, attempts_allowed,
                         lease_version, unique_key)
    SELECT id, %(queue)s, %(priority)s,
           CASE WHEN run_after > enqueued_at THEN 'scheduled' ELSE 'ready' END,
           CASE WHEN run_after > enqueued_at THEN NULL ELSE nextval('{POSITION}') END,
           coalesce(run_after, enqueued_at), 0, %(max_attempts)s, 0, %(unique_key)s
    FROM job
)
SELECT id, enqueued_at, run_after,
       CASE WHEN %(notify)s AND run_after IS NULL
            THEN {_somebody_sleeps_on("%(queue)s::text")} OR {_somebody_sleeps_on("'*'")} END
FROM job
"""

# The id is drawn in ``given`` so that both inserts and the caller's list agree on it, in order.  The clock is
# asked once for each job, so that a delay of nothing makes a ready one.  A column that is the same for all
# jobs comes as one value, ``all_...``, beside an empty array: unnest fills short arrays up with NULL.
_GIVEN_JOBS = f"""
WITH given AS MATERIALIZED (
    SELECT nextval(pg_get_serial_sequence('{JOB}', 'id')) AS id, enqueued_at,
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
           coalesce(unique_key, %(all_unique_key)s) AS unique_key
    FROM (SELECT *, clock_timestamp() AS enqueued_at
          FROM unnest(%(task_path)s::text[], %(args)s::text[], %(kwargs)s::text[], %(queue)s::text[],
                      %(priority)s::int[], %(run_after)s::timestamptz[], %(delay)s::float8[],
                      %(metadata)s::text[], %(max_attempts)s::int[], %(timeout)s::float8[],
                      %(backoff_base)s::float8[], %(backoff_cap)s::float8[], %(unique_key)s::text[],
                      %(place)s::int[])
               AS given(task_path, args, kwargs, queue, priority, run_after, delay, metadata, max_attempts,
                        timeout, backoff_base, backoff_cap, unique_key, place)
         ) AS given
)"""

_INSERT_JOB = f"""
    INSERT INTO {JOB} (id, backend, task_path, args, kwargs, queue, priority, run_after, enqueued_at,
                       metadata, max_attempts, timeout, backoff_base, backoff_cap)
    SELECT id, %(backend)s, task_path, args::json, kwargs::json, queue, priority, run_after, enqueued_at,
           metadata::json, max_attempts, timeout, backoff_base, backoff_cap
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

_LIVE = "('scheduled', 'ready', 'running')"

# Keys in one order: two bulk inserts of the same keys wait for each other and cannot deadlock.
ENQUEUE_UNIQUE = f"""{_GIVEN_JOBS}, held AS MATERIALIZED (
    SELECT unique_key, job_id
    FROM {STATE}
    WHERE unique_key = ANY(ARRAY(SELECT unique_key FROM given)) AND status IN {_LIVE}
), state AS ({_INSERT_STATE}
    ORDER BY unique_key, id
    ON CONFLICT (unique_key) WHERE status IN {_LIVE} AND unique_key IS NOT NULL DO NOTHING
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
SELECT unique_key, job_id FROM {STATE} WHERE unique_key = ANY(%(unique_keys)s::text[]) AND status IN {_LIVE}
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

# A job that must wait until the running one of its key has ended holds this key instead of the key itself.
FOLLOWER = "\x1ffollower"
_IS_FOLLOWER = f"right(unique_key, {len(FOLLOWER)}) = E'\\x1ffollower'"
_LEADER_KEY = f"left(unique_key, -{len(FOLLOWER)})"

# --- promote ---------------------------------------------------------------------------------------

# clock_timestamp() alone is volatile and could not be an index condition; as a sub-select it can.
# A scalar sub-select: for an EXISTS PostgreSQL may hash the whole table, whatever HOT_PATH forbids.
# Followers are named only: giving them their key may have to wait for a transaction that has just taken it.
PROMOTE = f"""
WITH due AS MATERIALIZED (
    SELECT job_id, run_at, unique_key IS NOT NULL AND {_IS_FOLLOWER} AS follows
    FROM {STATE} AS waiting
    WHERE status = 'scheduled'
      AND run_at <= (SELECT clock_timestamp())
      AND (run_at, job_id) > (%(after_run_at)s::timestamptz, %(after_job_id)s::bigint)
      AND (unique_key IS NULL OR NOT {_IS_FOLLOWER} OR (
          SELECT true FROM {STATE} AS leader
          WHERE leader.unique_key = left(waiting.unique_key, -{len(FOLLOWER)}) AND leader.status IN {_LIVE}
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
    WHERE job_id = ANY(%(job_ids)s::bigint[]) AND status = 'scheduled' AND {_IS_FOLLOWER}
    ORDER BY job_id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {STATE}
SET status = 'ready', position = nextval('{POSITION}'), unique_key = {_LEADER_KEY}
WHERE job_id = ANY(ARRAY(SELECT job_id FROM asked))
RETURNING job_id, queue, run_at
"""

# Far below deadlock_timeout: the keeper gives up, not the caller's transaction that it waits for.
WAIT_BRIEFLY = "SELECT current_setting('lock_timeout'), set_config('lock_timeout', '50ms', true)"
WAIT_AS_BEFORE = "SELECT set_config('lock_timeout', %(lock_timeout)s::text, true)"

PROMOTE_NOW = f"""
WITH asked AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE job_id = ANY(%(job_ids)s::bigint[]) AND status = 'scheduled'
      AND (unique_key IS NULL OR NOT {_IS_FOLLOWER})
    ORDER BY job_id
    FOR NO KEY UPDATE
)
UPDATE {STATE}
SET status = 'ready', position = nextval('{POSITION}'), run_at = clock_timestamp()
WHERE job_id = ANY(ARRAY(SELECT job_id FROM asked))
RETURNING job_id, queue
"""

NEXT_RUN_AT = f"""
SELECT extract(epoch FROM run_at - clock_timestamp())::float8
FROM {STATE}
WHERE status = 'scheduled'
ORDER BY run_at
LIMIT 1
"""

# --- claim -----------------------------------------------------------------------------------------

# The cursor is an index range, never a filter: entries that died before it are not walked.
# Only one queue, by equality: with ANY(array) PostgreSQL sorts every pending row of those queues.
CLAIM = f"""
WITH picked AS MATERIALIZED (
    SELECT job_id
    FROM {STATE}
    WHERE status = 'ready'
      AND queue = %(queue)s
      AND ((priority * -1), position, job_id)
          > (%(after_rank)s::int, %(after_position)s::bigint, %(after_job_id)s::bigint)
    ORDER BY (priority * -1), position, job_id
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
), claimed AS (
    UPDATE {STATE} AS state
    SET status = 'running',
        lease_version = state.lease_version + 1,
        lease_token = %(lease_token)s,
        worker_id = %(worker_id)s,
        claimed_at = clock_timestamp(),
        lease_expires_at = clock_timestamp() + make_interval(secs => %(lease)s)
    FROM picked
    WHERE state.job_id = ANY(ARRAY[picked.job_id])
    RETURNING state.job_id, state.lease_version, state.attempts, state.attempts_allowed,
              state.priority * -1 AS rank, state.position, state.claimed_at
)
SELECT claimed.job_id, claimed.lease_version, claimed.attempts, claimed.attempts_allowed,
       claimed.rank, claimed.position, claimed.claimed_at,
       job.backend, job.task_path, job.args, job.kwargs, job.queue, job.priority, job.run_after,
       job.enqueued_at, job.metadata, job.max_attempts, job.timeout, job.backoff_base, job.backoff_cap
FROM claimed
CROSS JOIN LATERAL {_job_of("claimed")} AS job
"""

# PostgreSQL has no loose index scan: one probe per distinct queue emulates it.
READY_QUEUES = f"""
WITH RECURSIVE found AS (
    (SELECT queue FROM {STATE} WHERE status = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM {STATE} WHERE status = 'ready' AND queue > found.queue ORDER BY queue LIMIT 1)
    FROM found
    WHERE found.queue IS NOT NULL
)
SELECT queue FROM found WHERE queue IS NOT NULL
"""

# --- the fence, shared by renew and the settles ----------------------------------------------------

_FENCED = f"""
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

_FREE = "worker_id = NULL, lease_token = NULL, claimed_at = NULL, lease_expires_at = NULL"

_ATTEMPT_COLUMNS = """job_id, number, lease_version, lease_token, worker_id, host, pid,
    started_at, finished_at, outcome, exception_class, message, traceback, fingerprint,
    return_value, log_tail"""

# One moment for all that a statement writes of an attempt: with a clock read for each column, a short one
# could end before it began. The ages were taken right before the statement was sent.
_WRITTEN = "statement_timestamp()"

_WRITE_ATTEMPT = f"""
    INSERT INTO {ATTEMPT} ({_ATTEMPT_COLUMNS})
    SELECT job_id, attempts, lease_version, lease_token, owner, %(host)s, %(pid)s,
           {_WRITTEN} - make_interval(secs => started_ago),
           {_WRITTEN} - make_interval(secs => finished_ago),
"""

# The whole fence comes back: a zombie's and the owner's may stand in one batch, and only one of them is done.
_ANSWER = "SELECT job_id, lease_version, lease_token, status, attempts FROM settled"

# --- renew -----------------------------------------------------------------------------------------

# Only lease_expires_at changes, which no index names: the update can be HOT.
RENEW = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[])
             AS given(job_id, lease_version, lease_token)
), held AS MATERIALIZED ({_FENCED})
UPDATE {STATE} AS state
SET lease_expires_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM held
WHERE state.job_id = ANY(ARRAY[held.job_id])
RETURNING held.job_id, held.lease_version, held.lease_token, held.cancel_requested
"""

# --- progress --------------------------------------------------------------------------------------

# Not a transition: a note on a running job, behind the same fence.
PROGRESS = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(progress)s::text[])
             AS given(job_id, lease_version, lease_token, progress)
), held AS MATERIALIZED ({_FENCED})
UPDATE {STATE} AS state
SET progress = held.progress::json
FROM held
WHERE state.job_id = ANY(ARRAY[held.job_id])
RETURNING state.job_id
"""

# --- complete --------------------------------------------------------------------------------------

COMPLETE = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(finished_ago)s::float8[], %(return_value)s::text[])
             AS given(job_id, lease_version, lease_token, started_ago, finished_ago, return_value)
), held AS MATERIALIZED ({_FENCED}), settled AS (
    UPDATE {STATE} AS state
    SET status = 'succeeded', attempts = state.attempts + 1, {_FREE},
        finished_at = {_WRITTEN} - make_interval(secs => held.finished_ago)
    FROM held
    WHERE state.job_id = ANY(ARRAY[held.job_id])
    RETURNING state.job_id, state.attempts, state.status, held.lease_version, held.lease_token, owner,
              started_ago, finished_ago, return_value
), written AS ({_WRITE_ATTEMPT}
           'succeeded', '', '', '', '', return_value::json, ''
    FROM settled
)
{_ANSWER}
"""

# --- fail ------------------------------------------------------------------------------------------

FAIL = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(finished_ago)s::float8[], %(delay)s::float8[],
                         %(final)s::bool[], %(exception_class)s::text[], %(message)s::text[],
                         %(traceback)s::text[], %(fingerprint)s::text[])
             AS given(job_id, lease_version, lease_token, started_ago, finished_ago, delay, final,
                      exception_class, message, traceback, fingerprint)
), held AS MATERIALIZED ({_FENCED}), decided AS MATERIALIZED (
    SELECT held.*,
           CASE WHEN cancel_requested THEN 'cancelled'
                WHEN final OR ended + 1 >= allowed THEN 'dead'
                ELSE 'scheduled' END AS next_status
    FROM held
), settled AS (
    UPDATE {STATE} AS state
    SET status = next_status, attempts = state.attempts + 1, {_FREE},
        run_at = CASE WHEN next_status = 'scheduled' THEN clock_timestamp() + make_interval(secs => delay)
                      ELSE state.run_at END,
        finished_at = CASE WHEN next_status = 'scheduled' THEN NULL
                           ELSE {_WRITTEN} - make_interval(secs => finished_ago) END
    FROM decided
    WHERE state.job_id = ANY(ARRAY[decided.job_id])
    RETURNING state.job_id, state.attempts, state.status, decided.lease_version, decided.lease_token, owner,
              started_ago, finished_ago, exception_class, message, traceback, fingerprint
), written AS ({_WRITE_ATTEMPT}
           'failed', exception_class, message, traceback, fingerprint, NULL, ''
    FROM settled
)
{_ANSWER}
"""

# --- snooze ----------------------------------------------------------------------------------------

# attempts_allowed grows with attempts: the ending is not charged.
SNOOZE = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(finished_ago)s::float8[], %(delay)s::float8[],
                         %(exception_class)s::text[], %(message)s::text[])
             AS given(job_id, lease_version, lease_token, started_ago, finished_ago, delay,
                      exception_class, message)
), held AS MATERIALIZED ({_FENCED}), settled AS (
    UPDATE {STATE} AS state
    SET status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'scheduled' END,
        attempts = state.attempts + 1, attempts_allowed = state.attempts_allowed + 1, {_FREE},
        run_at = clock_timestamp() + make_interval(secs => delay),
        finished_at = CASE WHEN cancel_requested THEN clock_timestamp() END
    FROM held
    WHERE state.job_id = ANY(ARRAY[held.job_id])
    RETURNING state.job_id, state.attempts, state.status, held.lease_version, held.lease_token, owner,
              started_ago, finished_ago, exception_class, message
), written AS ({_WRITE_ATTEMPT}
           'snoozed', exception_class, message, '', '', NULL, ''
    FROM settled
)
{_ANSWER}
"""

# --- release ---------------------------------------------------------------------------------------

# A prefetched job that never started goes back as if it had not been claimed: no attempt, no charge.
RELEASE = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(message)s::text[])
             AS given(job_id, lease_version, lease_token, started_ago, message)
), held AS MATERIALIZED ({_FENCED}), settled AS (
    UPDATE {STATE} AS state
    SET status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'ready' END,
        position = nextval('{POSITION}'),
        attempts = state.attempts + (started_ago IS NOT NULL)::int,
        attempts_allowed = state.attempts_allowed + (started_ago IS NOT NULL)::int, {_FREE},
        finished_at = CASE WHEN cancel_requested THEN clock_timestamp() END
    FROM held
    WHERE state.job_id = ANY(ARRAY[held.job_id])
    RETURNING state.job_id, state.attempts, state.status, held.lease_version, held.lease_token, owner,
              started_ago, 0::float8 AS finished_ago, message
), written AS ({_WRITE_ATTEMPT}
           'released', '', message, '', '', NULL, ''
    FROM settled
    WHERE started_ago IS NOT NULL
)
{_ANSWER}
"""

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
    position = nextval('{POSITION}'), {_FREE}
FROM unheld
WHERE state.job_id = ANY(ARRAY[unheld.job_id])
RETURNING state.job_id
"""

BACKEND_LIVES = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %(pid)s::int)"

# --- cancel, by the worker that holds the job -----------------------------------------------------

CANCEL_HELD = f"""
WITH given AS (
    SELECT * FROM unnest(%(job_id)s::bigint[], %(lease_version)s::bigint[], %(lease_token)s::uuid[],
                         %(started_ago)s::float8[], %(finished_ago)s::float8[], %(message)s::text[])
             AS given(job_id, lease_version, lease_token, started_ago, finished_ago, message)
), held AS MATERIALIZED ({_FENCED}), settled AS (
    UPDATE {STATE} AS state
    SET status = 'cancelled', attempts = state.attempts + 1, {_FREE},
        finished_at = {_WRITTEN} - make_interval(secs => finished_ago)
    FROM held
    WHERE state.job_id = ANY(ARRAY[held.job_id])
    RETURNING state.job_id, state.attempts, state.status, held.lease_version, held.lease_token, owner,
              started_ago, finished_ago, message
), written AS ({_WRITE_ATTEMPT}
           'cancelled', '', message, '', '', NULL, ''
    FROM settled
)
{_ANSWER}
"""

# --- what became of the rows that a fenced statement did not return --------------------------------

# "done": an earlier try wrote the outcome and its reply was lost.  "locked": the fence still holds, somebody
# else has the row.  "lost": the job has another owner, or none.  An attempt that rescue wrote is not ours.
# Scalar sub-selects, as in PROMOTE.
WHEREABOUTS = f"""
SELECT given.job_id, given.lease_version, given.lease_token,
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
     AS given(job_id, lease_version, lease_token)
"""

# --- rescue ----------------------------------------------------------------------------------------

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
    CROSS JOIN LATERAL {_job_of("gone")} AS job
), settled AS (
    UPDATE {STATE} AS state
    SET status = next_status, attempts = state.attempts + 1, {_FREE},
        run_at = CASE WHEN next_status = 'scheduled' THEN clock_timestamp() + make_interval(secs => delay)
                      ELSE state.run_at END,
        finished_at = CASE WHEN next_status = 'scheduled' THEN NULL ELSE clock_timestamp() END
    FROM decided
    WHERE state.job_id = ANY(ARRAY[decided.job_id])
    RETURNING state.job_id, state.attempts, state.status, state.queue, decided.lease_version,
              decided.lease_token, decided.owner, decided.since, decided.message, decided.task_path
), written AS (
    INSERT INTO {ATTEMPT} ({_ATTEMPT_COLUMNS})
    SELECT job_id, attempts, lease_version, lease_token, owner, %(host)s, %(pid)s, since, clock_timestamp(),
           'lost', %(exception_class)s, message, '', 'lost', NULL, ''
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
), held AS MATERIALIZED ({_FENCED}), gone AS MATERIALIZED (
    SELECT held.*, clock_timestamp() - make_interval(secs => started_ago) AS since FROM held
{_LOSE}
"""

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
        cancel_requested_at = NULL,
        attempts_allowed = attempts + (SELECT max_attempts FROM {_job_of("state")} AS job)
    WHERE job_id = ANY(ARRAY(SELECT job_id FROM chosen)) AND status IN ('dead', 'cancelled')
    RETURNING job_id, queue
)
SELECT job_id, queue FROM retried
UNION ALL
SELECT job_id, NULL FROM asked WHERE job_id NOT IN (SELECT job_id FROM retried)
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
), attempts AS (
    DELETE FROM {ATTEMPT} AS attempt USING old WHERE attempt.job_id = ANY(ARRAY[old.job_id])
), jobs AS (
    DELETE FROM {JOB} WHERE ctid = ANY(ARRAY(
        SELECT job.place FROM old CROSS JOIN LATERAL {_job_of("old")} AS job
    ))
)
SELECT job_id, finished_at FROM states
"""

# --- tests of projects -----------------------------------------------------------------------------

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

# --- reading back ----------------------------------------------------------------------------------

UNKNOWN_SINCE = f"""
SELECT given.job_id, extract(epoch FROM clock_timestamp() - min(attempt.started_at))::float8, count(*)
FROM unnest(%(job_ids)s::bigint[]) AS given(job_id)
JOIN {ATTEMPT} AS attempt ON attempt.job_id = ANY(ARRAY[given.job_id])
WHERE attempt.exception_class = %(exception_class)s
GROUP BY given.job_id
"""

# What waits and runs in each queue, and whether a worker sleeps there: one partial index for each state.
_LIVE_OF = f"SELECT queue, status, count(*) AS jobs, min(run_at) AS since FROM {STATE} WHERE status = "
QUEUES = f"""
WITH live AS (
    {_LIVE_OF} 'ready' GROUP BY queue, status
    UNION ALL {_LIVE_OF} 'running' GROUP BY queue, status
    UNION ALL {_LIVE_OF} 'scheduled' GROUP BY queue, status
), queues AS (
    SELECT queue, coalesce(sum(jobs) FILTER (WHERE status = 'ready'), 0)::bigint AS ready,
           coalesce(sum(jobs) FILTER (WHERE status = 'running'), 0)::bigint AS running,
           coalesce(sum(jobs) FILTER (WHERE status = 'scheduled'), 0)::bigint AS scheduled,
           extract(epoch FROM clock_timestamp()
                   - min(since) FILTER (WHERE status = 'ready'))::float8 AS waited
    FROM live GROUP BY queue
)
SELECT queue, ready, running, scheduled, waited,
       {_somebody_sleeps_on("queue")} OR {_somebody_sleeps_on("'*'")}
FROM queues ORDER BY queue
"""
WORKERS = """
SELECT count(DISTINCT application_name) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'django_pgqueue child %%'
"""

# The latest attempts of jobs that are tried again: what a task sees of its own past.
HISTORY = f"""
SELECT past.job_id, past.number, past.worker_id, past.started_at, past.outcome, past.exception_class,
       past.traceback, past.message
FROM unnest(%(job_ids)s::bigint[]) AS given(job_id)
CROSS JOIN LATERAL (
    SELECT * FROM {ATTEMPT} AS attempt
    WHERE attempt.job_id = given.job_id
    ORDER BY number DESC
    LIMIT %(limit)s
) AS past
ORDER BY past.job_id, past.number
"""

# --- what the admin pages ask ----------------------------------------------------------------------

# Of the last attempts only: a job that was snoozed a hundred thousand times must not be walked to its start.
LAST_ERRORS = f"""
SELECT given.job_id, past.number, past.outcome, past.exception_class, left(past.message, %(characters)s)
FROM unnest(%(job_ids)s::bigint[]) AS given(job_id)
CROSS JOIN LATERAL (
    SELECT *
    FROM (SELECT * FROM {ATTEMPT} AS attempt WHERE attempt.job_id = given.job_id
          ORDER BY number DESC LIMIT %(attempts)s) AS latest
    WHERE outcome IN ('failed', 'lost') OR exception_class <> ''
    ORDER BY number DESC
    LIMIT 1
) AS past
"""

# One probe per distinct path, like READY_QUEUES; on the index of (task_path, id).
TASK_PATHS = f"""
WITH RECURSIVE found AS (
    (SELECT task_path, 1 AS place FROM {JOB} ORDER BY task_path LIMIT 1)
    UNION ALL
    SELECT (SELECT task_path FROM {JOB} WHERE task_path > found.task_path ORDER BY task_path LIMIT 1),
           place + 1
    FROM found
    WHERE found.task_path IS NOT NULL AND place < %(limit)s
)
SELECT task_path FROM found WHERE task_path IS NOT NULL
"""

# Each sub-select is ordered as its index is: unordered, a LIMIT tempts the planner into walking the table.
STATUS_COUNTS = f"""
SELECT (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'scheduled'
                              ORDER BY run_at, job_id LIMIT %(limit)s) AS counted),
       (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'ready'
                              ORDER BY queue, (priority * -1), position, job_id LIMIT %(limit)s) AS counted),
       (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'running'
                              ORDER BY claimed_at, job_id LIMIT %(limit)s) AS counted),
       (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'succeeded' AND finished_at IS NOT NULL
                              ORDER BY finished_at DESC LIMIT %(limit)s) AS counted),
       (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'dead' AND finished_at IS NOT NULL
                              ORDER BY finished_at DESC LIMIT %(limit)s) AS counted),
       (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'cancelled' AND finished_at IS NOT NULL
                              ORDER BY finished_at DESC LIMIT %(limit)s) AS counted)
"""

ESTIMATE = f"SELECT reltuples::bigint FROM pg_class WHERE oid = '{JOB}'::regclass"

# A binary search in the primary key: ids and times are drawn together, so they rise together.
FIRST_ID_AT = f"""
WITH RECURSIVE probe AS (
    SELECT min(id) AS low, max(id) + 1 AS high FROM {JOB}
    UNION ALL
    SELECT CASE WHEN seen.earlier THEN seen.id + 1 ELSE low END,
           CASE WHEN seen.earlier THEN high ELSE (low + high) / 2 END
    FROM probe
    CROSS JOIN LATERAL (
        SELECT id, enqueued_at < %(moment)s::timestamptz AS earlier
        FROM {JOB}
        WHERE id >= (low + high) / 2
        ORDER BY id
        LIMIT 1
    ) AS seen
    WHERE low < high
)
SELECT low FROM probe WHERE low >= high
"""

# --- wake-up ---------------------------------------------------------------------------------------

CHANNEL = "django_pgqueue"

# A worker that serves any queue sleeps on '*'.
NOTIFY_SLEEPERS = f"""
SELECT pg_notify('{CHANNEL}', queue)
FROM unnest(%(queues)s::text[]) AS given(queue)
WHERE {_somebody_sleeps_on("queue")} OR {_somebody_sleeps_on("'*'")}
"""
SLEEP = f"SELECT pg_advisory_lock_shared({LOCK_CLASS}, hashtext(%(queue)s))"
AWAKE = f"SELECT pg_advisory_unlock_shared({LOCK_CLASS}, hashtext(%(queue)s))"
LISTEN = f"LISTEN {CHANNEL}"

# Those who wait for a result hold one key shared; a worker asks after its commit, once for a batch.
RESULTS_CHANNEL = "django_pgqueue_results"
NOTIFY_WAITERS = f"""
SELECT pg_notify('{RESULTS_CHANNEL}', '')
WHERE NOT pg_try_advisory_xact_lock({LOCK_CLASS}, hashtext('{RESULTS_CHANNEL}'))
"""
WAIT_FOR_RESULTS = f"SELECT pg_advisory_lock_shared({LOCK_CLASS}, hashtext('{RESULTS_CHANNEL}'))"
LISTEN_FOR_RESULTS = f"LISTEN {RESULTS_CHANNEL}"
STATUS = f"SELECT status FROM {STATE} WHERE job_id = %(job_id)s"
