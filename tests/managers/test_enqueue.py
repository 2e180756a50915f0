"""enqueue and enqueue_many: in the caller's transaction, in the order given, a statement per thousand."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import DataError, IntegrityError, connection, transaction

from django_pgqueue.models import Job
from django_pgqueue.records import NewJob
from tests.support import enqueue, enqueue_many, fetch, hot_path, rows_of, state_of, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

NEW = NewJob("tests.tasks.ok")


def insert(*jobs: NewJob, **options: object) -> list[int]:
    return [row.job_id for row in Job.objects.enqueue_many(jobs, backend="default", **options)]


def test_what_a_job_is_at_first() -> None:
    row = Job.objects.enqueue(NEW, backend="other")
    stored = rows_of(row.job_id)
    (job,), (state,) = stored["job"], stored["state"]
    assert job == {
        "id": row.job_id,
        "backend": "other",
        "task_path": "tests.tasks.ok",
        "args": [],
        "kwargs": {},
        "queue": "default",
        "priority": 0,
        "run_after": None,
        "enqueued_at": row.enqueued_at,
        "metadata": {},
        "max_attempts": 5,
        "timeout": None,
        "backoff_base": 5.0,
        "backoff_cap": 3600.0,
        "parent_id": None,
    }
    assert isinstance(state.pop("position"), int)
    known = {
        "job_id": row.job_id,
        "queue": "default",
        "priority": 0,
        "status": "ready",
        "run_at": row.enqueued_at,
        "attempts": 0,
        "attempts_allowed": 5,
        "lease_version": 0,
    }
    assert state == dict.fromkeys(state) | known, "everything else is NULL"


def test_every_field_reaches_its_column() -> None:
    run_after = datetime(2031, 2, 3, 4, 5, 6, 789, tzinfo=UTC)
    given = {
        "task_path": "shop.tasks.f",
        "args": '[{"z":1,"a":-0.0}]',
        "kwargs": '{"b":"%s"}',
        "queue": "émails",
        "priority": -100,
        "run_after": run_after,
        "metadata": '{"trace":"x"}',
        "max_attempts": 1,
        "timeout": 0.25,
        "backoff_base": 0.0,
        "backoff_cap": 0.0,
        "unique_key": "k",
    }
    (job_id,) = insert(NewJob(**given))
    (job,), (state,) = rows_of(job_id)["job"], rows_of(job_id)["state"]
    texts = {"args": [{"z": 1, "a": -0.0}], "kwargs": {"b": "%s"}, "metadata": {"trace": "x"}}
    for name, value in (given | texts).items():
        assert {**job, "unique_key": state["unique_key"]}[name] == value, name
    assert (state["status"], state["run_at"], state["position"]) == ("scheduled", run_after, None)
    assert (state["queue"], state["priority"], state["attempts_allowed"]) == ("émails", -100, 1)


@pytest.mark.parametrize("planned", [False, True], ids=["plain plans", "the worker's plans"])
def test_five_thousand_ids_come_in_the_order_of_the_input(planned: bool) -> None:
    if planned:
        hot_path()
    job_ids = insert(*(NEW._replace(args=f"[{number}]") for number in range(5000)))
    assert job_ids == sorted(set(job_ids))
    rows = fetch("SELECT id, args FROM django_pgqueue_job ORDER BY id")
    assert [row["args"] for row in rows] == [[number] for number in range(5000)]
    positions = fetch("SELECT job_id FROM django_pgqueue_jobstate ORDER BY position")
    assert [row["job_id"] for row in positions] == job_ids


def test_a_statement_per_thousand(django_assert_num_queries) -> None:
    for count, statements in ((1, 1), (1000, 1), (1001, 2), (5000, 5)):
        with django_assert_num_queries(statements):
            enqueue_many(count)


def test_nothing_to_enqueue_asks_nothing(django_assert_num_queries) -> None:
    with django_assert_num_queries(0):
        assert insert() == []


def test_a_generator_will_do() -> None:
    jobs = (NEW for _ in range(3))
    assert len(Job.objects.enqueue_many(jobs, backend="default")) == 3


def test_mixed_times_in_one_statement() -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    past = datetime(2001, 1, 1, tzinfo=UTC)
    options = [
        {},
        {"delay": 60.0},
        {"run_after": later},
        {"run_after": past},
        {"delay": 0.0},
        {"delay": -1.0},
    ]
    job_ids = insert(*(NEW._replace(**given) for given in options))
    assert [status_of(job_id) for job_id in job_ids] == [
        "ready",
        "scheduled",
        "scheduled",
        "ready",
        "ready",
        "ready",
    ]


def test_a_delay_of_nothing_makes_a_ready_job() -> None:
    rows = Job.objects.enqueue_many([NEW._replace(delay=0.0)] * 500, backend="default")
    assert {status_of(row.job_id) for row in rows[::50]} == {"ready"}
    assert fetch("SELECT DISTINCT status FROM django_pgqueue_jobstate") == [{"status": "ready"}]
    assert all(row.run_after == row.enqueued_at for row in rows)


def test_a_delay_counts_from_now_by_the_databases_clock_not_from_the_transactions_start() -> None:
    (start,) = fetch("SELECT now() AS at")
    row = Job.objects.enqueue(NEW._replace(delay=60.0), backend="default")
    assert row.enqueued_at > start["at"]
    assert timedelta(0) <= row.run_after - row.enqueued_at - timedelta(seconds=60) < timedelta(seconds=1)
    assert state_of(row.job_id).run_at == row.run_after == Job.objects.get(pk=row.job_id).run_after


# --- transactions


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_job_never_existed(second_connection: psycopg.Connection) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        enqueue_many(1500)
        raise ZeroDivisionError
    with second_connection.transaction(force_rollback=True):
        enqueue_many(1500, connection=second_connection)
    assert Job.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_nobody_sees_a_job_before_its_commit(second_connection: psycopg.Connection) -> None:
    with transaction.atomic():
        enqueue()
        assert fetch("SELECT id FROM django_pgqueue_job", connection=second_connection) == []
    assert len(fetch("SELECT id FROM django_pgqueue_job", connection=second_connection)) == 1


@pytest.mark.django_db(transaction=True)
def test_without_a_transaction_each_thousand_commits_by_itself() -> None:
    jobs = [NEW] * 1000 + [NEW._replace(task_path="x" * 300)]
    with pytest.raises(DataError):
        insert(*jobs)
    assert Job.objects.count() == 1000
    with pytest.raises(DataError), transaction.atomic():
        insert(*jobs)
    assert Job.objects.count() == 1000


def test_a_live_unique_key_is_refused_and_leaves_no_half_job() -> None:
    enqueue(unique_key="k")
    with pytest.raises(IntegrityError, match="one_live_job_per_key"), transaction.atomic():
        insert(NEW, NEW._replace(unique_key="k"), NEW)
    assert Job.objects.count() == 1


def test_rows_of_a_django_connection_and_of_a_psycopg_connection_are_the_same() -> None:
    mine = Job.objects.enqueue(NEW, backend="default", connection=connection)
    theirs = Job.objects.enqueue(NEW, backend="default", connection=connection.connection)
    assert (type(mine), theirs.job_id) == (type(theirs), mine.job_id + 1)
    assert rows_of(mine.job_id)["job"][0].keys() == rows_of(theirs.job_id)["job"][0].keys()
