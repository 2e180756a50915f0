"""Tasks whose errors, values and connections are as bad as they come, all in one worker that must live on."""

import json
from pathlib import Path
from typing import Any

import pytest

from django_pgqueue import sql
from django_pgqueue.execution import UNKNOWN_TASK
from django_pgqueue.storable import MAX_TEXT

from ..waiting import wait_until
from . import tasks
from .conftest import Workers
from .queue import Queue
from .worker import Worker

pytestmark = pytest.mark.process

EXPECTED = {
    "needs_arguments": ("tests.processes.tasks.NeedsArguments", "5"),
    "cannot_be_shown": ("tests.processes.tasks.CannotBeShown", "cannot be shown"),
    "ends_the_process_when_shown": ("tests.processes.tasks.EndsTheProcessWhenShown", ""),
    "has_no_name": ("HasNoName", "unnamed"),
    "hides_its_traceback": ("tests.processes.tasks.HidesItsTraceback", "hidden"),
    "refuses_notes": ("tests.processes.tasks.RefusesNotes", "noteless"),
    "nested": ("tests.processes.tasks._nested_class.<locals>.Inside", "from a class inside a function"),
    "socket_and_lock": ("builtins.ValueError", "socket"),
    "group_of_1000": ("builtins.ExceptionGroup", "many (1000 sub-exceptions)"),
    "recursion": ("builtins.RecursionError", "maximum recursion depth exceeded"),
    "foreign": ("no_such_package.errors.Foreign", "not importable elsewhere"),
    "nul": ("builtins.ValueError", "x\\x00y"),
    "surrogate": ("builtins.ValueError", "bad \\udcff name"),
    "50_million_characters": ("builtins.ValueError", "characters cut"),
    "chain_of_500": ("builtins.ValueError", "link 499"),
    "long_class_name": ("tests.processes.tasks.EEEE", "long"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_any_error_is_a_failure_that_another_process_can_read(
    queue: Queue, worker: Worker, django_database: None, name: str
) -> None:
    job = queue.enqueue(tasks.raise_hostile, name, max_attempts=1)
    queue.wait(job, "dead")
    attempt = queue.attempt(job)
    expected_class, expected_text = EXPECTED[name]
    assert attempt.outcome == "failed"
    assert attempt.exception_class.startswith(expected_class)
    assert expected_text in attempt.message
    assert len(attempt.exception_class) <= 255
    assert len(attempt.message) <= 5000
    assert 0 < len(attempt.traceback) <= MAX_TEXT + 100
    (error,) = tasks.raise_hostile.get_result(str(job)).errors
    assert error.exception_class_path == attempt.exception_class
    assert error.traceback == attempt.traceback


NO_TRACEBACK = {"ends_the_process_when_shown", "50_million_characters", "has_no_name", "refuses_notes"}


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in NO_TRACEBACK])
def test_a_traceback_begins_in_the_task(queue: Queue, worker: Worker, name: str) -> None:
    job = queue.enqueue(tasks.raise_hostile, name, max_attempts=1)
    queue.wait(job, "dead")
    traceback = queue.attempt(job).traceback
    assert "tests/processes/tasks.py" in traceback
    assert "django_pgqueue/" not in traceback


def test_an_error_in_a_strangely_named_file_is_recorded(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.raise_in_nul_file, max_attempts=1)
    queue.wait(job, "dead")
    assert "\\udcff strange.html" in queue.attempt(job).traceback


@pytest.mark.parametrize("name", tasks.BASE)
def test_a_base_exception_is_a_failure_and_ends_nobody(queue: Queue, worker: Worker, name: str) -> None:
    child = worker.child
    first = queue.enqueue(tasks.raise_base, name, max_attempts=1)
    second = queue.enqueue(tasks.ok)
    queue.wait([first, second])
    assert queue.status(first) == "dead"
    assert (
        queue.attempt(first).exception_class
        == f"{type(tasks.BASE[name]()).__module__}.{type(tasks.BASE[name]()).__name__}"
    )
    assert queue.status(second) == "succeeded"
    assert worker.child == child


def test_a_task_that_exits_loses_the_process_but_not_the_job(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.leave, 7, max_attempts=1)
    queue.wait(job, "dead", timeout=5.0)
    attempt = queue.attempt(job)
    assert (attempt.outcome, attempt.exception_class) == ("lost", "django_pgqueue.exceptions.WorkerDied")
    assert "exited with code 7" in attempt.message


# --- what tasks return


def test_no_error_costs_the_worker_a_thread(queue: Queue, start: Workers) -> None:
    start("--threads", 1)
    odd = [queue.enqueue(tasks.raise_hostile, name, max_attempts=1) for name in EXPECTED]
    odd.append(queue.enqueue(tasks.fail_with_ending_callable, max_attempts=1))
    retried = queue.enqueue(tasks.fail_with_ending_callable, max_attempts=2, backoff_base=60, backoff_cap=60)
    behind = queue.enqueue(tasks.ok)
    queue.wait(behind, "succeeded", timeout=40.0)
    queue.wait(odd, "dead")
    queue.wait(retried, "scheduled")
    assert "the task's backoff raised" in queue.attempt(retried).traceback


@pytest.mark.parametrize(("name", "value"), [("nul", "\x00"), ("surrogate", "\ud800")])
def test_a_text_that_postgresql_cannot_hold_is_still_a_result(
    queue: Queue, worker: Worker, django_database: None, name: str, value: str
) -> None:
    job = queue.enqueue(tasks.return_value, name)
    queue.wait(job, "succeeded")
    assert tasks.return_value.get_result(str(job)).return_value == value
    assert len(queue.executions(job)) == 1


@pytest.mark.parametrize("name", [name for name in tasks.VALUES if name not in ("nul", "surrogate")])
def test_a_value_that_json_cannot_hold_ends_the_job_without_repeating_it(
    queue: Queue, worker: Worker, name: str
) -> None:
    job = queue.enqueue(tasks.return_value, name, max_attempts=5)
    queue.wait(job, "dead", "succeeded")
    attempt = queue.attempt(job)
    assert len(queue.executions(job)) == 1, "what the task did was repeated"
    if queue.status(job) == "dead":
        known_type = name in ("nan", "infinity", "cyclic", "bytes")
        unstorable = "django_pgqueue.exceptions.UnstorableResult" if known_type else "builtins.TypeError"
        assert attempt.exception_class == unstorable
        assert "return value" in attempt.message
        assert "tests/" not in attempt.message
    else:  # Django's normalize_json knows it
        assert name in ("bytes", "odd_key")
        json.dumps(attempt.return_value)


# --- code that is not there, or broken


BROKEN = {
    "broken_syntax": "def f(:\n",
    "broken_import": "import no_such_module_anywhere\n",
    "broken_exit": "raise SystemExit(4)\n",
    "broken_value": "1 / 0\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_module_that_cannot_be_imported_fails_the_job_by_its_policy(
    queue: Queue, worker: Worker, name: str
) -> None:
    Path(worker.environ["PYTHONPATH"], f"{name}.py").write_text(BROKEN[name])
    job = queue.enqueue(f"{name}.f", max_attempts=2)
    behind = queue.enqueue_many(tasks.ok, [()] * 10)
    queue.wait([job, *behind])
    assert queue.status(job) == "dead"
    assert queue.outcomes(job) == ["failed", "failed"]
    assert all(name in attempt.traceback or name in attempt.message for attempt in queue.attempts(job))
    assert set(queue.statuses(behind).values()) == {"succeeded"}


@pytest.mark.parametrize(
    "path",
    [
        "tests.processes.tasks.not_there",
        "no_such_package.tasks.f",
        "tests.no_such_module.f",
        "tests.processes.tasks.HOSTILE",
        "tests.processes.tasks.pause",
        "__main__.f",
        "nodots",
        "tests..tasks.f",
    ],
)
def test_an_unknown_task_waits_uncharged_and_holds_nobody_up(queue: Queue, worker: Worker, path: str) -> None:
    job = queue.enqueue(path, max_attempts=1)
    behind = queue.enqueue_many(tasks.ok, [()] * 10)
    queue.wait(job, "scheduled")
    queue.wait(behind, "succeeded")
    attempt = queue.attempt(job)
    assert (attempt.outcome, attempt.exception_class) == ("snoozed", UNKNOWN_TASK)
    assert "no worker knows this task" in attempt.message
    state = queue.state(job)
    assert state.attempts_allowed - state.attempts == 1, "it was charged"
    assert worker.wait_for("unknown_task", job=job)


def test_a_job_of_an_alias_that_this_worker_lacks_waits_uncharged(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.ok, max_attempts=1, delay=1)
    queue.session.execute(f"UPDATE {sql.JOB} SET backend = 'of tomorrow' WHERE id = %s", [job])
    wait_until(lambda: queue.outcomes(job) == ["snoozed"])
    assert "TASKS has no alias 'of tomorrow'" in queue.attempt(job).message
    state = queue.state(job)
    assert state.attempts_allowed - state.attempts == 1, "it was charged"


# --- what tasks do to their connection


@pytest.mark.parametrize(
    "task",
    [
        tasks.swallow_integrity_error,
        tasks.turn_autocommit_off,
        tasks.leave_begin_open,
        tasks.leave_atomic_open,
        tasks.leave_session_settings,
    ],
    ids=lambda task: task.name,
)
def test_the_next_task_finds_the_connection_as_a_request_would(
    queue: Queue, worker: Worker, task: Any
) -> None:
    clean = shown(queue, queue.enqueue_many(tasks.show_connection, [()] * 4))
    bad = queue.enqueue_many(task, [()] * 8)
    queue.wait(bad, "succeeded")
    after = shown(queue, queue.enqueue_many(tasks.show_connection, [()] * 8))
    assert {found["thread"] for found in after} == {found["thread"] for found in clean}, (
        "all threads were asked"
    )
    for found in after:
        assert found["autocommit"]
        assert not found["atomic"]
        assert (found["timeout"], found["path"]) == (clean[0]["timeout"], clean[0]["path"])
    wait_until(lambda: not idle_in_transaction(queue), 1.0, "a transaction was left open")


def shown(queue: Queue, jobs: list[int]) -> list[dict[str, Any]]:
    queue.wait(jobs, "succeeded")
    return [queue.attempt(job).return_value for job in jobs]


def idle_in_transaction(queue: Queue) -> int:
    return queue.value(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND starts_with(state, 'idle in transaction')"
    )


# --- receivers of signals


def test_a_receiver_that_raises_at_enqueueing_does_not_lose_the_job(
    queue: Queue, worker: Worker, django_database: None, caplog: pytest.LogCaptureFixture
) -> None:
    from django_pgqueue.compat import signals  # noqa: PLC0415

    def raise_at_enqueue(**_: Any) -> None:
        raise LookupError("receiver")

    signals.task_enqueued.connect(raise_at_enqueue)
    try:
        result = tasks.ok.enqueue(3)
    finally:
        signals.task_enqueued.disconnect(raise_at_enqueue)
    queue.wait(int(result.id), "succeeded")
    assert "raise_at_enqueue" in caplog.text


def test_receivers_that_raise_change_nothing(queue: Queue, start: Workers) -> None:
    worker = start(startup="receivers")
    good = queue.enqueue(tasks.mark)
    bad = queue.enqueue(tasks.fail, max_attempts=2)
    queue.wait([good, bad])
    assert queue.outcomes(good) == ["succeeded"]
    assert queue.outcomes(bad) == ["failed", "failed"]
    assert len(queue.executions(good)) == 1
    for signal, receiver in (("task_started", "raise_at_start"), ("task_finished", "raise_at_finish")):
        assert worker.wait_for("receiver_failed", signal=signal, receiver=receiver, job=good)
    following = shown(queue, queue.enqueue_many(tasks.show_connection, [()] * 8))
    assert all(found["autocommit"] and not found["atomic"] for found in following)
