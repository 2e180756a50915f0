"""Atomic tasks: their writes, their result and the end of their job commit together, or none of them does."""

import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction
from django.test import override_settings

from django_pgqueue import Cancel, InvalidTask, Snooze, sql, states, testing
from django_pgqueue import execution as pipeline
from django_pgqueue.context import JobContext
from django_pgqueue.execution import Execution
from django_pgqueue.models import Job
from django_pgqueue.records import Answer
from django_pgqueue.stepping import private_store
from django_pgqueue.tasks import task
from django_pgqueue.worker import atomic

from . import support, tasks
from .support import OVER, claim, fence_of, make, outcomes_of, running, status_of

pytestmark = pytest.mark.django_db

heard: list[str] = []
tries: list[int] = []


@pytest.fixture(autouse=True)
def silence() -> None:
    heard.clear()
    tries.clear()


def names() -> list[str]:
    return list(Group.objects.order_by("name").values_list("name", flat=True))


@task(atomic=True, takes_context=True, max_attempts=2)
def write(context: JobContext, then: str = "") -> str:
    Group.objects.create(name="written")
    tasks.ok.enqueue("a child")
    transaction.on_commit(lambda: heard.append(f"after the commit of attempt {context.attempt}"))
    return THEN[then](context)


def give_up(error: BaseException) -> Any:
    raise error


def lose(context: JobContext) -> str:
    Job.objects.rescue_worker([support.released(fence_of(context.job_id))], worker=support.OTHER_WORKER)
    return "done"


def conflict(context: JobContext, times: int = 3) -> str:
    tries.append(context.attempt)
    if len(tries) <= times:
        raise OperationalError("conflict") from psycopg.errors.SerializationFailure("conflict")
    return "done"


def abort(context: JobContext) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")


THEN: dict[str, Callable[[JobContext], Any]] = {
    "": lambda context: "done",
    "raise": lambda context: give_up(OSError("the network is away")),
    "snooze": lambda context: give_up(Snooze(60)),
    "cancel": lambda context: give_up(Cancel("not needed")),
    "object": lambda context: object(),
    "lose": lose,
    "conflict": conflict,
    "conflicts": lambda context: conflict(context, times=1000),
    "abort": abort,
    "rollback": lambda context: transaction.set_rollback(True),
}


def run(then: str = "") -> int:
    job_id = int(write.enqueue(then).id)
    testing.run_jobs(max_jobs=1)
    return job_id


def test_writes_children_result_and_completion_commit_together() -> None:
    job_id = run()
    assert (status_of(job_id), names(), heard) == (
        "succeeded",
        ["written"],
        ["after the commit of attempt 1"],
    )
    (attempt,) = support.attempts_of(job_id)
    assert (attempt.outcome, attempt.return_value) == ("succeeded", "done")
    assert Job.objects.count() == 2
    support.assert_invariants()


@pytest.mark.parametrize(
    ("then", "status", "outcome"),
    [
        ("raise", "scheduled", "failed"),
        ("snooze", "scheduled", "snoozed"),
        ("cancel", "cancelled", "cancelled"),
        ("object", "dead", "failed"),
        ("abort", "scheduled", "failed"),
        ("rollback", "scheduled", "failed"),
    ],
)
def test_what_does_not_succeed_leaves_nothing_behind(then: str, status: str, outcome: str) -> None:
    job_id = run(then)
    assert (status_of(job_id), outcomes_of(job_id)) == (status, [outcome])
    assert (names(), heard) == ([], [])
    assert Job.objects.count() == 1, "what it enqueued is rolled back too"
    support.assert_invariants()


def test_a_lost_lease_rolls_all_back() -> None:
    """The take-over is part of the same transaction here, so it is rolled back as well."""
    job_id = run("lose")
    assert (names(), heard) == ([], [])
    assert Job.objects.count() == 1
    (attempt,) = support.attempts_of(job_id)
    assert attempt.exception_class == "django_pgqueue.exceptions.LeaseLost"
    assert "what its task wrote is rolled back" in attempt.message


def test_a_conflict_is_tried_again_within_the_attempt() -> None:
    job_id = run("conflict")
    assert tries == [1, 1, 1, 1]
    assert (status_of(job_id), outcomes_of(job_id), names()) == ("succeeded", ["succeeded"], ["written"])
    assert Job.objects.count() == 2


def test_conflicts_without_end_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_pgqueue.worker.atomic.FIRST_PAUSE", 0.0)
    job_id = run("conflicts")
    assert tries == [1] * 21
    assert (status_of(job_id), outcomes_of(job_id), names()) == ("scheduled", ["failed"], [])


# --- refusals


def test_a_coroutine_cannot_be_atomic() -> None:
    with pytest.raises(InvalidTask, match=r"atomic needs a plain function: Django has no transactions"):
        task(atomic=True)(tasks.coroutine.func)


@pytest.mark.parametrize("value", [1, "", b"default", ["default"]])
def test_a_wrong_value_is_refused(value: Any) -> None:
    with pytest.raises(InvalidTask, match="atomic must be True, False or an alias of DATABASES"):
        task(atomic=value)(tasks.ok.func)


ELSEWHERE = {
    "default": {
        "BACKEND": "django_pgqueue.backend.PgQueueBackend",
        "OPTIONS": {"database": "jobs"},
    }
}


def test_a_queue_on_another_database_refuses_atomic_tasks() -> None:
    with override_settings(TASKS=ELSEWHERE):
        with pytest.raises(
            InvalidTask, match=r"atomic=True opens its transaction on the database 'default', and"
        ):
            task(atomic=True)(tasks.ok.func)
        assert task(atomic="jobs")(tasks.ok.func).atomic == "jobs"
    with pytest.raises(
        InvalidTask, match=r"atomic='jobs' opens its transaction on the database 'jobs', and the"
    ):
        task(atomic="jobs")(tasks.ok.func)


def test_a_worker_with_other_settings_refuses_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = int(write.enqueue().id)
    monkeypatch.setattr("django_pgqueue.worker.atomic.atomic_problem", lambda *_: "no two databases")
    testing.run_jobs()
    (attempt,) = support.attempts_of(job_id)
    assert (attempt.exception_class, attempt.message) == (
        "builtins.ValueError",
        "tests.test_atomic.write: no two databases",
    )


# --- the verbs


@pytest.mark.parametrize("status", [status for status in states.STATUSES if status != states.RUNNING])
def test_nobody_locks_a_job_that_he_does_not_hold(status: str) -> None:
    assert not Job.objects.lock_held(make(status).fence)


def test_a_zombie_locks_nothing() -> None:
    zombie = make(states.RUNNING, lease=OVER).fence
    Job.objects.rescue(limit=10, server_up=0.0)
    Job.objects.promote_now([zombie.job_id])
    owner = claim(zombie.job_id)
    assert not Job.objects.lock_held(zombie)
    assert Job.objects.lock_held(owner.fence)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("level", "strict"), [("READ COMMITTED", False), ("REPEATABLE READ", True), ("SERIALIZABLE", True)]
)
def test_only_stricter_levels_lock_at_the_start_and_renewal_passes_over_it(
    connect: Callable[[], psycopg.Connection], level: str, strict: bool
) -> None:
    (job,) = running(lease=OVER)
    own = connect()
    with own.transaction():
        own.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        assert Job.objects.lock_if_strict(job.fence, connection=own) == (strict, strict)
        (renewal,) = Job.objects.renew([job.fence], lease=OVER).values()
        assert renewal.result == ("locked" if strict else "done"), "locked, and not lost"
        rescued = [] if strict else [job.job_id]
        assert [row.job_id for row in Job.objects.rescue(limit=10, server_up=0.0)] == rescued
        assert Job.objects.lock_held(job.fence, connection=own) == strict
        answers = Job.objects.complete([support.completed(job.fence)], worker=support.WORKER, connection=own)
        assert answers[job.fence].result == ("done" if strict else "lost")
    assert status_of(job.job_id) == ("succeeded" if strict else "scheduled")


@pytest.mark.django_db(transaction=True)
def test_a_heartbeat_under_a_stricter_level_would_fail_for_ever_without_that_lock(
    connect: Callable[[], psycopg.Connection],
) -> None:
    (job,) = running()
    own = connect()
    own.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    own.execute(f"SELECT count(*) FROM {sql.JOB}")
    Job.objects.renew([job.fence], lease=30.0)
    with pytest.raises(psycopg.errors.SerializationFailure):
        Job.objects.lock_held(job.fence, connection=own)


# --- a commit whose reply is lost, and callbacks that fail


def execution_of(job_id: int) -> Execution:
    execution = Execution(claim(job_id), "worker-1", time.monotonic())
    pipeline.prepare(execution)
    return execution


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("committed", [True, False])
def test_after_a_commit_without_a_reply_the_tables_are_asked(
    monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    execution = execution_of(int(write.enqueue().id))
    commit, rollback = connection.commit, connection.rollback

    def lose_the_reply() -> None:
        (commit if committed else rollback)()
        raise OperationalError("gone") from psycopg.OperationalError("gone")

    monkeypatch.setattr(connection, "commit", lose_the_reply)
    if committed:
        assert atomic.run(execution, lambda: None).return_value == '"done"'
        assert execution.answer == Answer("done", "succeeded", 1)
    else:
        with pytest.raises(OperationalError, match="gone"):
            atomic.run(execution, lambda: None)
        assert execution.answer is None
    monkeypatch.undo()
    private_store("default", prepared=True).close()
    assert names() == (["written"] if committed else [])
    assert status_of(execution.job.job_id) == ("succeeded" if committed else "running")


@task(atomic=True)
def break_a_callback() -> None:
    transaction.on_commit(lambda: give_up(LookupError("no such mailbox")))


@pytest.mark.django_db(transaction=True)
def test_a_callback_that_fails_does_not_undo_what_is_committed(caplog: pytest.LogCaptureFixture) -> None:
    execution = execution_of(int(break_a_callback.enqueue().id))
    atomic.run(execution, lambda: None)
    assert execution.answer == Answer("done", "succeeded", 1)
    assert "on_commit_failed" in caplog.text
