"""Waiting for a result, and how far a running task says it is."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction

from django_pgqueue import sql
from django_pgqueue import waiting as waiting_module
from django_pgqueue.models import Job
from django_pgqueue.results import Progress

from .support import claim, fetch, settle_one
from .tasks import ok
from .waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def in_thread() -> Iterator[Callable[..., Future]]:
    """Run a call in a thread that closes its connections."""

    def run(function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        finally:
            connections.close_all()

    with ThreadPoolExecutor() as pool:
        yield lambda function, *args: pool.submit(run, function, *args)


def finish(job_id: int) -> None:
    settle_one("complete", claim(job_id).fence, return_value="42")


def somebody_waits() -> bool:
    return bool(
        fetch(
            "SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = %s"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [sql.LOCK_CLASS],
        )
    )


def test_wait_returns_when_the_job_has_ended(in_thread: Callable[..., Future]) -> None:
    result = ok.enqueue()
    waiting = in_thread(result.wait, 30.0)
    wait_until(somebody_waits)
    finish(int(result.id))
    assert waiting.result(10) is True
    assert result.return_value == 42


def test_a_notice_wakes_the_waiter_before_its_next_look(
    in_thread: Callable[..., Future], second_connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next look would be a minute away."""
    monkeypatch.setattr(waiting_module, "LOOK_EVERY", 60.0)
    result = ok.enqueue()
    waiting = in_thread(result.wait, 60.0)
    wait_until(somebody_waits)
    job = claim(int(result.id))
    settle_one("complete", job.fence)
    heard = second_connection.execute(sql.NOTIFY_WAITERS).fetchall()
    assert len(heard) == 1, "a waiter is there and nobody would notify it"
    assert waiting.result(20.0) is True


def test_nobody_is_notified_while_nobody_waits(second_connection: psycopg.Connection) -> None:
    assert second_connection.execute(sql.NOTIFY_WAITERS).fetchall() == []


def test_wait_gives_up_after_its_timeout() -> None:
    result = ok.enqueue()
    began = time.monotonic()
    assert result.wait(0.2) is False
    assert time.monotonic() - began < 5.0
    assert not result.is_finished
    wait_until(lambda: not somebody_waits(), message="The session that waited is still there")


def test_wait_for_an_ended_job_returns_at_once() -> None:
    result = ok.enqueue()
    finish(int(result.id))
    assert result.wait(30.0) is True


def test_wait_inside_a_transaction_is_refused() -> None:
    with transaction.atomic():
        result = ok.enqueue()
        with pytest.raises(RuntimeError, match="inside a transaction"):
            result.wait(1.0)


def test_wait_survives_the_loss_of_its_connection(
    in_thread: Callable[..., Future], second_connection: psycopg.Connection
) -> None:
    result = ok.enqueue()
    waiting = in_thread(result.wait, 30.0)
    wait_until(somebody_waits)
    second_connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE '%waiter%'"
    )
    finish(int(result.id))
    assert waiting.result(20) is True


def test_async_wait_leaves_the_loop_free() -> None:
    result = ok.enqueue()

    async def scenario() -> bool:
        waiting = asyncio.ensure_future(result.async_wait(30.0))
        ticks = 0
        while not somebody_waits_seen.is_set() and ticks < 1000:
            ticks += 1
            await asyncio.sleep(0.01)
        ended = await waiting
        await sync_to_async(connections.close_all)()
        return ended

    somebody_waits_seen = threading.Event()

    def end_it() -> None:
        wait_until(somebody_waits)
        finish(int(result.id))
        somebody_waits_seen.set()
        connections.close_all()

    thread = threading.Thread(target=end_it)
    thread.start()
    assert asyncio.run(scenario()) is True
    thread.join()
    assert result.return_value == 42


def test_progress_is_read_from_the_result() -> None:
    result = ok.enqueue()
    assert result.progress is None
    job = claim(int(result.id))
    report = '{"done": 3, "total": 8, "message": "pages"}'
    assert Job.objects.report_progress([(job.fence, report)]) == [job.job_id]
    result.refresh()
    assert result.progress == Progress(3, 8, "pages")
    settle_one("complete", job.fence)
    result.refresh()
    assert result.progress == Progress(3, 8, "pages")


def test_progress_of_a_lost_lease_changes_nothing() -> None:
    result = ok.enqueue()
    job = claim(int(result.id))
    stale = job.fence._replace(lease_version=job.lease_version - 1)
    assert Job.objects.report_progress([(stale, '{"done": 1, "total": null, "message": ""}')]) == []
    result.refresh()
    assert result.progress is None
