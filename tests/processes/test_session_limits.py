"""Time limits that an administrator sets hold for atomic tasks, charge their attempts, and are named."""

from typing import Any

import pytest

from . import atomic_tasks
from .conftest import Workers
from .queue import Queue

pytestmark = pytest.mark.process

IDLE, WHOLE, STATEMENT = "idle_in_transaction_session_timeout", "transaction_timeout", "statement_timeout"
LIMITS = [(IDLE, False), (WHOLE, False), (WHOLE, True), (STATEMENT, True)]


def limited(queue: Queue, name: str) -> dict[str, Any]:
    """Return settings under which every session of the project has this limit."""
    if not queue.value("SELECT count(*) FROM pg_settings WHERE name = %s", [name]):
        pytest.skip(f"this server does not know {name}")
    return {"DATABASES": {"default": {"OPTIONS": {"options": f"-c {name}=400ms"}}}}


def written(queue: Queue, job: int) -> int:
    return queue.value("SELECT count(*) FROM auth_group WHERE name ~ %s", [f"^compute {job} "])


@pytest.mark.parametrize(("name", "busy"), LIMITS)
def test_a_limit_ends_the_attempt_and_nothing_is_written(
    queue: Queue, start: Workers, name: str, busy: bool
) -> None:
    worker = start("--poll", 0.05, **limited(queue, name))
    job = queue.enqueue(atomic_tasks.compute, 1.2, "", busy, max_attempts=2)
    queue.wait(job, "dead", timeout=30.0)
    assert (queue.outcomes(job), written(queue, job)) == (["failed", "failed"], 0)
    attempt = queue.attempts(job)[0]
    if name == STATEMENT:
        assert "statement timeout" in attempt.message
    else:
        assert f"by {name}. Nothing was written." in attempt.traceback
        assert f"SET LOCAL {name} = 0" in attempt.traceback
    assert worker.events("child_died") == []


@pytest.mark.parametrize(("name", "busy"), LIMITS)
def test_a_task_may_lift_a_limit_for_its_own_transaction(
    queue: Queue, start: Workers, name: str, busy: bool
) -> None:
    start("--poll", 0.05, **limited(queue, name))
    job = queue.enqueue(atomic_tasks.compute, 1.2, name, busy, max_attempts=1)
    queue.wait(job, "succeeded", timeout=30.0)
    assert written(queue, job) == 1
    queue.session.execute("DELETE FROM auth_group WHERE name ~ '^compute '")
