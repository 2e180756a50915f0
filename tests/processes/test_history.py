"""What a later attempt is told of the earlier ones, whichever claim it comes from."""

import pytest

from . import tasks
from .conftest import Workers
from .queue import Queue
from .worker import Worker

pytestmark = pytest.mark.process


def assert_told(queue: Queue, job: int) -> None:
    attempts = queue.attempts(job)
    assert [attempt.outcome for attempt in attempts] == ["failed", "failed", "succeeded"]
    assert attempts[-1].return_value == {
        "attempts": 3,
        "workers": [attempt.worker_id for attempt in attempts],
        "errors": ["ValueError: attempt 1", "ValueError: attempt 2"],
    }


def test_an_attempt_is_told_of_those_before_it(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.tell_history)
    queue.wait(job, "succeeded")
    assert_told(queue, job)


def test_so_is_one_that_a_draining_worker_claims_last(queue: Queue, start: Workers) -> None:
    job = queue.enqueue(tasks.tell_history)
    while queue.status(job) != "succeeded":
        start("--drain", wait=False).wait_end(0)
        assert queue.status(job) in ("succeeded", "scheduled")
    assert_told(queue, job)
