"""Fills the tables with a month of work, as the verbs would have left it: for the pages that operators open.

Every row that belongs to a job is there. Indexes are dropped first and made again in the end, and three
sessions write side by side, which takes a tenth of the time of enqueueing and running the jobs.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg

from django_pgqueue import sql

DEAD_EVERY = 200
"""Half a per cent of the jobs are dead."""
NIGHT = 300
"""Jobs that died for one cause of their own ten hours ago."""
NIGHT_TASK = "shop.tasks.book_courier"
CAUSES = 7
RUNNING = 200
ATTEMPTS_OF_THE_DEAD = 3

# One place says what becomes of job number i; the three inserts ask it alike.
_FATES = f"""
    SELECT i, now() - interval '30 days' + i * (interval '30 days' / %(jobs)s) AS at, is_night,
           CASE WHEN is_night THEN '{NIGHT_TASK}' ELSE 'shop.tasks.t' || i %% 5 END AS task,
           CASE WHEN i %% 5000 = 7 THEN 'rare' ELSE 'q' || i %% 3 END AS queue,
           CASE WHEN is_night OR i %% {DEAD_EVERY} = 3 THEN 'dead'
                WHEN i > %(jobs)s - {RUNNING} THEN 'running'
                WHEN i %% 100 = 4 THEN 'cancelled'
                WHEN i > %(jobs)s / 2 AND i %% 50 = 1 THEN 'ready'
                WHEN i > %(jobs)s / 2 AND i %% 50 = 2 THEN 'scheduled'
                ELSE 'succeeded' END AS status,
           CASE WHEN is_night THEN md5('night')
                WHEN i %% {DEAD_EVERY} = 3 THEN md5('cause ' || i / {DEAD_EVERY} %% {CAUSES}) END AS cause
    FROM (SELECT i, i >= %(night)s AND i < %(night)s + {NIGHT} * %(step)s
                    AND (i - %(night)s) %% %(step)s = 0 AS is_night
          FROM generate_series(1, %(jobs)s) AS i) AS numbered
"""

JOBS = f"""
INSERT INTO {sql.JOB} (id, backend, task_path, args, kwargs, queue, priority, enqueued_at, metadata,
                       max_attempts, backoff_base, backoff_cap)
SELECT i, 'default', task, format('[%%s]', i)::json, '{{"copy": true, "note": "as ordered by telephone"}}',
       queue, 0, at, '{{}}', {ATTEMPTS_OF_THE_DEAD}, 5, 3600
FROM ({_FATES}) AS fates
"""
STATES = f"""
INSERT INTO {sql.STATE} (job_id, queue, priority, status, position, run_at, attempts, attempts_allowed,
                         lease_version, lease_token, worker_id, claimed_at, lease_expires_at, finished_at,
                         cause)
SELECT i, queue, 0, status, CASE status WHEN 'ready' THEN i END,
       CASE status WHEN 'scheduled' THEN now() + i * interval '1 s' ELSE at END,
       CASE status WHEN 'dead' THEN {ATTEMPTS_OF_THE_DEAD} WHEN 'succeeded' THEN 1 ELSE 0 END,
       {ATTEMPTS_OF_THE_DEAD}, 1,
       CASE status WHEN 'running' THEN gen_random_uuid() END,
       CASE status WHEN 'running' THEN 'worker.1' END, CASE status WHEN 'running' THEN now() END,
       CASE status WHEN 'running' THEN now() + interval '30 s' END,
       CASE WHEN status IN ('succeeded', 'dead', 'cancelled') THEN at + interval '3 s' END, cause
FROM ({_FATES}) AS fates
"""
_TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/tasks.py", line 210, in ship
    answer = client.post(PARTNER + "/parcels", json=parcel, timeout=10)
  File "/usr/lib/python3.13/site-packages/client/api.py", line 88, in post
    return self.request("POST", url, **options)
  File "/usr/lib/python3.13/site-packages/client/pool.py", line 301, in request
    raise ConnectionError(f"{url}: connection refused")
ConnectionError: connection refused
"""
ATTEMPTS = f"""
INSERT INTO {sql.ATTEMPT} (job_id, number, lease_version, lease_token, worker_id, host, pid, started_at,
                           finished_at, outcome, exception_class, message, traceback, fingerprint,
                           return_value, log_tail)
SELECT i, number, number, '00000000-0000-0000-0000-000000000000', 'worker.' || i %% 4, 'host-1', 4711,
       at + interval '2 s', at + interval '3 s', CASE status WHEN 'dead' THEN 'failed' ELSE status END,
       CASE status WHEN 'dead' THEN 'builtins.ConnectionError' ELSE '' END,
       CASE status WHEN 'dead' THEN 'connection refused' ELSE '' END,
       CASE status WHEN 'dead' THEN %(traceback)s ELSE '' END, coalesce(cause, ''),
       CASE status WHEN 'succeeded' THEN 'null'::json END, ''
FROM ({_FATES}) AS fates
CROSS JOIN LATERAL generate_series(1, CASE status WHEN 'dead' THEN {ATTEMPTS_OF_THE_DEAD} ELSE 1 END)
           AS number
WHERE status IN ('succeeded', 'dead')
"""

_INDEXES = """
SELECT indexname, indexdef FROM pg_indexes
WHERE tablename = ANY(%(tables)s) AND indexname NOT IN (SELECT conname FROM pg_constraint)
"""
_AFTERWARDS = (
    f"SELECT setval(pg_get_serial_sequence('{sql.JOB}', 'id'), (SELECT max(id) FROM {sql.JOB}))",
    f"SELECT setval('{sql.POSITION}', (SELECT max(id) FROM {sql.JOB}))",
)


def fill(url: str, jobs: int) -> None:
    """Fill the empty, migrated tables of a database with so many jobs."""
    with psycopg.connect(url, autocommit=True) as session:
        tables = [sql.JOB, sql.STATE, sql.ATTEMPT]
        indexes = session.execute(_INDEXES, {"tables": tables}).fetchall()
        for name, _ in indexes:
            session.execute(f'DROP INDEX "{name}"')
        _side_by_side(url, [JOBS, STATES, ATTEMPTS], values(jobs))
        _side_by_side(url, [definition for _, definition in indexes], {})
        for statement in _AFTERWARDS:
            session.execute(statement)


def values(jobs: int) -> dict[str, Any]:
    """Return the parameters of the statements: where the night is, and how far its dead jobs lie apart."""
    hour = jobs / 720
    return {
        "jobs": jobs,
        "night": max(int(jobs - 10 * hour), 1),
        "step": max(int(2 * hour / NIGHT), 1),
        "traceback": _TRACEBACK,
    }


def _side_by_side(url: str, statements: list[str], parameters: Mapping[str, Any]) -> None:
    def run(statement: str) -> None:
        with psycopg.connect(url, autocommit=True) as session:
            session.execute("SET synchronous_commit = off")
            session.execute("SET maintenance_work_mem = '512MB'")
            session.execute(
                statement, {k: v for k, v in parameters.items() if f"%({k})s" in statement} or None
            )

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(run, statements))
