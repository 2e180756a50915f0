"""Many jobs for the pages, made by few statements."""

from typing import Any

from django_pgqueue import sql
from django_pgqueue.models import Job
from tests.support import WORKER, claim_queue, enqueue, enqueue_many, failed, fetch


def dead(count: int, **options: Any) -> list[int]:
    """Return so many jobs that died in their first attempt; their queue must hold no other ready job."""
    job_ids = enqueue_many(count, **options)
    claimed = claim_queue(options.get("queue", "default"), limit=count)
    assert sorted(job.job_id for job in claimed) == job_ids
    Job.objects.fail([failed(job.fence, final=True) for job in claimed], worker=WORKER)
    return job_ids


def with_attempts(count: int) -> int:
    """Return a ready job with so many failed attempts behind it."""
    job_id = enqueue(max_attempts=count + 1)
    fetch(
        f"""INSERT INTO {sql.ATTEMPT} (job_id, number, lease_version, lease_token, worker_id, host, pid,
                started_at, finished_at, outcome, exception_class, message, traceback, fingerprint, log_tail)
            SELECT %s, number, number, gen_random_uuid(), 'worker-1', 'host-1', 1,
                now() - interval '1 s', now(), 'failed', 'builtins.ValueError', 'message ' || number,
                'Traceback', '', ''
            FROM generate_series(1, %s) AS number
            RETURNING 1""",
        [job_id, count],
    )
    fetch(
        f"UPDATE {sql.STATE} SET attempts = %s, lease_version = %s WHERE job_id = %s RETURNING 1",
        [count] * 2 + [job_id],
    )
    return job_id
