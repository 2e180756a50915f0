"""promote and promote_now: what is due becomes ready, earliest due first, and nothing else moves."""

import pytest
from django.db import connection

from django_pgqueue import sql
from django_pgqueue.managers import PromoteMark
from django_pgqueue.models import Job
from tests.support import claim, enqueue, enqueue_many, hot_path, rows_of, settle_one, state_of, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]


def scheduled(*, due_in: float, **options: object) -> int:
    """Make a job that is scheduled, also for a time that has passed (negative seconds)."""
    job_id = enqueue(**options)
    settle_one("fail", claim(job_id).fence, delay=due_in)
    assert status_of(job_id) == "scheduled"
    return job_id


def promote(**options: object) -> list[int]:
    return [job_id for job_id, _, _ in Job.objects.promote(**{"limit": 100} | options)]


def by_position(job_ids: list[int]) -> list[int]:
    return sorted(job_ids, key=lambda job_id: state_of(job_id).position)


def test_what_is_due_becomes_ready_earliest_first() -> None:
    late, early, middle = (scheduled(due_in=due_in) for due_in in (-10.0, -30.0, -20.0))
    assert promote() == [early, middle, late]
    assert by_position([late, early, middle]) == [early, middle, late]


def test_jobs_due_at_the_same_time_keep_the_order_of_their_ids() -> None:
    job_ids = enqueue_many(50, delay=3600.0)
    force_due(job_ids)
    assert promote(limit=20) + promote(limit=20) + promote(limit=20) == job_ids
    assert by_position(job_ids) == job_ids


def force_due(job_ids: list[int]) -> None:
    """Make the due time of jobs the same past moment; no verb can do that."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {sql.STATE} SET run_at = now() WHERE job_id = ANY(%s)", [job_ids])


def test_the_promoted_queue_behind_those_that_are_ready() -> None:
    job_id, ready = scheduled(due_in=-60.0), enqueue()
    promote()
    assert by_position([job_id, ready]) == [ready, job_id]


def test_what_lies_ahead_is_not_touched() -> None:
    later = scheduled(due_in=60.0)
    before = rows_of(later)
    now = scheduled(due_in=-1.0)
    assert promote() == [now]
    assert rows_of(later) == before


def test_limit_bounds_a_batch_and_the_mark_goes_on_behind_it() -> None:
    job_ids = [scheduled(due_in=-100.0 + number) for number in range(5)]
    first = Job.objects.promote(limit=2)
    assert [row[0] for row in first] == job_ids[:2]
    mark = PromoteMark(first[-1][2], first[-1][0])
    again = scheduled(due_in=-200.0)  # behind the mark: only a look from the head finds it
    assert promote(after=mark) == job_ids[2:]
    assert promote(after=mark) == []
    assert promote() == [again]


def test_promote_tells_the_queue_and_the_due_time() -> None:
    job_id = scheduled(due_in=-5.0, queue="emails")
    run_at = state_of(job_id).run_at
    assert Job.objects.promote(limit=10) == [(job_id, "emails", run_at)]
    assert state_of(job_id).run_at == run_at


@pytest.mark.django_db(transaction=True)
def test_rows_that_another_session_holds_are_skipped(second_connection) -> None:
    held, free = scheduled(due_in=-2.0), scheduled(due_in=-1.0)
    with second_connection.transaction():
        second_connection.execute(f"SELECT FROM {sql.STATE} WHERE job_id = %s FOR NO KEY UPDATE", [held])
        assert promote() == [free]
    assert promote() == [held]


@pytest.mark.django_db(transaction=True)
def test_two_sessions_at_once_share_the_work(second_connection) -> None:
    job_ids = [scheduled(due_in=-100.0 + number) for number in range(6)]
    with second_connection.transaction():
        theirs = promote(limit=3, connection=second_connection)
        mine = promote(limit=100)
    assert theirs + mine == job_ids


@pytest.mark.django_db(transaction=True)
def test_a_job_cancelled_after_the_snapshot_stays_cancelled(second_connection, pause, blocked) -> None:
    cancelled, due = scheduled(due_in=-2.0), scheduled(due_in=-1.0)
    paused = pause(second_connection)
    with second_connection.transaction():
        hot_path(second_connection)
        promoting = blocked(second_connection, promote)
        Job.objects.cancel([cancelled])
        paused.end()
        assert promoting.result() == [due]
    assert status_of(cancelled) == "cancelled"


# --- promote_now


def test_promote_now_does_not_ask_for_the_time() -> None:
    later, other = enqueue(delay=3600.0, queue="emails"), enqueue(delay=3600.0)
    assert Job.objects.promote_now([later]) == [(later, "emails")]
    assert (status_of(later), status_of(other)) == ("ready", "scheduled")


def test_promote_now_makes_the_job_due_now() -> None:
    job_id = enqueue(delay=3600.0)
    planned = state_of(job_id).run_at
    Job.objects.promote_now([job_id])
    assert state_of(job_id).run_at < planned
    assert Job.objects.get(pk=job_id).run_after == planned, "what was asked stays on record"


def test_promote_now_of_many_is_chunked_and_skips_the_rest() -> None:
    job_ids = enqueue_many(1500, delay=3600.0)
    ready = enqueue()
    moved = Job.objects.promote_now([*job_ids, ready, 10**12])
    assert sorted(job_id for job_id, _ in moved) == job_ids


def test_promote_now_of_nothing_is_nothing() -> None:
    assert Job.objects.promote_now([]) == []
