"""SQL that puts very many jobs of this project into its tables, as its own verbs would have left them.

For piles that jobs must be drained beside, quicker than by enqueueing them; what is measured itself is
always enqueued through the API.
"""

from django_pgqueue import sql

QUICK = "SET LOCAL synchronous_commit = off"
QUEUES = ("default", "emails", "reports", "images")
_IDS = f"nextval(pg_get_serial_sequence('{sql.JOB}', 'id'))"


def ready(count: int) -> str:
    """Return SQL for jobs that wait behind all others; nobody runs them."""
    return _fill(count, status="ready", position=f"nextval('{sql.POSITION}')", priority=0)


def scheduled(count: int) -> str:
    """Return SQL for jobs of the highest priority that are due tomorrow."""
    return _fill(count, status="scheduled", priority=100, run_at="now() + interval '1 day'")


def due_at(count: int, moment: float) -> str:
    """Return SQL for no-op jobs with numbers from 0 on that are due at a moment of ``time.time()``."""
    due, numbered = f"to_timestamp({moment})", "format('[%s]', row_number() OVER (ORDER BY id) - 1)::json"
    return _fill(count, status="scheduled", run_at=due, task="benchmarks.tasks.nothing", arguments=numbered)


def succeeded(count: int, ago: str = "1 hour") -> str:
    """Return SQL for jobs that succeeded so long ago, each with its attempt."""
    return (
        _fill(count, status="succeeded", attempts=1, run_at=f"now() - interval '{ago}'", finished=True)
        + f"""
        INSERT INTO {sql.ATTEMPT} (job_id, number, lease_version, lease_token, worker_id, host, pid,
                                   started_at, finished_at, outcome, exception_class, message,
                                   traceback, fingerprint, return_value, log_tail)
        SELECT id, 1, 1, gen_random_uuid(), 'worker', 'host', 1, now() - interval '{ago}',
               now() - interval '{ago}', 'succeeded', '', '', '', '', 'null', ''
        FROM filled;
        DROP TABLE filled;
        """
    )


def _fill(
    count: int,
    *,
    status: str,
    position: str = "NULL",
    priority: int = 0,
    attempts: int = 0,
    run_at: str = "now()",
    finished: bool = False,
    task: str = "benchmarks.tasks.ignored",
    arguments: str = "'[]'",
) -> str:
    """Return SQL; the ids are left in a temporary table for what else belongs to an ended job."""
    run_after = run_at if status == "scheduled" else "NULL"
    end = "" if finished else "DROP TABLE filled;"
    return f"""
        {QUICK};
        CREATE TEMP TABLE filled AS SELECT {_IDS} AS id FROM generate_series(1, {count});
        INSERT INTO {sql.JOB} (id, backend, task_path, args, kwargs, queue, priority, run_after, enqueued_at,
                               metadata, max_attempts, backoff_base, backoff_cap)
        SELECT id, 'default', '{task}', {arguments}, '{{}}', 'default', {priority}, {run_after},
               now(), '{{}}', 5, 5, 3600
        FROM filled;
        INSERT INTO {sql.STATE} (job_id, queue, priority, status, position, run_at, attempts,
                                 attempts_allowed, lease_version, finished_at)
        SELECT id, 'default', {priority}, '{status}', {position}, {run_at}, {attempts}, 5, {attempts},
               {run_at if finished else "NULL"}
        FROM filled;
        {end}
    """


def one_in_ten_ready(count: int) -> str:
    """Return SQL for ended jobs of which every tenth is ready instead, spread over QUEUES."""
    queue = f"('{{{','.join(QUEUES)}}}'::text[])[1 + id / 10 % {len(QUEUES)}]"
    waits = "id % 10 = 0"
    return f"""
        {QUICK};
        INSERT INTO {sql.JOB} (id, backend, task_path, args, kwargs, queue, priority, enqueued_at, metadata,
                               max_attempts, backoff_base, backoff_cap)
        SELECT id, 'default', 'benchmarks.tasks.nothing', '[1]', '{{}}', {queue}, 0, now(), '{{}}', 5, 5, 3600
        FROM generate_series(1, {count}) AS id;
        INSERT INTO {sql.STATE} (job_id, queue, priority, status, position, run_at, attempts,
                                 attempts_allowed, lease_version, finished_at)
        SELECT id, {queue}, 0, CASE WHEN {waits} THEN 'ready' ELSE 'succeeded' END,
               CASE WHEN {waits} THEN id END, now(), (NOT {waits})::int, 5, (NOT {waits})::int,
               CASE WHEN NOT {waits} THEN now() END
        FROM generate_series(1, {count}) AS id;
    """
