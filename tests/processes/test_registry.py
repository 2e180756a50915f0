"""The registry of real workers: who is there is seen, who is asked stops, who is gone is seen to be."""

import signal

import pytest

from django_pgqueue.operating import QueuePause, Worker
from django_pgqueue.registry import ALIVE, DEAD, STOPPING, Registered

from ..waiting import wait_until
from . import tasks
from .conftest import Workers
from .queue import Queue

pytestmark = pytest.mark.process
BEAT = ("--heartbeat", 0.3, "--lease", 2, "--poll", 0.2)


@pytest.fixture(autouse=True)
def nobody(queue: Queue) -> None:
    """Begin with an empty registry."""
    for table in ("django_pgqueue_worker", "django_pgqueue_rollup"):
        queue.session.execute(f"DELETE FROM {table}")


def registered(queue: Queue) -> list[Registered]:
    return Worker.objects.registered(connection=queue.session)


def line_of(queue: Queue, pid: int) -> Registered:
    """Return the line of the worker whose supervisor has this pid, once it has one with children."""

    def found() -> Registered | None:
        lines = [line for line in registered(queue) if line.pid == pid]
        assert len(lines) < 2, lines
        return next(
            (line for line in lines if line.children and all(c.worker_id for c in line.children)), None
        )

    return wait_until(found, 10.0, "the worker has no line")


def test_a_worker_says_what_it_is_and_what_it_runs(queue: Queue, start: Workers) -> None:
    worker = start(*BEAT, "--processes", 2, "--threads", 3, "--queues", "default,other")
    job = queue.enqueue(tasks.sleep, 2)
    queue.wait_started(job)
    line = line_of(queue, worker.pid)
    assert (line.state, line.queues, line.processes, line.threads, line.slots) == (
        ALIVE,
        ("default", "other"),
        2,
        3,
        6,
    )
    assert {child.pid for child in line.children} == set(worker.children)
    assert (line.memory or 0) > 20
    running = Worker.objects.running(connection=queue.session)
    (holder,) = [child for child in line.children if child.worker_id in running]
    assert [(run.job_id, run.task_path) for run in running[holder.worker_id]] == [
        (job, tasks.sleep.module_path)
    ]


def test_a_worker_that_is_asked_stops_in_order_and_leaves_no_line(queue: Queue, start: Workers) -> None:
    worker, other = start(*BEAT, "--grace", 10), start(*BEAT)
    job = queue.enqueue(tasks.sleep, 1.5)
    queue.wait_started(job)
    lines = {line_of(queue, each.pid).worker_id: each for each in (worker, other)}
    (held_by,) = Worker.objects.running(connection=queue.session)
    (asked,) = [
        line for line in registered(queue) if any(child.worker_id == held_by for child in line.children)
    ]
    assert Worker.objects.ask_to_stop(asked.worker_id, by="boss", connection=queue.session)
    assert not Worker.objects.ask_to_stop(asked.worker_id, by="boss", connection=queue.session), "twice"
    stopping = lines.pop(asked.worker_id)
    assert next(line for line in registered(queue) if line.pid == stopping.pid).state == STOPPING
    stopping.wait_end(0)
    assert queue.outcomes(job) == ["succeeded"]
    assert [line.worker_id for line in registered(queue)] == list(lines)


def test_a_worker_that_was_killed_is_seen_to_be_dead(queue: Queue, start: Workers) -> None:
    worker = start(*BEAT)
    line_of(queue, worker.pid)
    worker.kill()
    wait_until(lambda: [line.state for line in registered(queue)] == [DEAD], 10.0, "still taken for alive")


def test_a_new_keeper_takes_over_the_line_of_the_old_one(queue: Queue, start: Workers) -> None:
    worker = start(*BEAT)
    before = line_of(queue, worker.pid)
    worker.kill_process(worker.keeper, signal.SIGKILL)
    wait_until(
        lambda: (
            [line.pid for line in registered(queue) if line.worker_id != before.worker_id] == [worker.pid]
        ),
        10.0,
        "the new keeper did not register",
    )
    (after,) = registered(queue)
    assert after.started_ago >= before.started_ago


def test_workers_go_on_without_a_registry(queue: Queue, start: Workers) -> None:
    """Rescue, renewal and work know nothing of it. (C03)"""
    queue.session.execute("ALTER TABLE django_pgqueue_worker RENAME TO django_pgqueue_worker_away")
    try:
        start(*BEAT, "--processes", 1).wait_for("child_started")
        job = queue.enqueue(tasks.sleep, 3)
        queue.wait(job, "succeeded", timeout=10.0)
        assert queue.outcomes(job) == ["succeeded"]
    finally:
        queue.session.execute("ALTER TABLE django_pgqueue_worker_away RENAME TO django_pgqueue_worker")


def test_two_workers_count_every_attempt_once(queue: Queue, start: Workers) -> None:
    start(*BEAT), start(*BEAT)
    queue.wait(queue.enqueue_many(tasks.ok, [()] * 200), "succeeded", timeout=20.0)

    total = "SELECT sum(succeeded)::int FROM django_pgqueue_rollup WHERE span = 60"
    wait_until(lambda: (queue.value(total) or 0) >= 200, 30.0, "not all were counted")
    assert queue.value(total) == queue.value("SELECT count(*) FROM django_pgqueue_attempt")


def test_a_pause_holds_from_the_next_claim_on_and_ends_with_a_resume(queue: Queue, start: Workers) -> None:
    start(*BEAT).wait_for("child_started")
    queue.wait(queue.enqueue(tasks.ok), "succeeded")
    QueuePause.objects.pause("default", by="anna", connection=queue.session)
    try:
        jobs = queue.enqueue_many(tasks.ok, [()] * 5)
        queue.notify(["default"])
        other = queue.enqueue(tasks.sleep, 1.0, queue="default")
        # Five polls long nothing is taken.
        later = queue.value("SELECT clock_timestamp() + interval '1 s'")
        wait_until(lambda: queue.value("SELECT clock_timestamp() > %s", [later]), 10.0)
        assert set(queue.statuses([*jobs, other]).values()) == {"ready"}
    finally:
        QueuePause.objects.resume("default", connection=queue.session)
    queue.notify(["default"])
    queue.wait([*jobs, other], "succeeded")
