"""The registry of workers: one row for each supervisor, written with its keeper's beat, for people to see.

Nothing that is needed for correctness reads it: leases alone decide whose job is whose.
"""

from .tables import STATE

WORKER = "django_pgqueue_worker"

BEAT = f"""
INSERT INTO {WORKER} AS worker (worker_id, host, pid, started_at, beat_at, heartbeat, queues, processes,
                                threads, version, release, memory, is_stopping, children, stop_requested_by)
VALUES (%(worker_id)s, %(host)s, %(pid)s, clock_timestamp() - make_interval(secs => %(started_ago)s),
        clock_timestamp(), %(heartbeat)s, %(queues)s, %(processes)s, %(threads)s, %(version)s, %(release)s,
        %(memory)s, %(is_stopping)s, %(children)s::json, '')
ON CONFLICT (worker_id) DO UPDATE
SET beat_at = excluded.beat_at, memory = excluded.memory, is_stopping = excluded.is_stopping,
    children = excluded.children
RETURNING stop_requested_at IS NOT NULL
"""
FORGET_WORKER = f"DELETE FROM {WORKER} WHERE worker_id = %(worker_id)s RETURNING worker_id"
ASK_TO_STOP = f"""
UPDATE {WORKER} SET stop_requested_at = clock_timestamp(), stop_requested_by = %(by)s
WHERE worker_id = %(worker_id)s AND stop_requested_at IS NULL
RETURNING worker_id
"""
FORGET_STALE = f"""
DELETE FROM {WORKER}
WHERE worker_id = ANY(ARRAY(
    SELECT worker_id FROM {WORKER}
    WHERE beat_at < clock_timestamp() - make_interval(secs => %(age)s)
    ORDER BY worker_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING worker_id
"""
REGISTERED = f"""
SELECT worker_id, host, pid, extract(epoch FROM clock_timestamp() - started_at)::float8,
       extract(epoch FROM clock_timestamp() - beat_at)::float8, heartbeat, queues, processes, threads,
       version, release, memory, is_stopping, children, stop_requested_at, stop_requested_by
FROM {WORKER}
ORDER BY host, started_at, worker_id
LIMIT %(limit)s
"""
RUNNING_NOW = f"""
SELECT state.worker_id, state.job_id, state.queue,
       (SELECT task_path FROM django_pgqueue_job AS job WHERE job.id = state.job_id),
       extract(epoch FROM clock_timestamp() - state.claimed_at)::float8
FROM (SELECT worker_id, job_id, queue, claimed_at FROM {STATE} WHERE status = 'running'
      ORDER BY claimed_at, job_id LIMIT %(limit)s) AS state
ORDER BY state.claimed_at, state.job_id
"""
