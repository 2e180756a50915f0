"""A worker that stands still in the middle of a transaction: what it has locked must not stay locked."""

import pytest

from django_pgqueue import sql
from django_pgqueue.connections import IDLE_TIMEOUT

from ..waiting import wait_until
from . import tasks
from .conftest import Workers
from .queue import Queue

pytestmark = pytest.mark.process

LEASE = 3.0
SHORT = ("--lease", LEASE, "--heartbeat", 0.5, "--poll", 0.1)


def test_a_worker_that_freezes_in_a_settle_loses_its_jobs_all_the_same(queue: Queue, start: Workers) -> None:
    """Its backend has done the UPDATE and waits for the COMMIT: rescue would skip the row for ever."""
    workers = [start(*SHORT, wait=False) for _ in range(2)]
    for worker in workers:
        worker.wait_started()
    warm_up(queue, {worker.child for worker in workers})
    job = queue.enqueue(tasks.sleep, 0.7, 0.0, max_attempts=5)
    (call,) = queue.wait_started(job)
    frozen, other = sorted(workers, key=lambda worker: worker.child != call.pid)
    with Queue(queue.url) as locker:
        with locker.session.transaction():
            locker.session.execute(f"LOCK TABLE {sql.ATTEMPT} IN EXCLUSIVE MODE")
            wait_until(lambda: settles_waiting(queue), 15.0, "no settle came")
            frozen.freeze()
        queue.wait(job, "succeeded", timeout=LEASE + IDLE_TIMEOUT + 30.0)
    outcomes = queue.outcomes(job)
    assert (outcomes[0], outcomes[-1]) == ("lost", "succeeded")
    assert other.events("rescued", job=job)
    frozen.thaw()


def warm_up(queue: Queue, children: set[int]) -> None:
    """Have each child settle once: a statement that it prepares first would be waited for before it runs."""
    while not children <= {call.pid for call in queue.executions()}:
        queue.wait(queue.enqueue_many(tasks.sleep, [(0.2,)] * 8), "succeeded")


def settles_waiting(queue: Queue) -> int:
    return queue.value(
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE NOT granted AND relation = %s::regclass AND application_name LIKE 'django_pgqueue child %%'",
        [sql.ATTEMPT],
    )
