"""The tables: their names, their ids, and what their constraints refuse."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, models, transaction

from django_pgqueue import conf, sql, states
from django_pgqueue.models import Attempt, Job, JobState, Outcome, Status

from .support import fetch, make

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MODELS = (Job, JobState, Attempt)


def job(**values: Any) -> Job:
    plain = {
        "backend": "default",
        "task_path": "a.b",
        "args": [],
        "kwargs": {},
        "queue": "default",
        "priority": 0,
    }
    plain |= {"enqueued_at": NOW, "metadata": {}, "max_attempts": 1, "backoff_base": 0.0, "backoff_cap": 0.0}
    return Job(**plain | values)


def state(**values: Any) -> JobState:
    plain = {"job_id": 1, "queue": "default", "priority": 0, "status": "ready", "position": 1, "run_at": NOW}
    plain |= {"attempts": 0, "attempts_allowed": 1, "lease_version": 0}
    return JobState(**plain | values)


def attempt(**values: Any) -> Attempt:
    plain = {
        "job_id": 1,
        "number": 1,
        "lease_version": 1,
        "lease_token": uuid4(),
        "worker_id": "w",
        "host": "h",
    }
    plain |= {"started_at": NOW, "finished_at": NOW, "outcome": "succeeded"}
    return Attempt(**plain | values)


OWNER = {"worker_id": "w", "lease_token": uuid4(), "claimed_at": NOW, "lease_expires_at": NOW}


def running(**values: Any) -> JobState:
    return state(**{"status": "running", "position": None} | OWNER | values)


ALLOWED: dict[str, Callable[[], models.Model]] = {
    "job": job,
    "lowest priority": lambda: job(priority=-100),
    "highest priority": lambda: job(priority=100),
    "ready": state,
    "scheduled without a position": lambda: state(status="scheduled", position=None),
    "running": running,
    "running without a position": lambda: running(position=5),
    **{
        status: lambda status=status: state(status=status, finished_at=NOW) for status in sorted(states.ENDED)
    },
    "budget used up": lambda: state(attempts=1, attempts_allowed=1),
    "attempt": attempt,
    **{f"attempt {outcome}": lambda outcome=outcome: attempt(outcome=outcome) for outcome in states.OUTCOMES},
}
REFUSED: dict[str, list[Callable[[], models.Model]]] = {
    "pgqueue_job_priority_in_range": [lambda: job(priority=101), lambda: job(priority=-101)],
    "pgqueue_job_has_budget": [lambda: job(max_attempts=0)],
    "pgqueue_state_status_known": [lambda: state(status="done"), lambda: state(status="")],
    "pgqueue_state_running_has_owner": [
        *(lambda name=name: running(**{name: None}) for name in OWNER),
        *(lambda name=name: state(**{name: OWNER[name]}) for name in OWNER),
        lambda: state(status="dead", finished_at=NOW, **OWNER),
    ],
    "pgqueue_state_ended_has_time": [
        *(lambda status=status: state(status=status) for status in sorted(states.ENDED)),
        lambda: state(finished_at=NOW),
        lambda: state(status="scheduled", finished_at=NOW),
        lambda: running(finished_at=NOW),
    ],
    "pgqueue_state_ready_has_position": [lambda: state(position=None)],
    "pgqueue_state_priority_in_range": [lambda: state(priority=101), lambda: state(priority=-101)],
    "pgqueue_state_attempts_within_allowed": [
        lambda: state(attempts=-1),
        lambda: state(lease_version=-1),
        lambda: state(attempts=2),
    ],
    "pgqueue_attempt_outcome_known": [lambda: attempt(outcome="done"), lambda: attempt(outcome="")],
    "pgqueue_attempt_numbered_from_one": [lambda: attempt(number=0), lambda: attempt(number=-1)],
}
ONE_LIVE_JOB = "pgqueue_state_one_live_job_per_key"


def insert(row: models.Model) -> None:
    row.save_base(raw=True, force_insert=True)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ALLOWED)
def test_what_the_tables_hold(name: str) -> None:
    insert(ALLOWED[name]())


@pytest.mark.django_db
@pytest.mark.parametrize("constraint", REFUSED)
def test_each_constraint_refuses_what_it_forbids(constraint: str) -> None:
    for bad in REFUSED[constraint]:
        with pytest.raises(IntegrityError, match=f'"{constraint}"'), transaction.atomic():
            insert(bad())


def test_every_constraint_is_tried() -> None:
    named = {constraint.name for model in MODELS for constraint in model._meta.constraints}
    assert named == set(REFUSED) | {ONE_LIVE_JOB}


LIVE = [
    lambda **v: state(**v),
    lambda **v: state(status="scheduled", position=None, **v),
    lambda **v: running(**v),
]


@pytest.mark.django_db
@pytest.mark.parametrize("first", LIVE)
@pytest.mark.parametrize("second", LIVE)
def test_a_key_has_one_live_job(first: Callable[..., JobState], second: Callable[..., JobState]) -> None:
    insert(first(job_id=1, unique_key="k"))
    insert(second(job_id=2, unique_key="other"))
    insert(second(job_id=3))
    insert(second(job_id=4))
    with pytest.raises(IntegrityError, match=ONE_LIVE_JOB):
        insert(second(job_id=5, unique_key="k"))


@pytest.mark.django_db
def test_an_ended_job_does_not_hold_its_key() -> None:
    for job_id, status in enumerate(sorted(states.ENDED) * 2, start=1):
        insert(state(job_id=job_id, status=status, finished_at=NOW, unique_key="k"))
    insert(state(job_id=100, unique_key="k"))


@pytest.mark.django_db
def test_one_state_for_a_job_and_one_attempt_for_a_number() -> None:
    insert(state())
    with pytest.raises(IntegrityError, match="pkey"), transaction.atomic():
        insert(state())
    insert(attempt())
    with pytest.raises(IntegrityError, match="pkey"), transaction.atomic():
        insert(attempt(outcome="lost"))


# --- names and types


def test_the_tables_are_called_what_sql_calls_them() -> None:
    assert [model._meta.db_table for model in MODELS] == [sql.JOB, sql.STATE, sql.ATTEMPT]


def test_the_choices_are_the_states() -> None:
    assert tuple(Status.values) == states.STATUSES
    assert tuple(Outcome.values) == states.OUTCOMES


@pytest.mark.django_db
def test_ids_versions_and_positions_have_64_bits() -> None:
    wanted = {
        (sql.JOB, "id"),
        (sql.STATE, "job_id"),
        (sql.STATE, "position"),
        (sql.STATE, "lease_version"),
        (sql.ATTEMPT, "job_id"),
        (sql.ATTEMPT, "lease_version"),
    }
    rows = fetch(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_name LIKE 'django\\_pgqueue\\_%%' AND data_type = 'bigint'"
    )
    found = {(row["table_name"], row["column_name"]) for row in rows}
    assert found >= wanted
    (sequence,) = fetch(f"SELECT data_type FROM pg_sequences WHERE sequencename = '{sql.POSITION}'")
    assert sequence == {"data_type": "bigint"}


@pytest.mark.django_db
def test_a_job_past_the_32nd_bit_goes_through_its_life() -> None:
    huge = 2**33
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT setval(pg_get_serial_sequence('{sql.JOB}', 'id'), %s)", [huge])
        cursor.execute(f"SELECT setval('{sql.POSITION}', %s)", [huge])
    made = make("dead", failures=2)
    assert made.job_id > huge
    assert Job.objects.retry([made.job_id]).retried == [made.job_id]
    assert JobState.objects.get(job_id=made.job_id).position > huge


@pytest.mark.django_db
def test_arguments_are_kept_as_text_in_json_columns() -> None:
    rows = fetch(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s", [sql.JOB]
    )
    types = {row["column_name"]: row["data_type"] for row in rows}
    assert [types[name] for name in ("args", "kwargs", "metadata")] == ["json"] * 3


@pytest.mark.django_db
def test_no_table_holds_another_by_a_foreign_key() -> None:
    rows = fetch("SELECT conname FROM pg_constraint WHERE contype = 'f' AND conname LIKE '%%pgqueue%%'")
    assert rows == []


def test_the_columns_are_as_long_as_the_checks_allow() -> None:
    lengths = {
        (model, name): model._meta.get_field(name).max_length
        for model, name in [(Job, "queue"), (JobState, "queue"), (Job, "task_path"), (JobState, "worker_id")]
    }
    assert lengths == {
        (Job, "queue"): conf.MAX_QUEUE_NAME,
        (JobState, "queue"): conf.MAX_QUEUE_NAME,
        (Job, "task_path"): conf.MAX_TASK_PATH,
        (JobState, "worker_id"): conf.MAX_WORKER_ID,
    }
    assert JobState._meta.get_field("unique_key").max_length == conf.MAX_UNIQUE_KEY
    assert Attempt._meta.get_field("worker_id").max_length == conf.MAX_WORKER_ID


def test_rows_say_what_they_are() -> None:
    assert str(job(id=7)) == "a.b #7"
    assert str(state(job_id=7)) == "job 7: ready"
    assert str(attempt(job_id=7, number=2)) == "job 7 attempt 2: succeeded"
