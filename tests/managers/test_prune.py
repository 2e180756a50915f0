"""prune: ended jobs past their status's age go, in bounded batches, with their attempts; nothing else."""

import psycopg
import pytest
from django.db import connection

from django_pgqueue import sql, states
from django_pgqueue.models import Attempt, Job, JobState
from tests.support import (
    WORKER,
    claim_queue,
    completed,
    enqueue_many,
    fetch,
    hot_path,
    make,
    rows_of,
    running,
    settle_one,
    status_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

DAY = 24 * 3600.0


@pytest.fixture(autouse=True)
def as_the_worker_does(db: None) -> None:
    """A batch is found and deleted by index under the plans that the worker's transactions allow."""
    if connection.in_atomic_block:
        hot_path()


def ended_ago(seconds: float, count: int = 1) -> list[int]:
    """Make jobs that succeeded so long ago."""
    claimed = running(count)
    for number, job in enumerate(claimed):  # the earlier, the longer ago
        ago = seconds + (count - number) / 1000
        Job.objects.complete([completed(job.fence, started_ago=ago, finished_ago=ago)], worker=WORKER)
    return [job.job_id for job in claimed]


def prune(status: str = "succeeded", *, age: float = 0.0, limit: int = 1000, **options: object) -> list[int]:
    return [job_id for job_id, _ in Job.objects.prune(status, age=age, limit=limit, **options)]


def test_all_three_rows_go() -> None:
    made = make("dead", failures=2)
    other = make("dead", failures=1)
    kept = rows_of(other.job_id)
    Job.objects.retry([other.job_id])
    assert prune("dead") == [made.job_id]
    assert rows_of(made.job_id) == {"job": [], "state": [], "attempts": []}
    assert rows_of(other.job_id)["attempts"] == kept["attempts"]


def test_live_jobs_are_never_pruned() -> None:
    made = {status: make(status, failures=1).job_id for status in states.STATUSES}
    pruned = {status: prune(status, age=-DAY) for status in states.STATUSES}
    for status in states.ENDED:
        assert pruned[status] == [made[status]]
    for status in states.LIVE:
        assert pruned[status] == []
        assert status_of(made[status]) == status
        assert len(rows_of(made[status])["attempts"]) >= 1


def test_each_status_has_its_own_age() -> None:
    made = {status: make(status).job_id for status in sorted(states.ENDED)}
    assert prune("succeeded") == [made["succeeded"]]
    assert prune("cancelled", age=DAY) == []
    assert {status_of(made[status]) for status in ("dead", "cancelled")} == {"dead", "cancelled"}


def test_the_age_counts_from_the_end() -> None:
    (old,), (young,) = ended_ago(2 * DAY), ended_ago(DAY / 2)
    assert prune(age=DAY) == [old]
    assert status_of(young) == "succeeded"


def test_batches_are_bounded_oldest_first_and_go_on_from_the_mark() -> None:
    job_ids = ended_ago(DAY, count=7)
    first = Job.objects.prune("succeeded", age=1.0, limit=3)
    assert [row[0] for row in first] == job_ids[:3]
    mark = (first[-1][1], first[-1][0])
    assert prune(limit=3, after=mark) == job_ids[3:6]
    assert prune(limit=3) == job_ids[6:]
    assert prune(limit=3) == []


@pytest.mark.django_db(transaction=True)
def test_two_at_once_share_the_work(second_connection: psycopg.Connection) -> None:
    job_ids = ended_ago(DAY, count=6)
    with second_connection.transaction():
        assert prune(limit=2, connection=second_connection) == job_ids[:2]
        assert prune() == job_ids[2:]
    assert fetch(f"SELECT count(*) AS n FROM {sql.ATTEMPT}") == [{"n": 0}]


@pytest.mark.django_db(transaction=True)
def test_a_job_retried_after_the_snapshot_stays(
    second_connection: psycopg.Connection, pause, blocked
) -> None:
    retried, old = make("dead").job_id, make("dead").job_id
    paused = pause(second_connection)
    with second_connection.transaction():
        hot_path(second_connection)
        pruning = blocked(second_connection, prune, "dead")
        Job.objects.retry([retried])
        paused.end()
        assert pruning.result() == [old]
    assert status_of(retried) == "ready"
    assert len(rows_of(retried)["attempts"]) == 1


@pytest.mark.django_db(transaction=True)
def test_a_job_that_somebody_is_just_retrying_stays(second_connection: psycopg.Connection) -> None:
    retried, old = make("dead").job_id, make("dead").job_id
    with second_connection.transaction():
        Job.objects.retry([retried], connection=second_connection)
        assert prune("dead") == [old]
    assert status_of(retried) == "ready"


def test_thousands_of_jobs_with_live_ones_among_them() -> None:
    enqueue_many(3000)
    batch = claim_queue(limit=2900)
    Job.objects.complete([completed(job.fence) for job in batch], worker=WORKER)
    claim_queue(limit=10)
    sizes = []
    while pruned := prune(limit=1000):
        sizes.append(len(pruned))
    assert sizes == [1000, 1000, 900]
    counts = [model.objects.count() for model in (Job, JobState, Attempt)]
    assert counts == [100, 100, 0]


def test_prune_loads_no_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    make("succeeded", args='["' + "x" * 100_000 + '"]')
    with connection.cursor() as cursor:
        cursor.execute(sql.PRUNE, {"status": "succeeded", "age": 0.0, "limit": 10} | HEAD)
        assert [column.name for column in cursor.description] == ["job_id", "finished_at"]


HEAD = {"after_finished_at": "-infinity", "after_job_id": 0}


def test_a_pruned_jobs_worker_hears_that_it_is_gone() -> None:
    made = make("succeeded")
    prune()
    assert settle_one("complete", made.fence) == "lost"
