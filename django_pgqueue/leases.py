"""Keeping leases, and giving back what dead children held: the keeper's first duty.

The keeper renews exactly the (job, version, token) triples that the children have published, never
"all of worker W": a claim whose reply was lost would live for ever.  It publishes when its last
renewal was confirmed, by a monotonic time taken before sending, so that a frozen or cut-off keeper
misleads no child.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any

from .events import log
from .models import Job
from .querying import chunks
from .records import DONE, LOCKED, Fence, Released, Renewal, Rescued, WorkerIdentity

ROWS = 500


def renew(fences: Sequence[Fence], *, lease: float, connection: Any) -> dict[Fence, Renewal]:
    """Renew leases in statements of at most 500 rows.

    A row that somebody else has locked is answered "locked": it is neither lost nor waited for.
    """
    answers: dict[Fence, Renewal] = {}
    if not fences:
        # Still a write: it shows that the server takes writes at all (a standby does not).
        Job.objects.renew([], lease=lease, connection=connection)
    for chunk in chunks(fences, ROWS):
        answers |= Job.objects.renew(chunk, lease=lease, connection=connection)
    return answers


def still_locked(answers: dict[Fence, Renewal]) -> list[Fence]:
    """Return the fences to be tried again alone."""
    return [fence for fence, answer in answers.items() if answer.result == LOCKED]


def is_lost(answer: Renewal) -> bool:
    """True when the job has another owner or none; a locked row is not lost."""
    return answer.result not in (DONE, LOCKED)


def give_back(
    fences_and_starts: Sequence[tuple[Fence, float]],
    *,
    worker: WorkerIdentity,
    reason: str,
    jitter: float = 1.0,
    connection: Any,
) -> list[Rescued]:
    """Take what a dead child held from it: what had started is charged, the rest goes back free.

    ``fences_and_starts`` pairs each fence with the monotonic time of its start, 0 if it never started.
    """
    now = time.monotonic()
    lost = [
        Released(fence, now - started if started else None, f"the worker process {worker.pid} {reason}")
        for fence, started in fences_and_starts
    ]
    rescued: list[Rescued] = []
    for chunk in chunks(lost, ROWS):
        rescued += Job.objects.rescue_worker(chunk, worker=worker, jitter=jitter, connection=connection)
    for job in rescued:
        level = logging.ERROR if job.status == "dead" else logging.WARNING
        log(
            "rescued",
            level,
            job=job.job_id,
            task=job.task_path,
            queue=job.queue,
            status=job.status,
            attempt=job.attempts,
            worker=job.worker_id,
            reason=reason,
        )
    return rescued
