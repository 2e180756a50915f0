"""Between tasks a thread's connections are as clean as new ones, kept where a new one would be dear."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import DataError, connection, connections
from django.db.backends.signals import connection_created

from django_pgqueue.worker import cleanup

InThread = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def in_thread(transactional_db: None) -> Iterator[InThread]:
    """Run calls in a thread of its own, which has its own connections, as a worker's task threads do."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        yield lambda call: thread.submit(call).result()
        thread.submit(connections.close_all).result()


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let connections be kept, as a child does at its start, with these settings of the database."""

    def keep(**settings: Any) -> None:
        monkeypatch.setattr(cleanup, "_wiped", set())
        for name, value in {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False, **settings}.items():
            monkeypatch.setitem(connection.settings_dict, name, value)
        cleanup.keep_connections()

    return keep


def backend_pid() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def shown(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return cursor.fetchone()[0]


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_a_connection_that_would_be_closed_after_each_task_is_kept(in_thread: InThread, keeping) -> None:
    keeping()
    first = in_thread(backend_pid)
    in_thread(cleanup.after_task)
    in_thread(cleanup.before_task)
    assert in_thread(backend_pid) == first


def test_session_state_of_a_task_is_gone_for_the_next(in_thread: InThread, keeping) -> None:
    keeping()
    in_thread(lambda: run("SET statement_timeout = '7s'"))
    in_thread(lambda: run("CREATE TEMP TABLE leftover (id int)"))
    in_thread(lambda: run("SET TIME ZONE 'Asia/Tokyo'"))
    in_thread(cleanup.after_task)
    assert in_thread(lambda: shown("statement_timeout")) == "0"
    assert in_thread(lambda: shown("timezone")) == "UTC"
    in_thread(lambda: run("CREATE TEMP TABLE leftover (id int)"))


def test_receivers_of_connection_created_see_the_wiped_connection(in_thread: InThread, keeping) -> None:
    def receiver(connection: Any, **kwargs: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '3s'")

    keeping()
    connection_created.connect(receiver)
    try:
        in_thread(lambda: run("SET lock_timeout = '9s'"))
        in_thread(cleanup.after_task)
        assert in_thread(lambda: shown("lock_timeout")) == "3s"
    finally:
        connection_created.disconnect(receiver)


@pytest.mark.parametrize("end", ["BEGIN", "BEGIN; SELECT 1/0"])
def test_a_connection_left_in_a_transaction_is_dropped(in_thread: InThread, keeping, end: str) -> None:
    keeping()
    first = in_thread(backend_pid)
    with contextlib.suppress(DataError):
        in_thread(lambda: run(end))
    in_thread(cleanup.after_task)
    assert in_thread(backend_pid) != first


def test_connections_with_prepared_statements_are_not_kept(in_thread: InThread, keeping) -> None:
    keeping(OPTIONS={**connection.settings_dict["OPTIONS"], "prepare_threshold": 1})
    first = in_thread(backend_pid)
    in_thread(cleanup.after_task)
    assert in_thread(backend_pid) != first


@pytest.mark.parametrize("age", [None, 60])
def test_a_project_that_keeps_connections_itself_keeps_their_state(in_thread: InThread, keeping, age) -> None:
    keeping(CONN_MAX_AGE=age)
    in_thread(lambda: run("SET statement_timeout = '7s'"))
    in_thread(cleanup.after_task)
    assert in_thread(lambda: shown("statement_timeout")) == "7s"
