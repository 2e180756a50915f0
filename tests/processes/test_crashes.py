"""Processes killed or standing still: nothing lost, nothing run by two, nobody else's budget touched."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from django_pgqueue.tasks import PgQueueTask

from ..waiting import wait_until
from . import tasks
from .conftest import Workers
from .queue import Queue
from .worker import Worker

pytestmark = pytest.mark.process

SHORT = ("--lease", 2, "--heartbeat", 0.5, "--poll", 0.1)
LEASE = 2.0
RESCUE = LEASE / 6 * 1.25


@pytest.mark.parametrize("max_attempts", [1, 2, 3])
@pytest.mark.parametrize("ending", ["exception", "time limit", "SIGKILL"])
def test_a_job_is_run_as_often_as_its_budget_says(
    queue: Queue, worker: Worker, ending: str, max_attempts: int
) -> None:
    if ending == "exception":
        job = queue.enqueue(tasks.fail, max_attempts=max_attempts)
    elif ending == "time limit":
        job = queue.enqueue(tasks.loop_for, 30, max_attempts=max_attempts, timeout=0.2)
    else:
        job = queue.enqueue(tasks.kill9, max_attempts=max_attempts)
    queue.wait(job, "dead")
    assert len(queue.executions(job)) == max_attempts
    assert queue.outcomes(job) == ["lost" if ending == "SIGKILL" else "failed"] * max_attempts


@pytest.mark.parametrize("task", [tasks.kill9, tasks.crash, tasks.leave], ids=lambda task: task.name)
def test_a_job_that_kills_its_worker_ends_dead_and_blocks_nobody(
    queue: Queue, worker: Worker, task: PgQueueTask
) -> None:
    poison = queue.enqueue(task, max_attempts=3)
    behind = queue.enqueue_many(tasks.mark, [()] * 20)
    queue.wait([poison, *behind])
    assert queue.status(poison) == "dead"
    assert queue.outcomes(poison) == ["lost"] * 3
    assert len(queue.executions(poison)) == 3
    assert set(queue.statuses(behind).values()) == {"succeeded"}
    assert all(a.exception_class.endswith(".WorkerDied") for a in queue.attempts(poison))


def test_a_poison_job_can_be_cancelled_while_it_runs(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.sleep, 30, max_attempts=10)
    child = queue.wait_started(job)[0].pid
    report = queue.cancel(job)
    assert report.requested == [job]
    worker.kill_process(child)
    queue.wait(job, "cancelled", timeout=5.0)
    assert queue.outcomes(job) == ["lost"]


@contextmanager
def standing_aside(worker: Worker) -> Iterator[None]:
    """Stop a worker for a moment, so that another one takes what is enqueued meanwhile."""
    worker.freeze()
    try:
        yield
    finally:
        worker.thaw()


def test_a_frozen_worker_that_wakes_up_changes_nothing(queue: Queue, start: Workers) -> None:
    a, b = start(*SHORT, wait=False), start(*SHORT)
    a.wait_started()
    with standing_aside(b):
        late_success = queue.enqueue(tasks.sleep, 0.5, 0.2, max_attempts=2)
        late_failure = queue.enqueue(tasks.sleep, 0.5, 0.2, max_attempts=2, kwargs={"raises_at": 1})
        still_running = queue.enqueue(tasks.sleep, 0.5, 2.5, max_attempts=2)
        jobs = [late_success, late_failure, still_running]
        for job in jobs:
            queue.wait_started(job)
        a.freeze()
    queue.wait([late_success, late_failure], "succeeded", timeout=10.0)
    queue.wait_started(still_running, count=2)
    a.thaw()
    for job in jobs:
        a.wait_for("lease_lost", job=job)
    assert queue.status(still_running) == "running", "the late end took the job from its new owner"
    queue.wait(still_running, "succeeded")
    for job in jobs:
        assert queue.outcomes(job) == ["lost", "succeeded"]
        mine, theirs = queue.executions(job)
        assert (mine.pid in a.processes, theirs.pid in b.processes) == (True, True)
        assert theirs.lease_version == queue.attempts(job)[1].lease_version
        assert theirs.note == "held"
    with standing_aside(b):
        after = queue.enqueue(tasks.ok)
        queue.wait(after, "succeeded")


def test_a_worker_that_slept_alone_keeps_what_nobody_took(queue: Queue, start: Workers) -> None:
    worker = start(*SHORT)
    job = queue.enqueue(tasks.sleep, 3.5, max_attempts=1)
    queue.wait_started(job)
    worker.freeze()
    expired = "SELECT lease_expires_at < clock_timestamp() - interval '0.5 s' FROM django_pgqueue_jobstate"
    wait_until(lambda: queue.value(expired))
    worker.thaw()
    queue.wait(job, "succeeded")
    assert queue.outcomes(job) == ["succeeded"]
    assert len(queue.executions(job)) == 1


def test_a_child_that_stands_still_is_replaced_and_its_jobs_rescued(queue: Queue, start: Workers) -> None:
    worker = start(*SHORT, "--processes", 2, "--threads", 2)
    jobs = queue.enqueue_many(tasks.sleep, [(3, 0.1)] * 4, max_attempts=2)
    for job in jobs:
        queue.wait_started(job)
    frozen = queue.executions(jobs[0])[0].pid
    other = next(pid for pid in worker.children if pid != frozen)
    worker.kill_process(frozen, signal.SIGSTOP)
    queue.wait(jobs, "succeeded")
    for job in jobs:
        stood_still = queue.executions(job)[0].pid == frozen
        assert queue.outcomes(job) == (["lost", "succeeded"] if stood_still else ["succeeded"])
    (killing,) = worker.events("killing_child")
    assert killing.fields["pid"] == str(frozen)
    wait_until(lambda: len(worker.children) == 2)
    assert other in worker.children


def test_leases_outlive_their_keeper(queue: Queue, start: Workers) -> None:
    worker = start(*SHORT)
    job = queue.enqueue(tasks.sleep, 2 * LEASE, max_attempts=1)
    queue.wait_started(job)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        keeper = worker.keeper
        worker.kill_process(keeper, number)
        worker.wait_for("keeper_died", pid=keeper)
        wait_until(lambda: worker.keeper not in (0, keeper))  # noqa: B023 - called at once
    queue.wait(job, "succeeded")
    assert queue.executions(job)[0].note == "held"
    assert queue.outcomes(job) == ["succeeded"]


def test_work_goes_on_without_the_supervisor(queue: Queue, start: Workers) -> None:
    worker = start(*SHORT)
    job = queue.enqueue(tasks.sleep, 1.5 * LEASE, max_attempts=1)
    queue.wait_started(job)
    worker.kill_process(worker.pid, signal.SIGSTOP)
    queue.wait(queue.enqueue(tasks.ok), "succeeded")
    queue.wait(job, "succeeded")
    assert queue.executions(job)[0].note == "held"
    worker.kill_process(worker.pid, signal.SIGCONT)
    assert worker.stop() < 3.0


def test_a_killed_worker_loses_nothing(queue: Queue, start: Workers) -> None:
    a, b = start(*SHORT, "--threads", 10, wait=False), start(*SHORT, "--threads", 10)
    a.wait_started()
    with standing_aside(b):
        jobs = queue.enqueue_many(tasks.sleep, [(30, 0.1)] * 10, max_attempts=2)
        for job in jobs:
            queue.wait_started(job)
    a.kill()
    queue.wait(jobs, "succeeded")
    for job in jobs:
        assert queue.outcomes(job) == ["lost", "succeeded"]
        assert "did not renew it" in queue.attempts(job)[0].message
        again = queue.executions(job)[1]
        assert again.began - a.deaths[a.pid] < LEASE + RESCUE + 2.0
    assert {e.fields["reason"] for e in b.events("rescued")} == {"lease expired"}


def test_a_poison_job_takes_no_budget_from_what_was_fetched_with_it(queue: Queue, start: Workers) -> None:
    worker = start(*SHORT, "--threads", 1)
    queue.wait(queue.enqueue_many(tasks.ok, [()] * 200))  # so short that many are fetched at once
    poison = queue.enqueue(tasks.kill9, max_attempts=1, delay=3600)
    neighbours = queue.enqueue_many(tasks.mark, [()] * 100, max_attempts=1, delay=3600)
    with queue.session.transaction():
        for job in [poison, *neighbours]:
            queue.promote(job)
    queue.wait([poison, *neighbours])
    assert queue.outcomes(poison) == ["lost"]
    returned = {int(e.fields["job"]) for e in worker.events("rescued", status="ready")}
    assert returned, "nothing was fetched ahead: the test shows nothing"
    assert returned <= set(neighbours)
    for job in neighbours:
        assert queue.outcomes(job) == ["succeeded"]
        assert queue.state(job).attempts_allowed == 1
        assert len(queue.executions(job)) == 1


def test_the_jobs_of_a_killed_child_are_back_at_once(queue: Queue, start: Workers) -> None:
    worker = start("--lease", 30, "--heartbeat", 10, "--poll", 0.1)
    jobs = queue.enqueue_many(tasks.sleep, [(30, 0)] * 4, max_attempts=2)
    for job in jobs:
        queue.wait_started(job)
    killed = worker.child
    worker.kill_process(killed)
    queue.wait(jobs, "succeeded", timeout=5.0)
    for job in jobs:
        assert queue.outcomes(job) == ["lost", "succeeded"]
        first, second = queue.executions(job)
        assert second.began - worker.deaths[killed] < 2.0, "that was not at once"
        assert queue.attempts(job)[0].pid == first.pid == killed


def test_a_job_is_run_as_often_as_its_budget_says_when_whole_workers_die(
    queue: Queue, start: Workers
) -> None:
    jobs = {n: queue.enqueue(tasks.sleep, 60, max_attempts=n) for n in (1, 2, 3)}
    short = ("--lease", 1, "--heartbeat", 0.3, "--poll", 0.1)
    workers = [start(*short)]
    for attempt in (1, 2, 3):
        for n, job in jobs.items():
            if n >= attempt:
                queue.wait_started(job, count=attempt)
        workers.append(start(*short))
        workers[-2].kill()
    queue.wait(jobs.values(), "dead")
    for n, job in jobs.items():
        assert queue.outcomes(job) == ["lost"] * n
        assert len(queue.executions(job)) == n
        for earlier, later in pairwise(queue.executions(job)):
            assert earlier.pid != later.pid
