"""What a failed, snoozed or cancelled attempt leads to: the task's own words, its policy, its budget."""

import random
import statistics
from typing import Any

import pytest

from ..waiting import wait_until
from . import tasks
from .queue import Queue
from .worker import Worker

pytestmark = pytest.mark.process


def due_in(queue: Queue, job: int) -> float:
    """Return the seconds between the end of the job's last attempt and its next one."""
    queue.wait(job, "scheduled")
    return (queue.state(job).run_at - queue.attempts(job)[-1].finished_at).total_seconds()


def test_a_task_names_the_delay_of_its_retry(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.ask_for_retry, 100, max_attempts=2)
    assert due_in(queue, job) == pytest.approx(100, abs=1)
    assert queue.attempt(job).outcome == "failed"
    queue.promote(job)
    queue.wait(job, "succeeded")
    assert queue.outcomes(job) == ["failed", "succeeded"]


def test_a_retry_without_a_delay_follows_the_policy_and_the_budget(queue: Queue, worker: Worker) -> None:
    again = queue.enqueue(tasks.ask_for_retry, None, max_attempts=2)
    spent = queue.enqueue(tasks.ask_for_retry, None, max_attempts=1)
    queue.wait([again, spent])
    assert queue.outcomes(again) == ["failed", "succeeded"]
    assert (queue.status(spent), queue.outcomes(spent)) == ("dead", ["failed"])


def test_a_snooze_costs_nothing(queue: Queue, worker: Worker) -> None:
    long = queue.enqueue(tasks.ask_to_snooze, 1, 100, max_attempts=1)
    often = queue.enqueue(tasks.ask_to_snooze, 4, 0, max_attempts=1)
    queue.wait(often, "succeeded")
    assert queue.outcomes(often) == ["snoozed"] * 4 + ["succeeded"]
    assert queue.attempts(often)[-1].return_value == 5
    assert due_in(queue, long) == pytest.approx(100, abs=1)


def test_a_task_cancels_its_own_job(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.ask_to_cancel, "nobody wants it", max_attempts=5)
    queue.wait(job, "cancelled")
    attempt = queue.attempt(job)
    assert (attempt.outcome, attempt.message) == ("cancelled", "nobody wants it")


@pytest.mark.parametrize(
    ("task", "args", "low", "high"),
    [
        (tasks.fail_with_policy, (), 0, 1),
        (tasks.fail_with_callable, ("value",), 3, 3),
        (tasks.fail_with_callable, ("key",), 50, 100),
        (tasks.fail_with_broken_callable, (), 50, 100),
    ],
    ids=["policy", "callable", "callable says None", "callable raises"],
)
def test_the_delay_comes_from_the_task(
    queue: Queue, worker: Worker, task: Any, args: tuple[Any, ...], low: float, high: float
) -> None:
    """The job's own policy, where the task has no word: up to 100 s, and over 50 s in half of the cases."""
    delays: list[float] = []

    def found() -> bool:
        job = queue.enqueue(task, *args, backoff_base=100, backoff_cap=100)
        delays.append(due_in(queue, job))
        return low - 0.5 <= delays[-1] <= high + 0.5

    wait_until(found, 10.0, f"{delays}")


def test_a_broken_backoff_is_told_in_the_traceback(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.fail_with_broken_callable, backoff_base=100, backoff_cap=100)
    queue.wait(job, "scheduled")
    attempt = queue.attempt(job)
    assert attempt.exception_class == "builtins.ValueError"
    assert "the task's backoff raised" in attempt.traceback


@pytest.mark.parametrize(
    ("task", "kind", "attempts"),
    [
        (tasks.fail_discarding_lookups, "key", 1),
        (tasks.fail_discarding_lookups, "value", 3),
        (tasks.fail_retrying_connections, "value", 1),
        (tasks.fail_retrying_connections, "reset", 3),
    ],
)
def test_only_errors_worth_a_retry_are_retried(
    queue: Queue, worker: Worker, task: Any, kind: str, attempts: int
) -> None:
    job = queue.enqueue(task, kind, max_attempts=3)
    queue.wait(job, "dead")
    assert queue.outcomes(job) == ["failed"] * attempts


def test_jobs_that_fail_together_do_not_come_back_together(queue: Queue, worker: Worker) -> None:
    jobs = queue.enqueue_many(tasks.fail, [()] * 300, backoff_base=9000, backoff_cap=9000)
    queue.wait(jobs, "scheduled", timeout=30.0)
    delays = [due_in(queue, job) for job in jobs]
    assert min(delays) >= -0.1
    assert max(delays) <= 9000.1
    assert statistics.stdev(delays) > 2000, "full jitter has 2600"
    assert max(delays) - min(delays) > 8000


# --- cancelling


def test_a_cancelled_job_never_starts_and_a_started_one_ends_once(queue: Queue, worker: Worker) -> None:
    """Two hundred jobs, cancelled while the worker takes, runs and ends them."""
    jobs = queue.enqueue_many(tasks.mark, [()] * 200, max_attempts=5)
    order = jobs[:]
    random.Random(3).shuffle(order[100:])
    reports = {job: queue.cancel(job) for job in order}
    queue.wait(jobs)
    for job, report in reports.items():
        if report.cancelled:
            assert queue.status(job) == "cancelled"
            assert queue.executions(job) == []
        elif report.requested:
            assert queue.status(job) in ("succeeded", "cancelled")
            assert len(queue.executions(job)) <= 1
        else:
            assert report.skipped == [job]
            assert queue.outcomes(job) == ["succeeded"]


def test_a_running_job_that_listens_is_cancelled_soon(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.sleep_attentively, 30, max_attempts=5)
    queue.wait_started(job)
    assert queue.cancel(job).requested == [job]
    queue.wait(job, "cancelled", timeout=5.0)
    assert queue.executions(job)[0].note == "Cancel"
    assert queue.outcomes(job) == ["cancelled"]


def test_a_running_job_that_was_cancelled_is_not_retried(queue: Queue, worker: Worker) -> None:
    failing = queue.enqueue(tasks.sleep, 1, kwargs={"raises_at": 1}, max_attempts=5)
    finishing = queue.enqueue(tasks.sleep, 1, max_attempts=5)
    for job in (failing, finishing):
        queue.wait_started(job)
        assert queue.cancel(job).requested == [job]
    queue.wait([failing, finishing])
    assert (queue.status(failing), queue.outcomes(failing)) == ("cancelled", ["failed"])
    assert (queue.status(finishing), queue.outcomes(finishing)) == ("succeeded", ["succeeded"])


def test_a_job_that_waits_for_its_retry_can_be_cancelled(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.fail, max_attempts=5, backoff_base=100, backoff_cap=100)
    queue.wait(job, "scheduled")
    assert queue.cancel(job).cancelled == [job]
    assert queue.status(job) == "cancelled"
