"""The backend: enqueue in the caller's transaction, from coroutines too, its signal, its flags."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DataError, connection, transaction

from django_pgqueue import managers, sql
from django_pgqueue.compat import (
    TaskResultStatus,
    signals,
    task_backends,
)
from django_pgqueue.exceptions import InvalidArguments
from django_pgqueue.models import Job
from django_pgqueue.tasks import PgQueueTask

from .aliases import alias, jobs
from .support import (
    claim_queue,
    fetch,
    state_of,
    status_of,
)
from .tasks import mail, ok, other

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

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
