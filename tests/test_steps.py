"""Steps: recorded once, behind the fence, for good; and what comes back of them."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import psycopg
import pytest

from django_pgqueue import sql, states, testing
from django_pgqueue.durable import JobStep
from django_pgqueue.exceptions import DirectWrite
from django_pgqueue.execution import JobContext
from django_pgqueue.models import Job
from django_pgqueue.tasks import task

from .support import OVER, assert_invariants, claim, fetch, make, running, settle_one, status_of

pytestmark = pytest.mark.django_db

calls: list[Any] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    calls.clear()


def rows(job_id: int) -> list[tuple[str, Any, int]]:
    found = JobStep.objects.filter(job_id=job_id).order_by("name")
    return [(step.name, step.result, step.lease_version) for step in found]


# --- the verb


def test_a_step_is_recorded_once() -> None:
    (job,) = running()
    assert JobStep.objects.record(job.fence, "charge", '{"id": 7}') == "recorded"
    assert JobStep.objects.record(job.fence, "charge", '{"id": 8}') == "known"
    assert JobStep.objects.record(job.fence, "mail", "null") == "recorded"
    assert JobStep.objects.recorded(job.job_id) == {"charge": {"id": 7}, "mail": None}
    assert rows(job.job_id) == [("charge", {"id": 7}, 1), ("mail", None, 1)]


@pytest.mark.parametrize("status", [status for status in states.STATUSES if status != states.RUNNING])
def test_nobody_records_steps_of_a_job_that_he_does_not_hold(status: str) -> None:
    fence = make(status).fence
    assert JobStep.objects.record(fence, "charge", "1") == "lost"
    assert rows(fence.job_id) == []


@pytest.mark.parametrize(
    "wrong", [{"lease_version": 2}, {"lease_token": "00000000-0000-0000-0000-000000000000"}]
)
def test_both_halves_of_the_fence_count(wrong: dict[str, Any]) -> None:
    (job,) = running()
    for locked in (True, False):
        assert JobStep.objects.record(job.fence._replace(**wrong), "charge", "1", locked=locked) == "lost"


def test_a_zombie_records_nothing_and_the_new_owner_does() -> None:
    zombie = make(states.RUNNING, lease=OVER).fence
    Job.objects.rescue(limit=10, server_up=0.0)
    Job.objects.promote_now([zombie.job_id])
    owner = claim(zombie.job_id)
    assert JobStep.objects.record(zombie, "charge", "1") == "lost"
    assert JobStep.objects.record(owner.fence, "charge", "2") == "recorded"
    assert rows(zombie.job_id) == [("charge", 2, 2)]


@pytest.mark.django_db(transaction=True)
def test_nobody_takes_a_job_between_the_look_at_the_fence_and_the_commit(
    connect: Callable[[], psycopg.Connection], blocked: Callable[..., Future]
) -> None:
    (job,) = running(lease=OVER)
    recorder = connect()
    with recorder.transaction():
        assert JobStep.objects.record(job.fence, "charge", "1", connection=recorder) == "recorded"
        assert Job.objects.rescue(limit=10, server_up=0.0) == []
        assert settle_one("complete", job.fence) == "locked"
    assert [row.job_id for row in Job.objects.rescue(limit=10, server_up=0.0)] == [job.job_id]
    assert rows(job.job_id) == [("charge", 1, 1)]


@pytest.mark.django_db(transaction=True)
def test_a_rescue_under_way_is_waited_for_and_wins(
    connect: Callable[[], psycopg.Connection], blocked: Callable[..., Future]
) -> None:
    (job,) = running(lease=OVER)
    rescuer = connect()
    with rescuer.transaction():
        assert Job.objects.rescue(limit=10, server_up=0.0, connection=rescuer)
        late = blocked(connect(), JobStep.objects.record, job.fence, "charge", "1")
    assert late.result(timeout=10) == "lost"
    assert rows(job.job_id) == []


@pytest.mark.django_db(transaction=True)
def test_a_row_that_the_attempts_own_transaction_has_locked_is_not_waited_for(
    connect: Callable[[], psycopg.Connection],
) -> None:
    (job,) = running()
    own, recorder = connect(), connect()
    recorder.execute("SET lock_timeout = '1s'")
    with own.transaction():
        own.execute(f"SELECT FROM {sql.STATE} WHERE job_id = %s FOR NO KEY UPDATE", [job.job_id])
        with pytest.raises(psycopg.errors.LockNotAvailable):
            JobStep.objects.record(job.fence, "charge", "1", connection=recorder)
        assert (
            JobStep.objects.record(job.fence, "charge", "1", locked=True, connection=recorder) == "recorded"
        )


def test_steps_go_with_their_job() -> None:
    job_ids = []
    for status in ("complete", "fail"):
        (job,) = running()
        JobStep.objects.record(job.fence, "charge", "1")
        settle_one(status, job.fence, **({"final": True} if status == "fail" else {}))
        job_ids.append(job.job_id)
    assert len(fetch(f"SELECT * FROM {sql.STEP}")) == 2
    assert Job.objects.prune(states.SUCCEEDED, age=0.0, limit=10)
    assert Job.objects.discard([job_ids[1]])
    assert fetch(f"SELECT * FROM {sql.STEP}") == []
    assert_invariants()


def test_steps_stay_when_a_person_retries_the_job() -> None:
    (job,) = running()
    JobStep.objects.record(job.fence, "charge", "1")
    settle_one("fail", job.fence, final=True)
    Job.objects.retry([job.job_id])
    assert rows(job.job_id) == [("charge", 1, 1)]


def test_rows_of_steps_change_through_the_verb_only() -> None:
    with pytest.raises(DirectWrite):
        JobStep.objects.create(job_id=1, name="x")
    with pytest.raises(DirectWrite):
        JobStep.objects.all().delete()


# --- in a task


def effect(value: Any) -> Any:
    calls.append(value)
    return value


async def aeffect(value: Any) -> Any:
    calls.append(value)
    return value


@task(takes_context=True, max_attempts=3)
def two_steps(context: JobContext, fail_until: int = 0) -> list[Any]:
    first = context.step("first", effect, {"n": (1, 2)})
    second = context.step("second", effect, value=context.attempt)
    if context.attempt < fail_until:
        raise OSError("the network is away")
    return [first, second]


@task(takes_context=True, max_attempts=3)
async def two_steps_in_a_coroutine(context: JobContext, fail_until: int = 0) -> list[Any]:
    first = await context.astep("first", aeffect, {"n": (1, 2)})
    second = await context.astep("second", effect, value=context.attempt)
    if context.attempt < fail_until:
        raise OSError("the network is away")
    return [first, second]


@pytest.mark.parametrize("steps", [two_steps, two_steps_in_a_coroutine], ids=["function", "coroutine"])
def test_a_step_is_done_once_however_many_attempts_a_job_takes(steps: Any) -> None:
    result = steps.enqueue(fail_until=3)
    for _ in range(3):
        testing.run_jobs()
        testing.forward_time(3600)
    result.refresh()
    assert result.return_value == [{"n": [1, 2]}, 1], "as JSON gives it back, in the first attempt, too"
    assert calls == [{"n": (1, 2)}, 1]
    assert result.attempts == 3


def test_the_first_attempt_gets_what_later_ones_would_get() -> None:
    result = two_steps.enqueue()
    testing.run_jobs()
    result.refresh()
    assert result.return_value == [{"n": [1, 2]}, 1]


@task(takes_context=True)
def roll_back(context: JobContext) -> None:
    from django.db import transaction  # noqa: PLC0415

    with transaction.atomic():
        context.step("charge", effect, 1)
        raise OSError


def test_a_step_stays_when_the_tasks_transaction_is_rolled_back() -> None:
    job_id = int(roll_back.enqueue().id)
    testing.run_jobs()
    assert rows(job_id) == [("charge", 1, 1)]


@task(takes_context=True, max_attempts=9)
def step_of(context: JobContext, kind: str) -> Any:
    functions: dict[str, Callable[[], Any]] = {
        "object": object,
        "nan": lambda: float("nan"),
        "large": lambda: "x" * 1_000_001,
        "error": lambda: effect(1) / 0,
        "twice": lambda: context.step("s", effect, 2),
    }
    if kind == "name":
        return context.step("a\n", effect, 1)
    if kind == "long":
        return context.step("x" * 201, effect, 1)
    if kind == "coroutine":
        return context.step("s", aeffect, 1)
    first = context.step("s", functions[kind])
    return [first, context.step("s", effect, 3)]


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        (
            "object",
            "UnstorableResult",
            "step 's' was done, but its result (a object) cannot be stored as JSON",
        ),
        ("nan", "UnstorableResult", "cannot be stored as JSON"),
        ("large", "UnstorableResult", "takes 1,000,003 bytes as JSON; max_result_bytes allows 1,000,000"),
        ("error", "ZeroDivisionError", "division by zero"),
        ("name", "ValueError", "the name of a step must be a non-empty string of printable characters"),
        ("long", "ValueError", "the name of a step may have 200 characters"),
        ("coroutine", "TypeError", "is a coroutine function: await context.astep(...)"),
    ],
)
def test_what_cannot_be_a_step_says_why(kind: str, error: str, words: str) -> None:
    result = step_of.enqueue(kind)
    testing.run_jobs()
    result.refresh()
    is_final = error == "UnstorableResult"
    assert (status_of(int(result.id)) == states.DEAD) == is_final, "what was done must not be done again"
    assert result.errors[0].exception_class_path.endswith(error)
    assert words in result.errors[0].traceback
    assert rows(int(result.id)) == []


def test_of_two_steps_of_one_name_the_first_to_end_counts() -> None:
    result = step_of.enqueue("twice")
    testing.run_jobs()
    result.refresh()
    assert (result.return_value, calls) == ([2, 2], [2])


@task(takes_context=True, max_attempts=3)
def lose(context: JobContext) -> None:
    context.step("before", effect, 1)
    Job.objects.rescue_worker([_released(context)], worker=_worker())
    context.step("after", effect, 2)


def _released(context: JobContext) -> Any:
    from .support import released  # noqa: PLC0415

    return released(context._execution.job.fence)


def _worker() -> Any:
    from .support import WORKER  # noqa: PLC0415

    return WORKER


def test_who_has_lost_the_lease_begins_no_step() -> None:
    job_id = int(lose.enqueue().id)
    testing.run_jobs(max_jobs=1)
    assert calls == [1]
    assert status_of(job_id) == states.SCHEDULED
