"""The names of the tables, and what statements of several rooms say in the same words."""

from typing import LiteralString

JOB = "django_pgqueue_job"
STATE = "django_pgqueue_jobstate"
ATTEMPT = "django_pgqueue_attempt"
STEP = "django_pgqueue_jobstep"
POSITION = "django_pgqueue_position_seq"


def _tuned(is_local: LiteralString) -> LiteralString:
    return f"""
SELECT set_config('enable_seqscan', 'off', {is_local}), set_config('enable_hashjoin', 'off', {is_local}),
       set_config('enable_mergejoin', 'off', {is_local}), set_config('enable_bitmapscan', 'off', {is_local}),
       set_config('jit', 'off', {is_local}), set_config('lock_timeout', %(lock_timeout)s::text, {is_local}),
       set_config('statement_timeout', %(statement_timeout)s::text, {is_local})"""


# A generic plan cached while a table was small keeps its Seq Scan when the table has grown.  What is local
# ends with the transaction, so nothing leaks behind a transaction-pooling PgBouncer.
HOT_PATH = _tuned("true")

# The same for connections of workers.  Whoever freezes, or whose machine dies, between two statements of a
# transaction must not keep its locks until the server notices that the network is gone: rescue skips them.
WORKER_HOT_PATH = f"""{HOT_PATH},
       set_config('idle_in_transaction_session_timeout', %(idle_timeout)s::text, true)
"""
# Once for a session that is the worker's own.
WORKER_SESSION = f"""{_tuned("false")},
       set_config('idle_in_transaction_session_timeout', %(idle_timeout)s::text, false)
"""


def job_of(found: str) -> str:
    """Return a sub-select of the job that belongs to a found row, by primary key.

    Only the primary key gives ids in order.  Without the order PostgreSQL may as well take the index of
    (task_path, id), and read it from end to end, while it believes the table to be empty.
    """
    return f"""(SELECT job.*, job.ctid AS place FROM {JOB} AS job
      WHERE job.id >= {found}.job_id AND job.id <= {found}.job_id ORDER BY job.id LIMIT 1)"""


def without(found: str) -> str:
    """Return sub-statements that delete all that belongs to the found rows' jobs but their states."""
    return f"""attempts AS (
    DELETE FROM {ATTEMPT} AS attempt USING {found} WHERE attempt.job_id = ANY(ARRAY[{found}.job_id])
), steps AS (
    DELETE FROM {STEP} AS step USING {found} WHERE step.job_id = ANY(ARRAY[{found}.job_id])
), jobs AS (
    DELETE FROM {JOB} WHERE ctid = ANY(ARRAY(
        SELECT job.place FROM {found} CROSS JOIN LATERAL {job_of(found)} AS job
    ))
)"""


LIVE = "('scheduled', 'ready', 'running')"

# A job that must wait until the running one of its key has ended holds this key instead of the key itself.
FOLLOWER = "\x1ffollower"
IS_FOLLOWER = f"right(unique_key, {len(FOLLOWER)}) = E'\\x1ffollower'"
LEADER_KEY = f"left(unique_key, -{len(FOLLOWER)})"
