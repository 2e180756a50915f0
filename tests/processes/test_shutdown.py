"""Stopping: what runs may finish, what cannot goes back at once, nothing new is taken, nobody stays."""

import signal

import pytest

from ..waiting import wait_until
from . import tasks
from .conftest import Workers
from .queue import Queue

pytestmark = pytest.mark.process

# With a lease this long nothing is ever freed by expiry within a test.
LONG = ("--lease", 60, "--heartbeat", 10, "--poll", 0.1)


def test_jobs_finish_within_the_grace_and_nothing_new_begins(queue: Queue, start: Workers) -> None:
    worker = start(*LONG, "--threads", 2, "--grace", 20)
    running = queue.enqueue_many(tasks.sleep, [(1.5,), (1.5,)])
    for job in running:
        queue.wait_started(job)
    waiting = queue.enqueue_many(tasks.mark, [()] * 5)
    worker.signal(signal.SIGTERM)
    worker.wait_for("stopping")
    late = queue.enqueue(tasks.mark)
    worker.wait_end(0)
    assert set(queue.statuses(running).values()) == {"succeeded"}
    for job in [*waiting, late]:
        assert queue.status(job) == "ready"
        assert queue.attempts(job) == []
    assert queue.state(late).lease_version == 0
    assert not [e for e in worker.events() if e.level in ("WARNING", "ERROR", "CRITICAL")]


def test_a_job_longer_than_the_grace_goes_back_and_runs_elsewhere_at_once(
    queue: Queue, start: Workers
) -> None:
    worker = start(*LONG, "--grace", 1)
    job = queue.enqueue(tasks.tick, 60, 0.2, max_attempts=1)
    queue.wait_started(job)
    start(*LONG)
    assert worker.stop() < 1 + 2
    queue.wait(job, "succeeded", timeout=5.0)
    assert queue.outcomes(job) == ["released", "succeeded"]
    assert "interrupted" in queue.attempts(job)[0].message
    here, there = queue.executions(job)
    assert there.began > here.ended - 0.05, "both ran at once"
    assert worker.events("interrupted")


def test_a_second_signal_ends_the_worker_now(queue: Queue, start: Workers) -> None:
    worker = start(*LONG, "--grace", 60)
    job = queue.enqueue(tasks.sleep, 60, max_attempts=1)
    queue.wait_started(job)
    worker.signal(signal.SIGTERM)
    worker.wait_for("stopping")
    worker.signal(signal.SIGINT)
    worker.wait_end(0, timeout=3.0)
    assert queue.status(job) == "ready"
    assert queue.outcomes(job) == ["released"]
    assert "Traceback" not in worker.text


def test_ctrl_c_reaches_all_processes_and_ends_them_in_order(queue: Queue, start: Workers) -> None:
    worker = start(*LONG, "--processes", 2, "--grace", 20)
    jobs = queue.enqueue_many(tasks.sleep, [(1,)] * 2)
    for job in jobs:
        queue.wait_started(job)
    worker.signal_all(signal.SIGINT)
    worker.wait_end(0)
    assert set(queue.statuses(jobs).values()) == {"succeeded"}
    assert "Traceback" not in worker.text
    assert "KeyboardInterrupt" not in worker.text


def test_bursts_of_signals_leave_no_traceback(queue: Queue, start: Workers) -> None:
    worker = start(*LONG, "--processes", 2, "--grace", 20)
    jobs = queue.enqueue_many(tasks.sleep, [(30,)] * 4)
    for job in jobs:
        queue.wait_started(job)
    for _ in range(2):  # signals of one burst may arrive as one
        for _ in range(5):
            worker.signal_all(signal.SIGTERM)
        worker.wait_for("stopping")
    worker.wait_end(0, timeout=5.0)
    assert set(queue.statuses(jobs).values()) == {"ready"}
    assert "Traceback" not in worker.text


def test_a_signal_is_heard_in_a_long_sleep(queue: Queue, start: Workers) -> None:
    worker = start("--lease", 200, "--heartbeat", 60, "--poll", 60, "--no-notify")
    assert worker.stop(timeout=5.0) < 1.5


def test_a_signal_is_heard_while_the_worker_starts(queue: Queue, start: Workers) -> None:
    worker = start(*LONG, "--processes", 3, wait=False)
    worker.wait_for("worker_started", timeout=30.0)
    worker.stop(timeout=10.0)


def test_a_child_that_is_told_to_stop_finishes_and_is_replaced(queue: Queue, start: Workers) -> None:
    worker = start(*LONG)
    job = queue.enqueue(tasks.sleep, 1)
    child = queue.wait_started(job)[0].pid
    worker.kill_process(child, signal.SIGTERM)
    queue.wait(job, "succeeded")
    worker.wait_for("child_started", count=2)
    queue.wait(queue.enqueue(tasks.ok), "succeeded")
    assert child not in worker.children
    assert not worker.events("child_died")


def test_children_end_after_their_supervisor(queue: Queue, start: Workers) -> None:
    worker = start(*LONG, "--processes", 2, "--threads", 2, "--grace", 2)
    short = queue.enqueue_many(tasks.sleep, [(1,)] * 2)
    long = queue.enqueue_many(tasks.sleep, [(60,)] * 2, max_attempts=1)
    for job in [*short, *long]:
        queue.wait_started(job)
    waiting = queue.enqueue(tasks.mark)
    worker.kill_process(worker.pid)
    wait_until(lambda: not worker.processes, 8.0, "somebody outlived the supervisor")
    worker.close()
    assert set(queue.statuses(short).values()) == {"succeeded"}
    assert set(queue.statuses(long).values()) == {"ready"}
    assert [queue.outcomes(job) for job in long] == [["released"], ["released"]]
    assert queue.attempts(waiting) == []
    assert worker.events("supervisor_gone")


def test_the_keeper_gives_back_what_an_orphan_held_that_was_killed(queue: Queue, start: Workers) -> None:
    worker = start(*LONG, "--grace", 20)
    job = queue.enqueue(tasks.sleep, 60, max_attempts=2)
    child = queue.wait_started(job)[0].pid
    worker.kill_process(worker.pid)
    worker.wait_for("supervisor_gone")
    worker.kill_process(child)
    wait_until(lambda: not worker.processes, 8.0, "the keeper stayed for ever")
    worker.close()
    assert queue.outcomes(job) == ["lost"]
    assert queue.status(job) in ("scheduled", "ready")
