"""retry: a person's act on ended jobs; a fresh budget, the history kept, one live job for each unique key."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection, transaction

from django_pgqueue import states
from django_pgqueue.models import Job
from tests.conftest import waits
from tests.support import (
    claim_queue,
    enqueue,
    enqueue_many,
    fetch,
    make,
    outcomes_of,
    rows_of,
    settle_one,
    state_of,
    status_of,
)
from tests.waiting import wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]


def dead(count: int = 1, **options: object) -> list[int]:
    """Make jobs that ended dead."""
    return [make("dead", **options).job_id for _ in range(count)]


def test_only_dead_and_cancelled_jobs_are_retried() -> None:
    made = {status: make(status).job_id for status in states.STATUSES}
    before = {job_id: rows_of(job_id) for job_id in made.values()}
    report = Job.objects.retry(list(made.values()))
    assert report.retried == sorted([made["dead"], made["cancelled"]])
    assert report.skipped == sorted(made[status] for status in ("scheduled", "ready", "running", "succeeded"))
    assert report.conflicts == []
    for job_id in report.skipped:
        assert rows_of(job_id) == before[job_id]


def test_a_retried_job_has_a_fresh_budget_and_keeps_its_history() -> None:
    made = make("dead", failures=2, max_attempts=3)
    history = rows_of(made.job_id)["attempts"]
    Job.objects.retry([made.job_id])
    state = state_of(made.job_id)
    assert (state.status, state.attempts, state.attempts_allowed) == ("ready", 3, 6)
    assert (state.finished_at, state.cancel_requested_at, state.worker_id) == (None, None, None)
    assert rows_of(made.job_id)["attempts"] == history
    for _ in range(3):
        (claimed,) = claim_queue()
        settle_one("fail", claimed.fence, delay=0.0)
        Job.objects.promote_now([made.job_id])
    assert (status_of(made.job_id), outcomes_of(made.job_id)) == ("dead", ["failed"] * 6)


def test_a_retried_job_queues_at_the_tail_and_is_due_now() -> None:
    (job_id,) = dead()
    waiting = enqueue()
    (before,) = fetch("SELECT clock_timestamp() AS at")
    Job.objects.retry([job_id])
    assert state_of(job_id).run_at >= before["at"]
    assert sorted([waiting, job_id], key=lambda i: state_of(i).position) == [waiting, job_id]


def test_pressed_twice_it_starts_once() -> None:
    (job_id,) = dead()
    assert Job.objects.retry([job_id, job_id]).retried == [job_id]
    assert Job.objects.retry([job_id]).skipped == [job_id]
    assert len(claim_queue()) == 1


def test_thousands_in_chunks_with_unknown_ids() -> None:
    job_ids = enqueue_many(2500)
    Job.objects.cancel(job_ids)
    report = Job.objects.retry([*job_ids[::-1], 10**12])
    assert report.retried == job_ids
    assert report.skipped == [10**12]


# --- unique keys


def test_one_of_a_key_becomes_live_the_newest() -> None:
    older, newer = dead(2, unique_key="k")
    report = Job.objects.retry([older, newer])
    assert (report.retried, report.conflicts) == ([newer], [older])
    assert [status_of(job_id) for job_id in (older, newer)] == ["dead", "ready"]


@pytest.mark.parametrize("status", ["scheduled", "ready", "running"])
def test_a_live_job_of_the_key_is_a_conflict(status: str) -> None:
    (job_id,) = dead(unique_key="k")
    live = make(status, unique_key="k").job_id
    before = rows_of(job_id), rows_of(live)
    assert Job.objects.retry([job_id]).conflicts == [job_id]
    assert (rows_of(job_id), rows_of(live)) == before


@pytest.mark.parametrize("status", ["succeeded", "dead", "cancelled"])
def test_an_ended_job_of_the_key_is_none(status: str) -> None:
    (job_id,) = dead(unique_key="k")
    make(status, unique_key="k")
    assert Job.objects.retry([job_id]).retried == [job_id]


def test_jobs_without_a_key_never_conflict_not_even_with_a_key_that_looks_like_one() -> None:
    plain = dead(3)
    (keyed,) = dead(unique_key=f"job {plain[0]}")
    assert Job.objects.retry([*plain, keyed]).retried == [*plain, keyed]


def test_two_bad_rows_do_not_stop_forty_eight_others() -> None:
    job_ids = dead(48)
    clashing = [dead(unique_key=key)[0] for key in ("a", "b")]
    for key in ("a", "b"):
        enqueue(unique_key=key)
    report = Job.objects.retry([*job_ids, *clashing])
    assert (report.retried, report.conflicts, report.skipped) == (job_ids, clashing, [])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("through", ["django", "psycopg"])
def test_a_key_taken_between_the_look_and_the_write_stops_no_other(
    through: str, connect: Callable[[], psycopg.Connection]
) -> None:
    """The look finds no live job of the key; the write waits for one about to commit, then clashes."""
    job_ids, (clashing,) = dead(3), dead(unique_key="k")
    rival, session = connect(), connect()
    used = connection if through == "django" else session
    pid = fetch("SELECT pg_backend_pid() AS pid", connection=used)[0]["pid"]
    observer = connect()

    def commit_once_the_retry_waits() -> None:
        wait_until(lambda: waits(pid, observer))
        rival.commit()

    with ThreadPoolExecutor() as threads:
        rival.autocommit = False
        enqueue(unique_key="k", connection=rival)
        committing = threads.submit(commit_once_the_retry_waits)
        report = Job.objects.retry([*job_ids, clashing], connection=used)
        committing.result()
    assert (report.retried, report.conflicts, report.skipped) == (job_ids, [clashing], [])
    assert status_of(clashing) == "dead"


@pytest.mark.django_db(transaction=True)
def test_a_clash_leaves_the_callers_transaction_usable(connect: Callable[[], psycopg.Connection]) -> None:
    (clashing,), (other,) = dead(unique_key="k"), dead()
    rival, observer = connect(), connect()
    pid = fetch("SELECT pg_backend_pid() AS pid")[0]["pid"]

    def commit_once_the_retry_waits() -> None:
        wait_until(lambda: waits(pid, observer))
        rival.commit()

    with ThreadPoolExecutor() as threads, transaction.atomic():
        job_id = enqueue()
        rival.autocommit = False
        enqueue(unique_key="k", connection=rival)
        committing = threads.submit(commit_once_the_retry_waits)
        assert Job.objects.retry([clashing, other]).conflicts == [clashing]
        committing.result()
    assert [status_of(i) for i in (job_id, clashing, other)] == ["ready", "dead", "ready"]


@pytest.mark.django_db(transaction=True)
def test_two_retries_of_the_same_jobs_at_once_retry_each_once(
    second_connection: psycopg.Connection, third_connection: psycopg.Connection, blocked
) -> None:
    job_ids = dead(10)
    with second_connection.transaction():
        mine = Job.objects.retry(job_ids, connection=second_connection)
        theirs = blocked(third_connection, Job.objects.retry, job_ids[::-1])
    assert mine.retried == job_ids
    assert theirs.result().skipped == job_ids
    assert {state_of(job_id).attempts_allowed for job_id in job_ids} == {4}
