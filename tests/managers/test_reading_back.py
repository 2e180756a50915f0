"""What workers ask about jobs without changing them: next_run_at, ready_queues, unknown_since, history."""

from datetime import UTC, datetime, timedelta

import pytest

from django_pgqueue.models import Job
from tests.support import WORKER, claim, claim_queue, enqueue, enqueue_many, make, settle_one, snoozed

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

UNKNOWN = "django_pgqueue.exceptions.UnknownTask"


# --- next_run_at


def test_without_scheduled_jobs_there_is_no_next_time() -> None:
    enqueue()
    make("succeeded")
    assert Job.objects.next_run_at() is None


def test_the_next_time_is_the_earliest_in_seconds_from_now() -> None:
    enqueue(delay=7200.0)
    enqueue(run_after=datetime.now(UTC) + timedelta(hours=1))
    enqueue(delay=9000.0, priority=100)
    assert 3590 < Job.objects.next_run_at() < 3605


def test_an_overdue_job_makes_it_negative() -> None:
    make("scheduled", due=True)
    assert Job.objects.next_run_at() < 0


# --- ready_queues


def test_queues_with_a_ready_job_each_once() -> None:
    for queue in ("emails", "default", "emails", "Ünïcode", "a b", "zz"):
        enqueue(queue=queue)
    enqueue(queue="later", delay=60.0)
    enqueue(queue="running")
    claim_queue("running")
    assert sorted(Job.objects.ready_queues()) == sorted(["emails", "default", "Ünïcode", "a b", "zz"])


def test_no_ready_job_no_queue() -> None:
    make("scheduled")
    make("succeeded")
    assert Job.objects.ready_queues() == []


# --- unknown_since


def put_back(job_id: int, **values: object) -> None:
    settlement = snoozed(claim(job_id).fence, exception_class=UNKNOWN, **values)
    Job.objects.snooze([settlement], worker=WORKER)
    Job.objects.promote_now([job_id])


def test_unknown_since_is_the_first_time_and_the_count() -> None:
    first, second, never = enqueue_many(3)
    put_back(first, started_ago=100.0, finished_ago=100.0)
    put_back(first)
    put_back(second)
    settle_one("snooze", claim(never).fence)  # put off for another reason
    since = Job.objects.unknown_since([first, second, never, 10**12], exception_class=UNKNOWN)
    assert set(since) == {first, second}
    assert (since[first][1], since[second][1]) == (2, 1)
    assert 99 < since[first][0] < 110
    assert since[second][0] < 10


def test_unknown_since_of_nothing_is_nothing() -> None:
    assert Job.objects.unknown_since([], exception_class=UNKNOWN) == {}


# --- history


def test_history_is_the_latest_attempts_oldest_first() -> None:
    job_id, fresh = enqueue_many(2, max_attempts=9)
    for verb in ("fail", "snooze", "release", "fail"):
        settle_one(verb, claim(job_id).fence)
        Job.objects.promote_now([job_id])
    past = Job.objects.history([job_id, fresh], limit=3)
    assert list(past) == [job_id]
    assert [(attempt.number, attempt.outcome) for attempt in past[job_id]] == [
        (2, "snoozed"),
        (3, "released"),
        (4, "failed"),
    ]
    assert past[job_id][-1].exception_class == "builtins.ValueError"
    assert past[job_id][-1].worker_id == WORKER.worker_id
