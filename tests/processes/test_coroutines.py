"""Coroutine tasks: many at once on one loop, each with its own database connection, stoppable."""

import asyncio

import pytest

from ..waiting import wait_for
from . import tasks
from .conftest import Workers
from .queue import Queue
from .worker import Worker

pytestmark = pytest.mark.process


def span(queue: Queue, jobs: list[int]) -> float:
    """Return the seconds from the first start to the last end of these jobs."""
    attempts = [queue.attempt(job) for job in jobs]
    return (max(a.finished_at for a in attempts) - min(a.started_at for a in attempts)).total_seconds()


def test_coroutines_wait_together(queue: Queue, worker: Worker) -> None:
    jobs = queue.enqueue_many(tasks.asleep, [(1.0,)] * 20)
    queue.wait(jobs, "succeeded")
    assert span(queue, jobs) < 4.0, "twenty in a row on four threads would take five"
    assert len({queue.attempt(job).return_value for job in jobs}) == 1, "more than one thread ran the loop"


def test_coroutines_do_not_keep_threads_from_functions(queue: Queue, worker: Worker) -> None:
    waiting = queue.enqueue_many(tasks.asleep, [(2.0,)] * 8)
    queue.wait(waiting, "running")
    behind = queue.enqueue_many(tasks.ok, [()] * 8)
    queue.wait(behind, "succeeded", timeout=5.0)
    assert set(queue.statuses(waiting).values()) == {"running"}
    queue.wait(waiting, "succeeded")


def test_each_coroutine_has_its_own_database_connection(queue: Queue, worker: Worker) -> None:
    jobs = queue.enqueue_many(tasks.query_on_the_loop, [(0.5,)] * 6)
    queue.wait(jobs, "succeeded")
    assert len({queue.attempt(job).return_value for job in jobs}) == 6
    assert span(queue, jobs) < 2.5, "six in a row would take three"


def test_connections_of_coroutines_are_closed(queue: Queue, worker: Worker) -> None:
    count = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name NOT LIKE 'django_pgqueue%%'"
    )
    before = queue.value(count, [])
    queue.wait(queue.enqueue_many(tasks.use_async_orm, [(f"group {n}",) for n in range(30)]), "succeeded")
    assert queue.value(count, []) <= before + 1


def test_errors_of_coroutines_are_failures(queue: Queue, worker: Worker) -> None:
    child = worker.child
    plain = queue.enqueue(tasks.fail_on_the_loop, max_attempts=2)
    bases = {name: queue.enqueue(tasks.raise_base_on_the_loop, name, max_attempts=1) for name in tasks.BASE}
    queue.wait([plain, *bases.values()], "dead")
    assert queue.outcomes(plain) == ["failed", "failed"]
    assert "fail_on_the_loop" in queue.attempts(plain)[0].traceback
    for name, job in bases.items():
        cls = type(tasks.BASE[name]())
        assert queue.attempt(job).exception_class == f"{cls.__module__}.{cls.__qualname__}"
    assert worker.child == child
    assert asyncio.CancelledError.__module__ == "asyncio.exceptions"


def test_a_coroutine_past_its_timeout_is_cancelled(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.asleep_recorded, 30, timeout=0.5, max_attempts=2)
    neighbour = queue.enqueue(tasks.asleep, 2.0)
    queue.wait([job, neighbour])
    assert queue.outcomes(job) == ["failed", "failed"]
    assert queue.outcomes(neighbour) == ["succeeded"]
    attempt = queue.attempts(job)[0]
    assert attempt.exception_class == "django_pgqueue.exceptions.TaskTimeout"
    assert "0.5 s" in attempt.message
    assert all(execution.ended for execution in queue.executions(job)), "its finally did not run"


def test_a_running_coroutine_can_be_cancelled(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.asleep_attentively, 30)
    queue.wait(job, "running")
    assert queue.cancel(job).requested == [job]
    queue.wait(job, "cancelled", timeout=5.0)


def test_a_coroutine_that_will_not_stop_ends_as_timed_out(queue: Queue, start: Workers) -> None:
    start("--poll", 0.05, "--lease", 30, "--heartbeat", 5, startup="impatient")
    job = queue.enqueue(tasks.asleep_stubbornly, 6, timeout=0.3, max_attempts=1)
    behind = queue.enqueue(tasks.asleep, 0.1)
    queue.wait([job, behind], timeout=10.0)
    assert queue.status(job) == "dead"
    assert queue.status(behind) == "succeeded"
    assert "timeout" in queue.attempt(job).message


def test_the_number_of_coroutines_is_bounded(queue: Queue, start: Workers) -> None:
    start("--poll", 0.05, TASKS={"default": {"OPTIONS": {"coroutines": 3}}})
    jobs = queue.enqueue_many(tasks.asleep_recorded, [(0.3,)] * 12)
    queue.wait(jobs, "succeeded")
    changes = sorted(
        [(e.began, 1) for e in queue.executions()] + [(e.ended or 0.0, -1) for e in queue.executions()]
    )
    running = peak = 0
    for _, change in changes:
        running += change
        peak = max(peak, running)
    assert peak <= 3


def test_coroutines_that_wait_for_a_place_keep_no_thread(queue: Queue, start: Workers) -> None:
    start("--poll", 0.05, "--threads", 2, TASKS={"default": {"OPTIONS": {"coroutines": 2}}})
    long = queue.enqueue_many(tasks.asleep, [(4.0,)] * 2)
    queue.wait(long, "running")
    waiting = queue.enqueue_many(tasks.asleep, [(0.1,)] * 2, max_attempts=1)
    functions = queue.enqueue_many(tasks.ok, [()] * 4)
    queue.wait(functions, "succeeded")
    assert set(queue.statuses(long).values()) == {"running"}, "the functions waited for the coroutines"
    queue.wait([*long, *waiting], "succeeded")
    assert [queue.outcomes(job) for job in waiting] == [["succeeded"]] * 2


def test_coroutines_finish_within_the_grace_or_go_back(queue: Queue, start: Workers) -> None:
    worker = start("--poll", 0.05, "--lease", 60, "--heartbeat", 10, "--grace", 2)
    short = queue.enqueue(tasks.asleep_recorded, 1.0)
    long = queue.enqueue(tasks.asleep_recorded, 60, max_attempts=1)
    for job in (short, long):
        queue.wait_started(job)
    assert worker.stop() < 4.0
    assert queue.outcomes(short) == ["succeeded"]
    assert (queue.status(long), queue.outcomes(long)) == ("ready", ["released"])


def test_a_task_that_stops_the_loop_stops_nobodys_work(queue: Queue, start: Workers) -> None:
    start("--threads", 2)
    stopped = queue.enqueue(tasks.stop_the_loop)
    others = queue.enqueue_many(tasks.asleep, [(0.01,)] * 5)
    queue.wait([stopped, *others], "succeeded")


def test_coroutines_that_a_blocked_loop_never_reached_are_not_charged(queue: Queue, start: Workers) -> None:
    worker = start("--threads", 2, "--lease", 2, "--heartbeat", 0.5, "--poll", 0.2)
    blocking = queue.enqueue(tasks.block_the_loop, 60, max_attempts=1, timeout=0.5)
    queue.wait(blocking, "running")
    wait_for(0.3)
    behind = queue.enqueue_many(tasks.asleep, [(0.01,)] * 3, max_attempts=1)
    queue.wait(blocking, "dead", timeout=30.0)
    queue.wait(behind, "succeeded", timeout=30.0)
    assert worker.events("killing_child")
    for job in behind:
        assert [outcome for outcome in queue.outcomes(job) if outcome != "released"] == ["succeeded"]
