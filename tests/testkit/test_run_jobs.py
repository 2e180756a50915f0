"""run_jobs inside a test's transaction: what runs, in which order, and what it leaves behind."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction

from django_pgqueue.compat import TaskResultStatus, signals
from django_pgqueue.models import Job
from django_pgqueue.testing import JobRun, TooManyJobs, arun_jobs, forward_time, run_jobs
from django_pgqueue.testing import running as running_module

from .. import support
from . import tasks

pytestmark = [pytest.mark.usefixtures("invariants")]


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    tasks.done.clear()


# --- what runs


def test_due_jobs_run_in_order() -> None:
    for value in (1, 2, 3):
        tasks.note.enqueue(value)
    run = run_jobs()
    assert tasks.done == [1, 2, 3]
    assert run.outcomes == ["succeeded"] * 3
    assert not run_jobs()


def test_priority_comes_first_and_queues_are_served_in_their_order() -> None:
    tasks.mail.enqueue("ada@example.com")
    tasks.note.enqueue("low")
    tasks.note.using(priority=50).enqueue("high")
    run_jobs()
    assert tasks.done == ["high", "low", "ada@example.com"]


def test_a_choice_of_queues() -> None:
    tasks.note.enqueue(1)
    tasks.mail.enqueue("ada@example.com")
    assert run_jobs(queues="emails").of(tasks.mail).outcomes == ["succeeded"]
    assert run_jobs(queues=["emails", "other"]).outcomes == []
    assert tasks.done == ["ada@example.com"]


@pytest.mark.parametrize("queues", ["nowhere", ["emails", "nowhere"], []])
def test_a_queue_that_is_not_declared_is_refused(queues: Any) -> None:
    with pytest.raises(ValueError, match=r"has no queue .*it has 'default', 'other', 'emails'"):
        run_jobs(queues=queues)


def test_an_alias_without_declared_queues_serves_all(settings: Any) -> None:
    settings.TASKS = {"default": {**settings.TASKS["default"], "QUEUES": []}}
    tasks.note.using(queue_name="anything").enqueue(1)
    tasks.note.enqueue(2)
    assert sorted(ran.queue for ran in run_jobs()) == ["anything", "default"]


@pytest.mark.parametrize("kind", ["dummy.DummyBackend", "immediate.ImmediateBackend"])
def test_another_backend_is_refused_by_name(settings: Any, kind: str) -> None:
    package = running_module.PgQueueBackend.__mro__[1].__module__.rpartition(".")[0]
    settings.TASKS = {"default": {"BACKEND": f"{package}.{kind}"}}
    with pytest.raises(ImproperlyConfigured, match="keeps no jobs in the database"):
        run_jobs()


def test_what_is_due_later_waits_for_time_to_pass() -> None:
    tasks.note.using(run_after=timedelta(hours=1)).enqueue("later")
    assert not run_jobs()
    forward_time(3599)
    assert not run_jobs()
    forward_time(timedelta(seconds=2))
    assert run_jobs().outcomes == ["succeeded"]


def test_jobs_that_a_task_enqueues_run_too() -> None:
    tasks.chain.enqueue(3)
    assert len(run_jobs()) == 4
    assert tasks.done == [3, 2, 1, 0]


def test_max_jobs_stops_in_between() -> None:
    tasks.chain.enqueue(3)
    assert len(run_jobs(max_jobs=1)) == 1
    assert len(run_jobs(max_jobs=2)) == 2
    assert len(run_jobs(max_jobs=0)) == 0
    assert len(run_jobs()) == 1


def test_a_task_that_enqueues_itself_for_ever_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_module, "LIMIT", 5)
    tasks.for_ever.enqueue()
    with pytest.raises(TooManyJobs, match="5 attempts"):
        run_jobs()


def test_exactly_as_many_jobs_as_the_limit_are_no_runaway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_module, "LIMIT", 4)
    tasks.chain.enqueue(3)
    assert len(run_jobs()) == 4


# --- what becomes of them


def test_a_failed_job_is_retried_when_its_longest_backoff_has_passed() -> None:
    result = tasks.recover.enqueue()
    (first,) = run_jobs()
    assert (first.outcome, first.status, first.attempt) == ("failed", "scheduled", 1)
    assert isinstance(first.error, tasks.Refused)
    forward_time(59)
    assert not run_jobs()
    forward_time(1.01)
    (second,) = run_jobs()
    assert (second.outcome, second.attempt, second.error) == ("succeeded", 2, None)
    result.refresh()
    assert (result.return_value, result.attempts) == (2, 2)


def test_a_retry_without_delay_waits_for_the_next_call() -> None:
    tasks.fail_at_once.enqueue()
    assert [(ran.outcome, ran.status) for ran in run_jobs()] == [("failed", "scheduled")]
    assert [(ran.outcome, ran.status) for ran in run_jobs()] == [("failed", "dead")]


@pytest.mark.parametrize(
    ("task", "args", "outcome", "status"),
    [
        (tasks.put_off, [60.0], "snoozed", "scheduled"),
        (tasks.give_up, ["enough"], "cancelled", "cancelled"),
        (tasks.try_again, [60.0], "failed", "scheduled"),
        (tasks.discard, [], "failed", "dead"),
        (tasks.unstorable, [], "failed", "dead"),
        (tasks.raise_system_exit, [], "failed", "scheduled"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_outcomes(task: Any, args: list[Any], outcome: str, status: str) -> None:
    result = task.enqueue(*args)
    (ran,) = run_jobs()
    assert (ran.outcome, ran.status) == (outcome, status)
    assert support.status_of(int(result.id)) == status
    assert (ran.error is not None) == (outcome == "failed")


def test_arguments_that_no_longer_fit_are_a_failure() -> None:
    support.enqueue(task_path=tasks.note.module_path, args="[]", max_attempts=2)
    (ran,) = run_jobs()
    assert (ran.outcome, ran.status, type(ran.error)) == ("failed", "scheduled", TypeError)


def test_a_task_that_nobody_knows_is_put_off_and_told() -> None:
    support.enqueue(task_path="tests.nowhere.task")
    (ran,) = run_jobs()
    assert (ran.outcome, ran.status) == ("snoozed", "scheduled")
    assert "no worker knows this task" in str(ran.error)


def test_errors_can_be_raised_after_they_were_recorded() -> None:
    tasks.note.enqueue(1)
    result = tasks.fail.enqueue("broken")
    tasks.note.enqueue(2)
    with pytest.raises(tasks.Refused, match="broken") as caught:
        run_jobs(raise_errors=True)
    assert "attempt 1: failed" in caught.value.__notes__[0]
    assert support.outcomes_of(int(result.id)) == ["failed"]
    assert tasks.done == [1]
    run_jobs(raise_errors=True)


def test_snoozing_and_cancelling_are_no_errors() -> None:
    tasks.put_off.enqueue(60.0)
    tasks.give_up.enqueue("enough")
    assert run_jobs(raise_errors=True).outcomes == ["snoozed", "cancelled"]


def test_ctrl_c_and_outcomes_of_the_test_go_through(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks.interrupt.enqueue()
    with pytest.raises(KeyboardInterrupt):
        run_jobs()
    monkeypatch.setattr(tasks, "do_step", lambda step: pytest.fail("as the mock says"))
    tasks.work.enqueue()
    with pytest.raises(pytest.fail.Exception, match="as the mock says"):
        run_jobs()


def test_a_lease_that_is_over_is_rescued_first() -> None:
    (claimed,) = support.running(task_path=tasks.note.module_path, args="[1]", lease=30.0, backoff_base=60.0)
    assert not run_jobs()
    forward_time(31)
    assert not run_jobs()
    forward_time(59)
    assert not run_jobs()
    forward_time(1.01)
    assert run_jobs().outcomes == ["succeeded"]
    assert support.outcomes_of(claimed.job_id) == ["lost", "succeeded"]


# --- reports


def test_results_are_as_they_were_right_after_the_attempt() -> None:
    enqueued = tasks.recover.enqueue()
    first = run_jobs()[0].result
    forward_time(3600)
    second = run_jobs()[0].result
    assert (first.id, first.status, first.attempts) == (enqueued.id, TaskResultStatus.READY, 1)
    assert first.errors[0].exception_class is tasks.Refused
    assert (second.status, second.return_value) == (TaskResultStatus.SUCCESSFUL, 2)


def test_a_run_can_be_searched_and_read() -> None:
    first, _, failed = tasks.note.enqueue(1), tasks.note.enqueue(2), tasks.fail.enqueue("no")
    run = run_jobs()
    assert [ran.result.return_value for ran in run.of(tasks.note)] == [1, 2]
    assert run.of(first) == run[:1]
    assert run.of(tasks.fail.module_path).errors == [run[2].error]
    assert [result.id for result in run.results] == [first.id, run[1].result.id, failed.id]
    assert repr(run) == (
        f"<JobRun of 3>\n"
        f"  #{first.id} tests.testkit.tasks.note attempt 1: succeeded\n"
        f"  #{run[1].job_id} tests.testkit.tasks.note attempt 1: succeeded\n"
        f"  #{failed.id} tests.testkit.tasks.fail attempt 1: failed, now scheduled (Refused: no)"
    )
    assert not JobRun([])


def test_signals_are_sent_as_by_a_worker() -> None:
    heard: list[tuple[str, Any, Any]] = []

    def hear(name: str) -> Any:
        def receiver(sender: Any, task_result: Any, **kwargs: Any) -> None:
            heard.append((name, task_result.status, task_result.attempts))

        return receiver

    receivers = {name: hear(name) for name in ("task_enqueued", "task_started", "task_finished")}
    for name, receiver in receivers.items():
        getattr(signals, name).connect(receiver)
    try:
        tasks.recover.enqueue()
        run_jobs()
        forward_time(3600)
        run_jobs()
    finally:
        for name, receiver in receivers.items():
            getattr(signals, name).disconnect(receiver)
    ready, running, successful = (
        getattr(TaskResultStatus, name) for name in ("READY", "RUNNING", "SUCCESSFUL")
    )
    assert heard == [
        ("task_enqueued", ready, 0),
        ("task_started", running, 1),
        ("task_started", running, 2),
        ("task_finished", successful, 2),
    ]


def test_a_receiver_that_breaks_the_transaction_harms_nothing() -> None:
    def receiver(**kwargs: Any) -> None:
        Group.objects.create(name="twice")
        Group.objects.create(name="twice")

    signals.task_finished.connect(receiver)
    try:
        tasks.note.enqueue(1)
        tasks.note.enqueue(2)
        assert run_jobs().outcomes == ["succeeded"] * 2
    finally:
        signals.task_finished.disconnect(receiver)


# --- the context


def test_the_context_is_a_workers() -> None:
    result = tasks.look_at_context.enqueue()
    run_jobs(raise_errors=True)
    result.refresh()
    assert result.return_value == [1, int(result.id), {"team": "orders"}, True]


def test_progress_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    result = tasks.look_at_context.enqueue()
    seen = []
    monkeypatch.setattr(
        running_module.pipeline,
        "decide_return",
        lambda *args: seen.append(_progress(result)) or _decide(*args),
    )
    run_jobs(raise_errors=True)
    assert seen == [(1, 2, "half")]


_decide = running_module.pipeline.decide_return


def _progress(result: Any) -> Any:
    result.refresh()
    return tuple(result.progress)


def test_a_request_to_cancel_reaches_the_task_at_its_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    result = tasks.work.enqueue()
    monkeypatch.setattr(tasks, "do_step", lambda step: Job.objects.cancel([int(result.id)]))
    (ran,) = run_jobs()
    assert (ran.outcome, ran.status) == ("cancelled", "cancelled")


def test_a_lease_that_somebody_else_took_is_seen_and_the_outcome_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = tasks.work.enqueue()

    def lose(step: int) -> None:
        forward_time(60)
        Job.objects.rescue(limit=10, server_up=0.0)

    monkeypatch.setattr(tasks, "do_step", lose)
    (ran,) = run_jobs()
    assert (ran.outcome, ran.status) == ("lost", "scheduled")
    assert support.outcomes_of(int(result.id)) == ["lost"]


# --- coroutines


def test_coroutine_tasks_run_in_the_tests_transaction() -> None:
    tasks.coroutine.enqueue("async")
    run = run_jobs(raise_errors=True)
    assert [ran.result.return_value for ran in run] == [1, "async"]
    assert Group.objects.filter(name="async").exists()


@pytest.mark.parametrize("kind", ["refused", "exit", "cancelled"])
def test_coroutines_that_fail(kind: str) -> None:
    tasks.failing_coroutine.enqueue(kind)
    tasks.note.enqueue(1)
    assert run_jobs().outcomes == ["failed", "succeeded"]


def test_coroutines_report_and_look_without_the_database() -> None:
    result = tasks.reporting_coroutine.enqueue()
    run_jobs(raise_errors=True)
    result.refresh()
    assert result.return_value is False


@pytest.mark.django_db(transaction=True)
def test_async_tests_have_a_function_of_their_own() -> None:
    async def test() -> JobRun:
        await tasks.coroutine.aenqueue("async")
        return await arun_jobs(raise_errors=True)

    assert async_to_sync(test)().outcomes == ["succeeded", "succeeded"]


# --- transactions


@pytest.fixture(params=["in a transaction", "in autocommit"])
def _surroundings(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("db" if request.param == "in a transaction" else "transactional_db")


@pytest.mark.usefixtures("_surroundings")
class TestTransactions:
    """The same in a TestCase as with commits, where that is possible."""

    def test_what_a_task_wrote_before_it_raised_stays(self) -> None:
        tasks.add_group.enqueue("written", fails=True)
        assert run_jobs().outcomes == ["failed"]
        assert Group.objects.filter(name="written").exists()

    def test_a_broken_transaction_harms_no_other_job(self) -> None:
        tasks.add_group.enqueue("before")
        tasks.break_transaction.enqueue("twice")
        tasks.break_transaction_and_return.enqueue()
        tasks.add_group.enqueue("after")
        assert run_jobs().outcomes == ["succeeded", "failed", "succeeded", "succeeded"]
        assert {"before", "after"} <= set(Group.objects.values_list("name", flat=True))

    def test_a_task_may_close_its_connections(self) -> None:
        tasks.add_group.enqueue("before")
        tasks.close_connections.enqueue()
        run = run_jobs(raise_errors=True)
        assert run[1].result.return_value == 1
        connection.ensure_connection()
        assert Group.objects.count() == 1

    def test_a_task_may_open_a_durable_block(self) -> None:
        tasks.durable.enqueue("durable")
        run_jobs(raise_errors=True)
        assert Group.objects.filter(name="durable").exists()

    def test_a_block_that_a_task_leaves_open_is_rolled_back(self) -> None:
        tasks.leave_block_open.enqueue("open")
        tasks.add_group.enqueue("after")
        assert run_jobs().outcomes == ["succeeded"] * 2
        assert list(Group.objects.values_list("name", flat=True)) == ["after"]
        with transaction.atomic():
            Group.objects.create(name="and on")

    @pytest.mark.parametrize("fails", [True, False])
    def test_hooks_of_a_commit_run(self, fails: bool) -> None:
        tasks.after_commit.enqueue("hooked", fails=fails)
        assert run_jobs().outcomes == ["failed" if fails else "succeeded", "succeeded"]
        assert tasks.done == ["hooked"]

    def test_hooks_of_a_rollback_do_not(self) -> None:
        tasks.after_no_commit.enqueue("dropped")
        assert run_jobs().outcomes == ["succeeded"]
        assert tasks.done == []

    def test_a_hook_that_raises_fails_the_job(self) -> None:
        tasks.bad_hook.enqueue()
        (ran,) = run_jobs()
        assert (ran.outcome, str(ran.error)) == ("failed", "in a hook")

    def test_results_in_the_tests_own_block(self) -> None:
        with transaction.atomic():
            tasks.add_group.enqueue("inside")
            run_jobs(raise_errors=True)
        assert Group.objects.filter(name="inside").exists()


def test_hooks_of_the_test_itself_are_left_alone(django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        transaction.on_commit(lambda: tasks.done.append("the test's"))
        tasks.after_commit.enqueue("the task's")
        run_jobs(raise_errors=True)
    assert tasks.done == ["the task's"]
    for callback in callbacks:
        callback()
    assert tasks.done == ["the task's", "the test's"]


def test_a_value_that_the_table_refuses_becomes_the_jobs_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = itertools.count()
    complete = running_module.pipeline.Complete

    def decide(execution: Any, value: Any) -> Any:
        return complete("not JSON" if next(bad) == 0 else "null", None)

    monkeypatch.setattr(running_module.pipeline, "decide_return", decide)
    tasks.note.enqueue(1)
    tasks.note.enqueue(2)
    assert [ran.status for ran in run_jobs()] == ["dead", "succeeded"]


def test_times_without_time_zones(settings: Any) -> None:
    settings.USE_TZ = False
    tasks.recover.enqueue()
    run_jobs()
    forward_time(3600)
    assert run_jobs(raise_errors=True).results[0].attempts == 2


@pytest.mark.django_db(transaction=True)
def test_a_test_that_is_interrupted_leaves_the_connection_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(step: int) -> None:
        transaction.atomic().__enter__()
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "do_step", interrupt)
    tasks.work.enqueue()
    with pytest.raises(KeyboardInterrupt):
        run_jobs()
    assert not connection.in_atomic_block


def test_a_frozen_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    monkeypatch.setattr("time.time", lambda: 0.0)
    tasks.recover.enqueue()
    tasks.note.enqueue(1)
    assert run_jobs().outcomes == ["failed", "succeeded"]
    forward_time(3600)
    assert run_jobs().outcomes == ["succeeded"]


def test_freezegun(settings: Any) -> None:
    freezegun = pytest.importorskip("freezegun")
    with freezegun.freeze_time("2020-01-01") as clock:
        tasks.recover.enqueue()
        tasks.coroutine.enqueue("frozen")
        assert run_jobs().outcomes == ["failed", "succeeded", "succeeded"]
        clock.tick(timedelta(days=1))
        assert not run_jobs(), "the database's clock decides"
        forward_time(60)
        assert run_jobs().outcomes == ["succeeded"]
