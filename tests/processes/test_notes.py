"""The end of the log and the SQL of an attempt, with real workers, whatever the task and however it ends."""

from typing import Any

import pytest

from ..pages import blocks
from . import noted_tasks as tasks
from .conftest import Workers
from .queue import Queue

pytestmark = pytest.mark.process

AT_INFO = {"version": 1, "disable_existing_loggers": False, "root": {"level": "INFO"}}


def begin(start: Workers, *arguments: Any, **options: Any) -> Any:
    """Start a worker that lets INFO through."""
    return start("--poll", 0.05, *arguments, LOGGING=AT_INFO, **options)


def log_of(queue: Queue, job: int) -> list[str]:
    """Return the noted lines of a job's only attempt, without their times."""
    return [line.partition(" ")[2] for line in queue.attempt(job).log_tail.splitlines()]


STATUS = {"succeeded": "succeeded", "failed": "dead", "snoozed": "scheduled", "cancelled": "cancelled"}


@pytest.mark.parametrize("task", [tasks.say, tasks.say_atomically, tasks.say_in_a_coroutine])
def test_the_log_is_stored_however_the_attempt_ends(queue: Queue, start: Workers, task: Any) -> None:
    begin(start)
    jobs = {end: queue.enqueue(task, end, max_attempts=1) for end in STATUS}
    for end, status in STATUS.items():
        queue.wait(jobs[end], status)
    found = {end: (queue.attempt(job).outcome, log_of(queue, job)) for end, job in jobs.items()}
    said = {end: [f"INFO tests.noted: job {job} will have {end}"] for end, job in jobs.items()}
    assert found == {end: (end, said[end]) for end in STATUS}


def test_of_an_attempt_that_is_handed_back_the_log_is_stored(queue: Queue, start: Workers) -> None:
    worker = begin(start, "--grace", 0.2)
    job = queue.enqueue(tasks.say_and_wait, 60.0)
    queue.wait_started(job)
    worker.stop()
    assert (queue.attempt(job).outcome, log_of(queue, job)) == (
        "released",
        [f"INFO tests.noted: job {job} waits"],
    )


def test_of_an_attempt_that_runs_too_long_the_log_is_stored(queue: Queue, start: Workers) -> None:
    begin(start)
    job = queue.enqueue(tasks.say_and_wait, 60.0, timeout=0.3, max_attempts=1)
    queue.wait(job, "dead")
    assert queue.attempt(job).exception_class == "django_pgqueue.exceptions.TaskTimeout"
    assert log_of(queue, job) == [f"INFO tests.noted: job {job} waits"]


def test_of_an_attempt_that_was_lost_nothing_is_known(queue: Queue, start: Workers) -> None:
    begin(start)
    job = queue.enqueue(tasks.say, "lost", max_attempts=1)
    queue.wait(job, "dead")
    attempt = queue.attempt(job)
    assert (attempt.outcome, attempt.log_tail, attempt.sql_queries, attempt.sql_seconds) == (
        "lost",
        "",
        None,
        None,
    )


def test_jobs_that_run_side_by_side_have_their_own_lines(queue: Queue, start: Workers) -> None:
    begin(start, "--threads", 4)
    jobs = queue.enqueue_many(tasks.say_much, [()] * 8)
    jobs += queue.enqueue_many(tasks.say_much_in_a_coroutine, [()] * 8)
    queue.wait(jobs, "succeeded")
    for job in jobs:
        expected = [f"INFO tests.noted: job {job} line {number}" for number in range(tasks.LINES)]
        assert log_of(queue, job) == expected


def test_a_thread_of_the_tasks_own_is_not_heard(queue: Queue, start: Workers) -> None:
    begin(start)
    job = queue.enqueue(tasks.say_in_a_thread)
    queue.wait(job, "succeeded")
    assert queue.attempt(job).log_tail == ""


def test_a_gigabyte_of_lines_takes_no_memory(queue: Queue, start: Workers) -> None:
    begin(start)
    job = queue.enqueue(tasks.flood, 20_000, 50_000)
    queue.wait(job, "succeeded", timeout=60.0)
    attempt = queue.attempt(job)
    assert attempt.return_value < 20, "megabytes"
    assert 8_000 < len(attempt.log_tail) <= 16_384
    assert "INFO tests.noted: 19999 xxx" in attempt.log_tail


def test_it_can_be_switched_off(queue: Queue, start: Workers) -> None:
    begin(start, TASKS={"default": {"OPTIONS": {"log_tail_bytes": 0}}})
    jobs = [queue.enqueue(tasks.say, "succeeded"), queue.enqueue(tasks.ask, 3)]
    queue.wait(jobs, "succeeded")
    assert [(queue.attempt(job).log_tail, queue.attempt(job).sql_queries) for job in jobs] == [
        ("", None),
        ("", 3),
    ]


def test_a_floor_can_be_set(queue: Queue, start: Workers) -> None:
    begin(start, TASKS={"default": {"OPTIONS": {"log_tail_level": "WARNING"}}})
    job = queue.enqueue(tasks.say, "succeeded")
    queue.wait(job, "succeeded")
    assert queue.attempt(job).log_tail == ""


# --- SQL


@pytest.mark.parametrize("task", [tasks.ask, tasks.ask_atomically, tasks.ask_in_a_coroutine])
@pytest.mark.parametrize("max_age", [0, 60])
def test_the_tasks_own_statements_are_counted(queue: Queue, start: Workers, task: Any, max_age: int) -> None:
    """And none of the queue's: neither of an atomic task's completion nor of what is cleaned up after it."""
    begin(start, DATABASES={"default": {"CONN_MAX_AGE": max_age}})
    jobs = [queue.enqueue(task, times) for times in (0, 1, 7, 7)]
    queue.wait(jobs, "succeeded")
    assert [queue.attempt(job).sql_queries for job in jobs] == [None, 1, 7, 7]
    assert all(0 < queue.attempt(job).sql_seconds < 10 for job in jobs[1:])
    assert queue.attempt(jobs[0]).sql_seconds is None


def test_the_time_of_statements_is_measured(queue: Queue, start: Workers) -> None:
    begin(start)
    job = queue.enqueue(tasks.ask_slowly, 0.3)
    queue.wait(job, "succeeded")
    assert 0.3 <= queue.attempt(job).sql_seconds < 5


# --- the project's own log


def test_the_lines_of_a_project_name_the_job(queue: Queue, start: Workers) -> None:
    """With the filter in LOGGING, as the documentation shows it."""
    (block,) = blocks("logging")
    shown: dict[str, Any] = {}
    exec(block.compiled(), shown)
    worker = start("--poll", 0.05, LOGGING=shown["LOGGING"])
    job = queue.enqueue(tasks.say, "failed", max_attempts=1)
    queue.wait(job, "dead")
    named = f"job={job} task={tasks.say.module_path} queue=default attempt=1\n"
    assert f"INFO job {job} will have failed {named}" in worker.text
    assert f"state=RUNNING {named}" in worker.text, "Django's own line"
    assert f'message="failed as asked" {named}' in worker.text, "the queue's own line"
    assert "queues=default,other,emails job= task= queue= attempt=\n" in worker.text
