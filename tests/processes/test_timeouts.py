"""Timeouts of functions: stopped inside where Python code runs, else the process is replaced."""

import pytest

from . import atomic_tasks, tasks
from .conftest import Workers
from .queue import Queue
from .worker import Worker

pytestmark = pytest.mark.process


def test_python_code_is_stopped_inside(queue: Queue, worker: Worker) -> None:
    child = worker.child
    job = queue.enqueue(tasks.loop_for, 30, timeout=0.3, max_attempts=2)
    queue.wait(job, "dead")
    assert queue.outcomes(job) == ["failed", "failed"]
    for attempt, execution in zip(queue.attempts(job), queue.executions(job), strict=True):
        assert attempt.exception_class == "django_pgqueue.exceptions.TaskTimeout"
        assert "0.3 s" in attempt.message
        assert "loop_for" in attempt.traceback
        assert execution.ended is not None, "its finally did not run"
        assert execution.ended - execution.began < 2.0
    assert worker.child == child


def test_jobs_that_end_near_their_timeout_end_once_and_harm_nobody(queue: Queue, worker: Worker) -> None:
    child = worker.child
    jobs = queue.enqueue_many(
        tasks.loop_for, [(0.18 + n / 500,) for n in range(40)], timeout=0.25, max_attempts=1
    )
    after = queue.enqueue_many(tasks.loop_for, [(0.05,)] * 20, max_attempts=1)
    queue.wait([*jobs, *after], timeout=30.0)
    assert set(queue.statuses(after).values()) == {"succeeded"}, "a late timeout hit another job"
    assert {len(queue.outcomes(job)) for job in jobs} == {1}
    assert worker.child == child


def test_a_blocking_call_costs_the_process_but_not_the_slot(queue: Queue, start: Workers) -> None:
    """A read of a silent socket, and a call that holds the interpreter."""
    worker = start("--threads", 2, "--poll", 0.05, "--lease", 30, "--heartbeat", 5, startup="impatient")
    blocked = queue.enqueue_many(tasks.read_silent_socket, [()] * 2, timeout=0.5, max_attempts=1)
    for job in blocked:
        queue.wait_started(job)
    child = worker.child
    behind = queue.enqueue_many(tasks.ok, [()] * 5, max_attempts=1)
    queue.wait([*blocked, *behind])
    for job in blocked:
        attempt = queue.attempt(job)
        assert (attempt.outcome, attempt.exception_class) == ("lost", "django_pgqueue.exceptions.WorkerDied")
        assert "timeout" in attempt.message
    assert set(queue.statuses(behind).values()) == {"succeeded"}
    (killing,) = worker.events("killing_child")
    assert killing.fields["pid"] == str(child)
    held = queue.enqueue(tasks.hold_interpreter, 20, timeout=0.5, max_attempts=1)
    queue.wait(held, "dead", timeout=8.0)
    assert queue.outcomes(held) == ["lost"]


def test_a_task_that_takes_no_notice_costs_the_process(queue: Queue, start: Workers) -> None:
    worker = start("--threads", 2, "--poll", 0.05, startup="impatient")
    child = worker.child
    job = queue.enqueue(tasks.go_on, 30, timeout=0.3, max_attempts=1)
    queue.wait(job, "dead", timeout=15.0)
    attempt = queue.attempt(job)
    assert (attempt.outcome, attempt.exception_class) == ("lost", "django_pgqueue.exceptions.WorkerDied")
    assert "timeout" in attempt.message
    assert worker.child != child


def test_an_atomic_task_past_its_timeout_is_rolled_back(queue: Queue, worker: Worker) -> None:
    child = worker.child
    job = queue.enqueue(atomic_tasks.write_and_loop, 30, timeout=0.3, max_attempts=1)
    queue.wait(job, "dead")
    assert queue.attempt(job).exception_class == "django_pgqueue.exceptions.TaskTimeout"
    assert queue.fetch("SELECT name FROM auth_group WHERE name LIKE %s", ["loop %"]) == []
    assert worker.child == child
