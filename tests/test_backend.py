"""The backend: enqueue in the caller's transaction, results of every state, bad input refused early."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DataError, connection, transaction
from django.test import override_settings

from django_pgqueue import managers, sql
from django_pgqueue.compat import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    signals,
    task_backends,
)
from django_pgqueue.exceptions import InvalidArguments, UnknownTask
from django_pgqueue.models import Job
from django_pgqueue.resolving import resolve_task
from django_pgqueue.tasks import PgQueueTask

from .support import (
    OVER,
    WORKER,
    claim_queue,
    completed,
    failed,
    fetch,
    make,
    settle_one,
    shown,
    state_of,
    status_of,
)
from .tasks import coroutine, mail, ok, other, with_context

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

BACKEND = "django_pgqueue.backend.PgQueueBackend"


@contextmanager
def alias(**params: Any) -> Iterator[Any]:
    """Give ``default`` other parameters, and return its backend."""
    with override_settings(
        TASKS={"default": {"BACKEND": BACKEND, "QUEUES": ["default", "emails"], **params}}
    ):
        yield task_backends["default"]


def jobs() -> int:
    return Job.objects.count()


# --- enqueue


def test_what_enqueue_returns() -> None:
    result = mail.enqueue("a@example.org", copies=2)
    assert isinstance(result.id, str)
    assert result.task == mail
    assert (result.status, result.backend) == (TaskResultStatus.READY, "default")
    assert (result.args, result.kwargs) == (["a@example.org"], {"copies": 2})
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None,) * 3
    assert (result.errors, result.worker_ids, result.attempts) == ([], [], 0)
    assert result.enqueued_at == Job.objects.get(pk=int(result.id)).enqueued_at


def test_the_tasks_options_are_stored_with_the_job() -> None:
    job = Job.objects.get(pk=int(mail.enqueue("a@example.org").id))
    assert (job.queue, job.priority, job.max_attempts, job.timeout) == ("emails", 7, 3, 12.5)
    assert (job.backoff_base, job.backoff_cap, job.metadata) == (1.5, 60.0, {"team": "shop"})
    assert (job.task_path, job.backend, job.args, job.kwargs) == (
        "tests.tasks.mail",
        "default",
        ["a@example.org"],
        {},
    )


def test_the_aliass_options_hold_for_a_task_without_its_own() -> None:
    options = {"max_attempts": 9, "timeout": 7.5, "backoff_base": 2.0, "backoff_cap": 30.0}
    with alias(OPTIONS=options):
        job = Job.objects.get(pk=int(ok.enqueue().id))
    assert {name: getattr(job, name) for name in options} == options


def test_enqueue_is_one_query_inside_a_transaction(django_assert_num_queries: Any) -> None:
    with transaction.atomic(), django_assert_num_queries(1):
        mail.enqueue("a@example.org")


def test_a_thousand_at_once_are_one_query(django_assert_num_queries: Any) -> None:
    calls = [(ok, (number,), {}) for number in range(1000)]
    with django_assert_num_queries(1):
        results = task_backends["default"].enqueue_many(calls)
    assert [result.args for result in results] == [[number] for number in range(1000)]
    ids = [int(result.id) for result in results]
    assert ids == sorted(ids)
    assert list(Job.objects.order_by("pk").values_list("args", flat=True)) == [
        [number] for number in range(1000)
    ]


@pytest.mark.django_db(transaction=True)
def test_many_at_once_are_all_or_nothing_also_without_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_from = ["SELECT 1/0", sql.ENQUEUE]

    def run_once(connection: Any, statement: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
        return run(connection, fail_from.pop(), params)

    run = managers.run
    monkeypatch.setattr(managers, "run", run_once)
    with pytest.raises(DataError, match="division"):
        task_backends["default"].enqueue_many([(ok, (), {})] * 1500)
    assert fail_from == [], "the first thousand had been inserted"
    assert jobs() == 0


def test_mixed_tasks_at_once() -> None:
    calls = [
        (ok, (1,), {}),
        (mail, ("a@example.org",), {}),
        (ok.using(run_after=timedelta(hours=1)), (), {"a": 1}),
    ]
    results = task_backends["default"].enqueue_many(calls)
    assert [result.task.name for result in results] == ["ok", "mail", "ok"]
    assert [status_of(int(result.id)) for result in results] == ["ready", "ready", "scheduled"]


def test_nothing_at_once_is_nothing(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert task_backends["default"].enqueue_many([]) == []


# --- the caller's transaction


@pytest.mark.django_db(transaction=True)
def test_a_job_is_there_with_its_transaction_and_not_before(second_connection: psycopg.Connection) -> None:
    def seen() -> int:
        return len(fetch(f"SELECT id FROM {sql.JOB}", connection=second_connection))

    with transaction.atomic():
        ok.enqueue()
        assert seen() == 0
        assert claim_queue(connection=second_connection) == []
    assert seen() == 1


def test_a_rolled_back_transaction_leaves_nothing() -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        ok.enqueue()
        raise ZeroDivisionError
    assert jobs() == 0


def test_a_rolled_back_savepoint_leaves_nothing_and_the_outer_job_stays() -> None:
    with transaction.atomic():
        outer = ok.enqueue()
        with suppress(ZeroDivisionError), transaction.atomic():
            ok.enqueue()
            raise ZeroDivisionError
    assert [job.pk for job in Job.objects.all()] == [int(outer.id)]


@pytest.mark.django_db(transaction=True)
def test_an_enqueue_that_fails_takes_the_callers_writes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "ENQUEUE_ONE", "SELECT 1/0")
    with suppress(DataError), transaction.atomic():
        make_group()
        ok.enqueue()
    assert groups() == 0


def make_group() -> None:
    from django.contrib.auth.models import Group  # noqa: PLC0415 - the caller's own row, of any app

    Group.objects.create(name="written by the caller")


def groups() -> int:
    return fetch("SELECT count(*) AS n FROM auth_group")[0]["n"]


# --- coroutines


def test_aenqueue_and_aget_result() -> None:
    async def enqueue_and_look() -> Any:
        result = await mail.aenqueue("a@example.org")
        return result, await mail.aget_result(result.id)

    result, found = async_to_sync(enqueue_and_look)()
    assert (found.id, found.args, found.status) == (result.id, ["a@example.org"], TaskResultStatus.READY)


def test_two_hundred_at_once_from_a_loop() -> None:
    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(ok.aenqueue(number) for number in range(200)))

    results = async_to_sync(all_at_once)()
    assert len({result.id for result in results}) == jobs() == 200


ASGI = """
import asyncio
import other_settings
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.db import connection
from django.http import JsonResponse
from django.urls import path
from asgiref.sync import sync_to_async
from tests.tasks import ok

async def view(request):
    results = await asyncio.gather(*(ok.aenqueue(number) for number in range(200)))
    return JsonResponse([int(result.id) for result in results], safe=False)

other_settings.urlpatterns.append(path("", view))

def sessions():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return cursor.fetchone()[0]

async def main():
    before = await sync_to_async(sessions)()
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    for _ in range(3):
        request = ApplicationCommunicator(get_asgi_application(), scope)
        await request.send_input({"type": "http.request", "body": b""})
        assert (await request.receive_output(30))["status"] == 200
        while (await request.receive_output(30)).get("more_body"):
            pass
        await request.wait()
    assert await sync_to_async(sessions)() <= before

asyncio.run(main())
"""


@pytest.mark.django_db(transaction=True)
def test_two_hundred_at_once_from_an_async_view_leave_no_connection(manage: Callable[..., Any]) -> None:
    """Three requests under ASGI. (C49)"""
    done = manage(code=ASGI)
    assert done.returncode == 0, done.stderr
    assert jobs() == 600


def test_enqueue_from_a_loop_is_refused_and_writes_nothing() -> None:
    async def by_mistake() -> None:
        ok.enqueue()

    with pytest.raises(SynchronousOnlyOperation):
        async_to_sync(by_mistake)()
    assert jobs() == 0


def test_aenqueue_refuses_as_enqueue_does() -> None:
    with pytest.raises(InvalidArguments, match="NUL"):
        async_to_sync(ok.aenqueue)("\x00")


# --- bad arguments: refused before any SQL, so that the caller's transaction goes on

DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]
CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)

BAD_ARGUMENTS = {
    "NUL": ("a\x00b", ValueError, r"args\[0\]"),
    "NUL in a list": (["ok", ["\x00"]], ValueError, r"args\[0\]\[1\]\[0\]"),
    "NUL as a key": ({"\x00": 1}, ValueError, r"args\[0\]"),
    "lone surrogate": ("\udcff", ValueError, "surrogate"),
    "file name": (os.fsdecode(b"\xff"), ValueError, "surrogate"),
    "NaN": (float("nan"), ValueError, "nan"),
    "infinity": ([float("inf")], ValueError, "inf"),
    "keys that are no strings": ({1: "a"}, ValueError, "keys are strings"),
    "too large": ("x" * 1_000_001, ValueError, "max_argument_bytes allows 1,000,000"),
    "too large in bytes": ("ü" * 500_001, ValueError, "max_argument_bytes"),
    "nested too deeply": (DEEP, ValueError, "nested too deeply"),
    "circular": (CIRCULAR, ValueError, "nested too deeply"),
    "a number of 5000 digits": (10**5000, ValueError, "args"),
    "bytes that are no text": (b"\xff", ValueError, r"args\[0\]"),
    "a set": ({1}, TypeError, r"args\[0\]"),
    "a model": (object(), TypeError, r"args\[0\]"),
    "a datetime": (datetime.now(UTC), TypeError, r"args\[0\]"),
    "a path": (Path("x"), TypeError, r"args\[0\]"),
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_bad_arguments_are_refused_before_any_sql(name: str, django_assert_num_queries: Any) -> None:
    value, error, named = BAD_ARGUMENTS[name]
    with transaction.atomic():
        with django_assert_num_queries(0):
            with pytest.raises(error, match=named) as raised:
                ok.enqueue(value)
            assert "tests.tasks.ok" in str(raised.value)
            with pytest.raises(error, match="kwargs"):
                ok.enqueue(key=value)
        assert ok.enqueue("the transaction goes on").id
    assert jobs() == 1


def test_2500_from_a_generator_are_three_inserts_in_order(django_assert_num_queries: Any) -> None:
    """Three statements and a savepoint around them."""
    with django_assert_num_queries(5):
        results = ok.enqueue_many((number,) for number in range(2500))
    assert [result.args for result in results] == [[number] for number in range(2500)]
    ids = [int(result.id) for result in results]
    assert ids == sorted(ids)
    assert jobs() == 2500


def test_a_bad_item_among_2500_is_named_before_any_sql(django_assert_num_queries: Any) -> None:
    bad = {1777: ("\x00",), 2001: (object(),)}
    with django_assert_num_queries(0), pytest.raises(ValueError, match=r"item 1777: .*args"):
        ok.enqueue_many(bad.get(number, (number,)) for number in range(2500))
    with django_assert_num_queries(0), pytest.raises(TypeError, match="item 3: 'text' is neither"):
        ok.enqueue_many([(1,), {"a": 1}, ok.bind(2), "text"])


def test_a_bad_item_of_many_is_named_by_its_place(django_assert_num_queries: Any) -> None:
    calls = [(ok, (number,), {}) for number in range(5)] + [(ok, ("\x00",), {})]
    with django_assert_num_queries(0), pytest.raises(ValueError, match="item 5"):
        task_backends["default"].enqueue_many(calls)


def test_the_limit_of_arguments_is_an_option() -> None:
    with alias(OPTIONS={"max_argument_bytes": 10}):
        ok.enqueue("1234")
        with pytest.raises(InvalidArguments, match=r"takes 15 bytes.*allows 10"):
            ok.enqueue("12345678901")


LOSSLESS = [1e23, -0.0, 10**400, {"z": 1, "a": [None, True]}, "\u2028 %s 👩‍👩‍👧", [], {}, ""]


@pytest.mark.parametrize("value", LOSSLESS, ids=shown)
def test_arguments_come_back_as_they_were(value: Any) -> None:
    found = ok.get_result(ok.enqueue(value, key=value).id)
    assert repr((found.args, found.kwargs)) == repr(([value], {"key": value}))


def test_what_json_has_no_word_for_becomes_its_nearest() -> None:
    found = ok.get_result(ok.enqueue((1, 2), b"text").id)
    assert found.args == [[1, 2], "text"]


# --- names


def test_a_queue_that_is_not_declared_is_refused() -> None:
    with pytest.raises(InvalidTask, match="emial"):
        ok.using(queue_name="emial")


def test_without_declared_queues_any_good_name_will_do() -> None:
    with alias(QUEUES=[]):
        assert status_of(int(ok.using(queue_name="anything at all").enqueue().id)) == "ready"
        for name in ("a,b", " a", "", "x" * 129, "a\x00", "\udcff"):
            with pytest.raises(InvalidTask, match="queue name"):
                ok.using(queue_name=name)


def test_a_task_path_longer_than_its_column_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PgQueueTask, "module_path", property(lambda self: "tests." + "x" * 300))
    with pytest.raises(InvalidTask, match="306 characters; 255 are allowed"):
        ok.enqueue()
    assert jobs() == 0


# --- times


def seconds_until(job_id: Any) -> float:
    """Return the seconds until a job is due, by the database's own clock."""
    seconds = "extract(epoch FROM run_at - clock_timestamp())::float8 AS seconds"
    return fetch(f"SELECT {seconds} FROM {sql.STATE} WHERE job_id = %s", [int(job_id)])[0]["seconds"]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
def test_an_aware_time_is_that_moment_in_any_zone(zone: str) -> None:
    moment = (datetime.now(UTC) + timedelta(hours=5)).astimezone(ZoneInfo(zone))
    result = ok.using(run_after=moment).enqueue()
    assert abs(seconds_until(result.id) - 5 * 3600) < 60
    assert Job.objects.get(pk=int(result.id)).run_after == moment
    assert ok.get_result(result.id).task.run_after == moment


def test_a_timedelta_counts_from_now_by_the_databases_clock() -> None:
    result = ok.using(run_after=timedelta(hours=2)).enqueue()
    assert abs(seconds_until(result.id) - 2 * 3600) < 60
    assert status_of(int(result.id)) == "scheduled"
    assert status_of(int(ok.using(run_after=timedelta(0)).enqueue().id)) == "ready"
    assert status_of(int(ok.using(run_after=timedelta(days=-5)).enqueue().id)) == "ready"


@pytest.mark.parametrize("year", [1, 1583, 1969, 9998])
def test_a_far_time_is_stored_and_read_back(year: int) -> None:
    moment = datetime(year, 6, 1, tzinfo=UTC)
    result = ok.using(run_after=moment).enqueue()
    assert ok.get_result(result.id).task.run_after == moment
    claimed = claim_queue()
    assert [job.run_after for job in claimed] == ([moment] if year < 2000 else [])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York", "Pacific/Kiritimati"])
def test_without_time_zones_every_time_is_of_the_projects_zone(zone: str) -> None:
    with override_settings(USE_TZ=False, TIME_ZONE=zone):
        local = datetime.now() + timedelta(hours=5)  # noqa: DTZ005 - naive, as such a project has it
        result = ok.using(run_after=naive_in(zone, hours=5)).enqueue()
        assert abs(seconds_until(result.id) - 5 * 3600) < 60
        assert abs(seconds_until(ok.enqueue().id)) < 60
        found = ok.get_result(result.id)
        assert found.task.run_after == found.task.run_after.replace(tzinfo=None)
        assert found.enqueued_at.tzinfo is None
        for far in (datetime(1, 1, 3), datetime(9999, 12, 29)):  # noqa: DTZ001
            assert ok.get_result(ok.using(run_after=far).enqueue().id).task.run_after == far
        (claimed, *_) = claim_queue()
        assert settle_one("fail", claimed.fence, delay=60.0) == "done"
        assert abs(seconds_until(claimed.job_id) - 60) < 30
        assert ok.get_result(str(claimed.job_id)).errors
        assert local.tzinfo is None


def naive_in(zone: str, *, hours: float) -> datetime:
    return (datetime.now(ZoneInfo(zone)) + timedelta(hours=hours)).replace(tzinfo=None)


# --- the signal


@pytest.fixture
def received() -> Iterator[list[Any]]:
    """What task_enqueued said, in order."""
    got: list[Any] = []

    def receive(sender: Any, task_result: Any, **kwargs: Any) -> None:
        got.append((sender, task_result))

    signals.task_enqueued.connect(receive)
    yield got
    signals.task_enqueued.disconnect(receive)


def test_task_enqueued_is_sent_once_for_each_job_with_its_result(received: list[Any]) -> None:
    result = mail.enqueue("a@example.org")
    results = task_backends["default"].enqueue_many([(ok, (), {}), (other, (), {})])
    assert [sent for _, sent in received] == [result, *results]
    assert {sender for sender, _ in received} == {type(task_backends["default"])}


def test_task_enqueued_is_not_sent_for_what_was_refused(received: list[Any]) -> None:
    with pytest.raises(ValueError):
        ok.enqueue("\x00")
    assert received == []


def test_a_receiver_that_raises_changes_nothing_and_is_named(
    received: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    def failing_receiver(**kwargs: Any) -> None:
        raise RuntimeError("broken receiver")

    signals.task_enqueued.connect(failing_receiver)
    try:
        with caplog.at_level(logging.ERROR, "django_pgqueue"):
            result = ok.enqueue()
    finally:
        signals.task_enqueued.disconnect(failing_receiver)
    assert status_of(int(result.id)) == "ready"
    assert len(received) == 1
    assert "receiver_failed signal=task_enqueued" in caplog.text
    assert "failing_receiver" in caplog.text
    assert "broken receiver" in caplog.text


# --- results


def result_of(made: Any) -> Any:
    return ok.get_result(str(made.job_id))


@pytest.mark.parametrize(
    ("status", "seen"),
    [
        ("scheduled", TaskResultStatus.READY),
        ("ready", TaskResultStatus.READY),
        ("running", TaskResultStatus.RUNNING),
        ("succeeded", TaskResultStatus.SUCCESSFUL),
        ("dead", TaskResultStatus.FAILED),
        ("cancelled", TaskResultStatus.FAILED),
    ],
)
def test_the_result_of_every_state(status: str, seen: TaskResultStatus) -> None:
    made = make(status)
    result = result_of(made)
    assert (result.id, result.status, result.is_finished) == (
        str(made.job_id),
        seen,
        status in ("succeeded", "dead", "cancelled"),
    )
    assert (result.finished_at is not None) == result.is_finished
    assert result.attempts == {"ready": 0, "cancelled": 0}.get(status, 1)
    assert result.worker_ids == [WORKER.worker_id] * result.attempts
    assert (result.started_at is not None) == (result.attempts > 0)
    assert result.last_attempted_at == result.started_at
    if status != "succeeded":
        with pytest.raises(ValueError):
            result.return_value  # noqa: B018


def test_the_result_of_a_success_holds_what_the_task_returned() -> None:
    (claimed,) = [make("running").claimed]
    Job.objects.complete([completed(claimed.fence, return_value='{"a":[-0.0]}')], worker=WORKER)
    result = ok.get_result(str(claimed.job_id))
    assert repr(result.return_value) == "{'a': [-0.0]}"
    assert result.errors == []


def test_the_result_of_a_failure_holds_every_error_in_order() -> None:
    made = make("running", failures=2, max_attempts=5)
    last = failed(made.fence, exception_class="builtins.KeyError", traceback="Traceback: last", final=True)
    Job.objects.fail([last], worker=WORKER)
    result = result_of(made)
    assert [error.exception_class_path for error in result.errors] == ["builtins.ValueError"] * 2 + [
        "builtins.KeyError"
    ]
    assert result.errors[-1].traceback == "Traceback: last"
    assert result.errors[-1].exception_class is KeyError
    assert (result.attempts, result.status) == (3, TaskResultStatus.FAILED)
    assert result.started_at < result.last_attempted_at


def test_a_lost_attempt_is_an_error_that_says_what_happened() -> None:
    made = make("running", lease=OVER, max_attempts=1)
    Job.objects.rescue(limit=10, server_up=0.0)
    (error,) = result_of(made).errors
    assert error.exception_class_path == "django_pgqueue.exceptions.LeaseExpired"
    assert WORKER.worker_id in error.traceback


def test_a_cancelled_job_has_an_error_that_says_so() -> None:
    (error,) = result_of(make("cancelled")).errors
    assert error.exception_class_path == "django_pgqueue.exceptions.Cancel"
    assert "cancelled" in error.traceback


def test_a_snoozed_attempt_is_an_attempt_and_no_error() -> None:
    result = result_of(make("scheduled"))
    assert (result.attempts, result.errors, result.status) == (1, [], TaskResultStatus.READY)


def test_a_retried_job_keeps_its_errors_and_is_ready_again() -> None:
    made = make("dead")
    Job.objects.retry([made.job_id])
    result = result_of(made)
    assert (result.status, result.finished_at, len(result.errors)) == (TaskResultStatus.READY, None, 1)


def test_refresh_reads_the_job_again() -> None:
    result = ok.enqueue(1)
    (claimed,) = claim_queue()
    result.refresh()
    assert result.status == TaskResultStatus.RUNNING
    settle_one("complete", claimed.fence, return_value="5")
    async_to_sync(result.arefresh)()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 5)
    Job.objects.prune("succeeded", age=0.0, limit=10)
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


@pytest.mark.django_db(transaction=True)
def test_an_attempt_that_ends_while_the_result_is_read_is_counted_once(
    second_connection: psycopg.Connection,
) -> None:
    made = make("running")

    def end_it_before_the_attempts_are_read(execute: Callable[..., Any], query: str, *rest: Any) -> Any:
        if sql.ATTEMPT in query:
            settle_one("fail", made.fence, connection=second_connection)
        return execute(query, *rest)

    with connection.execute_wrapper(end_it_before_the_attempts_are_read):
        result = result_of(made)
    assert (result.status, result.attempts, result.errors) == (TaskResultStatus.RUNNING, 1, [])
    assert result_of(made).attempts == 1


JUNK = [
    *("nope", "", " ", "0", "-1", "1.0", "1e3", "1; DROP TABLE", "None", "1\x00", "\udcff", "٣", "１"),
    *("9" * 19, "9" * 25, str(2**63), "00000000-0000-0000-0000-000000000000"),
    *(None, 1.5, [], object(), b"1", True),
]


@pytest.mark.parametrize("junk", JUNK, ids=shown)
def test_a_junk_id_is_of_no_result(junk: Any) -> None:
    ok.enqueue()
    for get in (task_backends["default"].get_result, async_to_sync(task_backends["default"].aget_result)):
        with pytest.raises(TaskResultDoesNotExist):
            get(junk)


def test_a_pruned_or_unknown_id_is_of_no_result() -> None:
    made = make("succeeded")
    Job.objects.prune("succeeded", age=0.0, limit=10)
    for missing in (str(made.job_id), str(made.job_id + 10**6)):
        with pytest.raises(TaskResultDoesNotExist):
            ok.get_result(missing)
        with pytest.raises(TaskResultDoesNotExist):
            async_to_sync(ok.aget_result)(missing)


def test_the_id_of_another_alias_is_of_no_result_here() -> None:
    params = {"BACKEND": BACKEND, "QUEUES": []}
    with override_settings(TASKS={"default": params, "second": params}):
        result = ok.using(backend="second").enqueue()
        assert task_backends["second"].get_result(result.id).id == result.id
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["default"].get_result(result.id)


def test_the_id_of_another_task_is_a_mismatch() -> None:
    result = ok.enqueue()
    with pytest.raises(TaskResultMismatch):
        other.get_result(result.id)
    assert task_backends["default"].get_result(result.id).task == ok


def test_a_result_has_the_task_with_the_options_of_its_enqueueing() -> None:
    result = mail.using(priority=-5, queue_name="other").enqueue("a@example.org")
    found = mail.get_result(result.id).task
    assert (found.priority, found.queue_name, found.func) == (-5, "other", mail.func)


@pytest.mark.parametrize("task", [ok, coroutine, with_context])
def test_every_kind_of_task_can_be_enqueued_and_found(task: PgQueueTask) -> None:
    result = task.enqueue(1)
    assert task.get_result(result.id).task == task


# --- tasks whose code is gone

BROKEN = {
    "syntax": "def f(:",
    "import": "import no_such_module_anywhere",
    "exit": "raise SystemExit(3)",
    "attribute": "None.no_such_attribute",
}


@pytest.fixture
def broken_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that cannot be imported."""
    for name, code in BROKEN.items():
        (tmp_path / f"broken_{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)


GONE = ["tests.tasks.no_such", "tests.no_such.task", "no_such_package.tasks.task", "tests.tasks.not_a_task",
        "tests.tasks.plain_function", "__main__.f", "nodots", "tests.tasks.ok.func",
        "os.system", "builtins.eval", "subprocess.Popen", "django_pgqueue.tasks.PgQueueTask",
        "django_pgqueue.task", "tests.tasks.ok.__class__", "tests.tasks.__builtins__", "tests.tasks.",
        ".tasks.ok", "..", "a..b"]  # fmt: skip


UNREADABLE = [path for path in GONE if "." in path]
UNREADABLE += [f"broken_{name}.f" for name in BROKEN]


@pytest.mark.parametrize("path", UNREADABLE)
@pytest.mark.usefixtures("broken_modules")
def test_the_result_of_a_task_whose_code_is_gone_can_be_read(path: str) -> None:
    made = make("dead", task_path=path)
    result = task_backends["default"].get_result(str(made.job_id))
    assert (result.status, result.task.module_path) == (TaskResultStatus.FAILED, path)
    assert (result.task.queue_name, result.task.priority, result.task.backend) == ("default", 0, "default")
    assert len(result.errors) == 1
    with pytest.raises(UnknownTask, match=path):
        result.task.func()
    assert repr(result)


@pytest.mark.parametrize("path", GONE)
def test_a_path_that_leads_to_no_task_is_unknown(path: str) -> None:
    with pytest.raises(UnknownTask, match=path):
        resolve_task(path)


@pytest.mark.parametrize(
    ("name", "error"),
    [("syntax", SyntaxError), ("import", ImportError), ("exit", SystemExit), ("attribute", AttributeError)],
)
@pytest.mark.usefixtures("broken_modules")
def test_what_a_module_raises_at_its_import_goes_through(name: str, error: type[BaseException]) -> None:
    """A module that is there and broken is an error of the task, not a task of a newer release."""
    with pytest.raises(error) as raised:
        resolve_task(f"broken_{name}.f")
    assert not isinstance(raised.value, UnknownTask)


# --- a read replica


REPLICA = """
from uuid import uuid4
from django.db import connections
from django_pgqueue.compat import TaskResultStatus
from django_pgqueue.models import Job
from django_pgqueue.records import Failed, WorkerIdentity
from tests.tasks import ok

with connections["replica"].cursor() as cursor:
    cursor.execute("SHOW transaction_read_only")
    assert cursor.fetchone() == ("on",)

def refuse(*args):
    raise AssertionError("the replica was asked")

with connections["replica"].execute_wrapper(refuse):
    result = ok.enqueue(1)
    assert ok.get_result(result.id).status == TaskResultStatus.READY
    (claimed,) = Job.objects.claim("default", limit=5, worker_id="w", lease_token=uuid4(), lease=30.0)
    assert Job.objects.renew([claimed.fence], lease=30.0)[claimed.fence].result == "done"
    result.refresh()
    assert result.status == TaskResultStatus.RUNNING
    Job.objects.cancel([claimed.job_id])
    end = Failed(claimed.fence, 1.0, 0.0, 0.0, False, "x", "x", "x", "x")
    assert Job.objects.fail([end], worker=WorkerIdentity("w", "h", 1))[claimed.fence].status == "cancelled"
    assert Job.objects.retry([claimed.job_id]).retried == [claimed.job_id]
    Job.objects.rescue(limit=1, server_up=0.0)
    Job.objects.promote(limit=1)
    Job.objects.promote_now([claimed.job_id])
    Job.objects.prune("dead", age=0.0, limit=1)
    Job.objects.next_run_at()
    Job.objects.ready_queues()
"""


class ReadsGoElsewhere:
    """A router as projects with a replica have it."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "default"


@pytest.mark.django_db(transaction=True)
def test_nothing_is_asked_of_a_replica(manage: Callable[..., Any]) -> None:
    database = {
        name: connection.settings_dict[name]
        for name in ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT")
    }
    read_only = database | {"OPTIONS": {"options": "-c default_transaction_read_only=on"}}
    done = manage(
        code=REPLICA,
        DATABASES={"default": database | {"OPTIONS": {}}, "replica": read_only},
        DATABASE_ROUTERS=[f"{__name__}.ReadsGoElsewhere"],
    )
    assert done.returncode == 0, done.stderr
    assert jobs() == 1


# --- the flags


def test_the_backend_says_what_it_can() -> None:
    backend = task_backends["default"]
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority
    assert backend.task_class is PgQueueTask
    assert state_of(int(ok.enqueue().id)).status == "ready"
