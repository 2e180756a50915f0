"""NOTIFY: after the commit, only when somebody sleeps on that queue, once, and never needed."""

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.test import override_settings

from django_pgqueue import sql, wakeups
from django_pgqueue.compat import task_backends
from django_pgqueue.enqueueing import prepare_all
from django_pgqueue.models import Job

from .support import fetch, status_of
from .tasks import mail, ok
from .waiting import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("invariants")]

END = "the end of what was heard"
Heard = Callable[[], list[str]]


@pytest.fixture
def heard(connect: Callable[[], psycopg.Connection]) -> Heard:
    """Return, when called, the payloads that a listener has heard since the last call, in order."""
    listener = connect()
    listener.execute(sql.LISTEN)

    def heard() -> list[str]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [sql.CHANNEL, END])
        payloads = []
        for notice in listener.notifies(timeout=10):
            if notice.payload == END:
                return payloads
            payloads.append(notice.payload)
        raise AssertionError("the listener heard nothing at all")

    return heard


@pytest.fixture
def sleeper(connect: Callable[[], psycopg.Connection]) -> Callable[..., psycopg.Connection]:
    """Make a session that sleeps on queues."""

    def sleep(*queues: str) -> psycopg.Connection:
        session = connect()
        for queue in queues:
            session.execute(sql.SLEEP, {"queue": queue})
        return session

    return sleep


def test_nobody_asleep_no_notice(heard: Heard) -> None:
    ok.enqueue()
    assert heard() == []


def test_a_sleeper_is_woken_with_the_name_of_its_queue(heard: Heard, sleeper: Callable[..., Any]) -> None:
    sleeper("default")
    ok.enqueue()
    mail.enqueue("a@example.org")
    assert heard() == ["default"]


def test_who_serves_any_queue_is_woken_by_each(heard: Heard, sleeper: Callable[..., Any]) -> None:
    sleeper("*")
    ok.enqueue()
    mail.enqueue("a@example.org")
    assert heard() == ["default", "emails"]


def test_after_the_commit_only(
    heard: Heard, sleeper: Callable[..., Any], django_assert_num_queries: Any
) -> None:
    sleeper("default")
    with transaction.atomic():
        with django_assert_num_queries(2) as queries:
            ok.enqueue()
            ok.enqueue()
        assert not any("pg_notify" in query["sql"] for query in queries)
    assert heard() == ["default"]


def test_outside_a_transaction_the_job_and_the_notice_are_one_statement(
    heard: Heard, sleeper: Callable[..., Any], django_assert_num_queries: Any
) -> None:
    sleeper("default")
    with django_assert_num_queries(1):
        ok.enqueue()
    assert heard() == ["default"]


def test_a_notice_that_would_wait_for_anothers_commit_comes_after_the_own(
    heard: Heard, sleeper: Callable[..., Any], second_connection: psycopg.Connection
) -> None:
    sleeper("default")
    carries_one = f"SELECT pg_advisory_xact_lock({sql.LOCK_CLASS}, hashtext('{sql.CHANNEL}'))"
    with second_connection.transaction():
        second_connection.execute(carries_one)
        ok.enqueue()
        assert heard() == ["default"]


def test_never_after_a_rollback(heard: Heard, sleeper: Callable[..., Any]) -> None:
    sleeper("default")
    with suppress(ZeroDivisionError), transaction.atomic():
        ok.enqueue()
        raise ZeroDivisionError
    with transaction.atomic(), suppress(ZeroDivisionError), transaction.atomic():
        ok.enqueue()
        raise ZeroDivisionError
    assert heard() == []


def test_one_notice_for_each_queue_of_a_bulk(heard: Heard, sleeper: Callable[..., Any]) -> None:
    sleeper("default", "emails")
    calls = [(ok, (), {})] * 5 + [(mail, ("a@example.org",), {})] * 5
    with transaction.atomic():
        task_backends["default"].enqueue_many(calls)
    assert sorted(heard()) == ["default", "emails"]


def test_one_notice_for_a_queue_and_a_transaction(heard: Heard, sleeper: Callable[..., Any]) -> None:
    sleeper("default", "emails")
    with transaction.atomic():
        for _ in range(20):
            ok.enqueue()
            with transaction.atomic():
                ok.enqueue()
            mail.enqueue("a@example.org")
    assert heard() == ["default", "emails"]


def test_a_notice_of_a_savepoint_that_was_rolled_back_does_not_stand_for_others(
    heard: Heard, sleeper: Callable[..., Any]
) -> None:
    sleeper("default")
    with transaction.atomic():
        with suppress(ZeroDivisionError), transaction.atomic():
            ok.enqueue()
            raise ZeroDivisionError
        ok.enqueue()
    assert heard() == ["default"]
    with transaction.atomic():
        with transaction.atomic():
            ok.enqueue()
        ok.enqueue()
    assert set(heard()) == {"default"}


@pytest.mark.parametrize("run_after", [timedelta(seconds=5), datetime(2031, 1, 1, tzinfo=UTC)], ids=str)
def test_never_for_a_job_of_the_future(heard: Heard, sleeper: Callable[..., Any], run_after: Any) -> None:
    sleeper("default", "*")
    ok.using(run_after=run_after).enqueue()
    assert heard() == []


def test_a_sleeper_that_woke_or_died_is_not_woken(heard: Heard, sleeper: Callable[..., Any]) -> None:
    awake, dead = sleeper("default"), sleeper("default")
    awake.execute(sql.AWAKE, {"queue": "default"})
    dead.close()
    ok.enqueue()
    assert heard() == []


def test_an_enqueuers_own_try_is_not_taken_for_a_sleeper(
    heard: Heard, sleeper: Callable[..., Any], second_connection: psycopg.Connection
) -> None:
    second_connection.execute(sql.NOTIFY_SLEEPERS, {"queues": ["default"]})
    ok.enqueue()
    assert heard() == []
    sleeper("default")
    ok.enqueue()
    assert heard() == ["default"]


@pytest.mark.parametrize("queue", ["default", "*"])
def test_who_holds_the_key_as_enqueuers_do_is_looked_at_after_the_commit(
    heard: Heard, sleeper: Callable[..., Any], second_connection: psycopg.Connection, queue: str
) -> None:
    """Whether somebody sleeps beside it does not show while it lasts."""
    key = f"{sql.LOCK_CLASS}, hashtext('{queue}')"
    second_connection.execute(f"SELECT pg_advisory_lock({key})")
    assert sleepers_seen() is None
    second_connection.execute(f"SELECT pg_advisory_unlock({key})")
    assert sleepers_seen() is False
    sleeper(queue)
    assert sleepers_seen() is True
    assert heard() == []


def sleepers_seen() -> bool | None:
    """Enqueue a job by the verb alone; return what its statement says."""
    prepared = prepare_all([(ok, (), {})], task_backends["default"])
    return Job.objects.enqueue(prepared[0].job, backend="default", look=True).sleepers


def test_looking_leaves_no_lock_behind(sleeper: Callable[..., Any]) -> None:
    own = "SELECT count(*) AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    ok.enqueue()
    assert fetch(own)[0]["locks"] == 0
    sleeper("default", "*")
    ok.enqueue()
    assert fetch(own)[0]["locks"] == 0


def test_who_falls_asleep_during_a_transaction_is_woken_at_its_commit(
    heard: Heard, sleeper: Callable[..., Any]
) -> None:
    """The sleeper looks for a while, and might look no more when a later commit comes."""
    with transaction.atomic():
        ok.enqueue()
        sleeper("default")
        wait_for(wakeups.SEEN_FOR)
    assert heard() == ["default"]
    with transaction.atomic():  # a bulk does not look before its commit
        ok.enqueue_many([(), ()])
        sleeper("default")
    assert heard() == ["default"]


def test_a_short_transaction_is_left_to_those_who_have_just_fallen_asleep(
    heard: Heard, sleeper: Callable[..., Any], django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(3), transaction.atomic():  # BEGIN and COMMIT among them
        ok.enqueue()
    with django_assert_num_queries(1):
        ok.enqueue()
    with transaction.atomic():
        ok.enqueue()
        sleeper("default")
    assert heard() == []


def test_a_notice_that_must_go_out_is_not_taken_for_one_that_may_not(
    heard: Heard, sleeper: Callable[..., Any]
) -> None:
    with transaction.atomic():
        ok.enqueue()
        sleeper("default")
        ok.enqueue()
    assert heard() == ["default"]


def test_many_who_enqueue_at_once_are_not_taken_for_sleepers(
    heard: Heard, second_connection: psycopg.Connection
) -> None:
    """Another enqueuer holds the key for its moment: that moment is held open here."""
    for queue in ("default", "*"):
        second_connection.execute(f"SELECT pg_advisory_lock({sql.LOCK_CLASS}, hashtext(%s))", [queue])
        ok.enqueue()
        ok.enqueue_many([(), ()])
        second_connection.execute(f"SELECT pg_advisory_unlock({sql.LOCK_CLASS}, hashtext(%s))", [queue])
    assert heard() == []


def test_looking_for_sleepers_leaves_no_lock(second_connection: psycopg.Connection) -> None:
    with transaction.atomic():
        ok.enqueue()
        held = second_connection.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        assert held.fetchone() == (0,)


def test_the_option_turns_it_off(heard: Heard, sleeper: Callable[..., Any]) -> None:
    sleeper("default")
    off = {"BACKEND": "django_pgqueue.backend.PgQueueBackend", "OPTIONS": {"notify": False}}
    with override_settings(TASKS={"default": off}):
        ok.enqueue()
    assert heard() == []


def test_a_notice_that_fails_is_logged_and_harms_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sleeper: Callable[..., Any]
) -> None:
    sleeper("default")
    for statement in ("NOTIFY", "NOTIFY_SLEEPERS"):
        monkeypatch.setattr(sql, statement, "SELECT 1/0 WHERE %(queues)s::text[] IS NOT NULL")
    with caplog.at_level(logging.WARNING, "django_pgqueue"):
        with transaction.atomic():
            results = [ok.enqueue()]
        results += ok.enqueue_many([(), ()])
    assert {status_of(int(result.id)) for result in results} == {"ready"}
    assert caplog.text.count("notify_failed queues=default") == 2


def test_a_lost_connection_at_the_notice_harms_nobody(
    monkeypatch: pytest.MonkeyPatch, sleeper: Callable[..., Any]
) -> None:
    sleeper("default")

    def lost(*args: Any) -> Any:
        raise OperationalError("the connection is lost")

    with transaction.atomic():
        result = ok.enqueue()
        monkeypatch.setattr(connection, "cursor", lost)
    monkeypatch.undo()
    assert status_of(int(result.id)) == "ready"


@pytest.fixture
def manual_transactions() -> Iterator[None]:
    """Autocommit off: the caller commits by hand."""
    transaction.set_autocommit(False)
    yield
    transaction.rollback()
    transaction.set_autocommit(True)


def test_a_caller_who_commits_by_hand_can_enqueue(manual_transactions: None) -> None:
    result = ok.enqueue()
    transaction.commit()
    assert status_of(int(result.id)) == "ready"


def test_notify_of_nothing_asks_nothing(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        wakeups.notify_after_commit([], using="default")
