"""cancel: waiting jobs end at once, running ones are asked to stop, ended ones stay; the caller is told."""

from concurrent.futures import Future
from typing import Any

import psycopg
import pytest

from django_pgqueue import states
from django_pgqueue.models import Job
from django_pgqueue.records import CancelReport, RetryReport
from tests.support import (
    DONE,
    OVER,
    claim_queue,
    enqueue,
    enqueue_many,
    make,
    outcomes_of,
    rows_of,
    running,
    settle_one,
    state_of,
    status_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]


def test_every_state_at_once_is_reported_by_what_was_done() -> None:
    made = {status: make(status).job_id for status in states.STATUSES}
    report = Job.objects.cancel(list(made.values()))
    assert report.cancelled == sorted([made["scheduled"], made["ready"]])
    assert report.requested == [made["running"]]
    assert report.skipped == sorted([made["succeeded"], made["dead"], made["cancelled"]])


def test_a_cancelled_job_ends_now_without_an_attempt() -> None:
    job_id = enqueue()
    Job.objects.cancel([job_id])
    state = state_of(job_id)
    assert state.finished_at is not None
    assert state.cancel_requested_at is not None
    assert outcomes_of(job_id) == []
    assert claim_queue() == []


def test_a_running_job_goes_on_until_its_worker_agrees() -> None:
    (claimed,) = running()
    Job.objects.cancel([claimed.job_id])
    assert status_of(claimed.job_id) == "running"
    answer = Job.objects.renew([claimed.fence], lease=30.0)[claimed.fence]
    assert answer == (DONE, True)
    assert settle_one("cancel_held", claimed.fence) == DONE
    assert (status_of(claimed.job_id), outcomes_of(claimed.job_id)) == ("cancelled", ["cancelled"])


def test_a_job_asked_to_cancel_is_never_tried_again_however_its_attempt_ends() -> None:
    for verb in ("fail", "snooze", "release"):
        (claimed,) = running(max_attempts=9)
        Job.objects.cancel([claimed.job_id])
        settle_one(verb, claimed.fence)
        assert status_of(claimed.job_id) == "cancelled"
    made = make("running", cancel_requested=True, lease=OVER)
    Job.objects.rescue(limit=10, server_up=0.0)
    assert status_of(made.job_id) == "cancelled"


def test_a_job_that_succeeds_after_all_has_succeeded() -> None:
    made = make("running", cancel_requested=True)
    assert settle_one("complete", made.fence) == DONE
    assert status_of(made.job_id) == "succeeded"


def test_asking_again_keeps_the_first_time() -> None:
    (claimed,) = running()
    Job.objects.cancel([claimed.job_id])
    first = state_of(claimed.job_id).cancel_requested_at
    assert Job.objects.cancel([claimed.job_id]).requested == [claimed.job_id]
    assert state_of(claimed.job_id).cancel_requested_at == first


def test_thousands_in_chunks_with_repeats_and_unknown_ids() -> None:
    job_ids = enqueue_many(2500)
    report = Job.objects.cancel([*reversed(job_ids), *job_ids, 10**12])
    assert report.cancelled == job_ids
    assert report.skipped == [10**12]


def test_cancelling_nothing_is_nothing() -> None:
    report = Job.objects.cancel([])
    assert (report.cancelled, report.requested, report.skipped) == ([], [], [])


def test_a_cancelled_unique_job_frees_its_key() -> None:
    first = enqueue(unique_key="k")
    Job.objects.cancel([first])
    assert enqueue(unique_key="k") > first


# --- races


@pytest.mark.django_db(transaction=True)
def test_cancel_waits_for_a_claim_in_flight_and_then_asks_its_worker(
    second_connection: psycopg.Connection, third_connection: psycopg.Connection, blocked
) -> None:
    job_id = enqueue()
    with second_connection.transaction():
        (claimed,) = claim_queue(connection=second_connection)
        cancelling: Future = blocked(third_connection, Job.objects.cancel, [job_id])
    assert cancelling.result().requested == [job_id]
    assert state_of(job_id).lease_token == claimed.lease_token
    assert settle_one("fail", claimed.fence) == DONE
    assert status_of(job_id) == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_a_claim_passes_over_a_cancel_in_flight_and_never_starts_the_job(
    second_connection: psycopg.Connection,
) -> None:
    job_id = enqueue()
    with second_connection.transaction():
        assert Job.objects.cancel([job_id], connection=second_connection).cancelled == [job_id]
        assert claim_queue() == []
    assert claim_queue() == []
    assert status_of(job_id) == "cancelled"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("verb", "status"), [("complete", "succeeded"), ("fail", "scheduled"), ("snooze", "scheduled")]
)
def test_cancel_waits_for_an_end_in_flight_and_tells_what_it_found(
    verb: str,
    status: str,
    second_connection: psycopg.Connection,
    third_connection: psycopg.Connection,
    blocked,
) -> None:
    (claimed,) = running()
    with second_connection.transaction():
        settle_one(verb, claimed.fence, connection=second_connection)
        cancelling: Future = blocked(third_connection, Job.objects.cancel, [claimed.job_id])
    report = cancelling.result()
    if status == "succeeded":
        assert report.skipped == [claimed.job_id]
        assert status_of(claimed.job_id) == "succeeded"
    else:
        assert report.cancelled == [claimed.job_id]
        assert status_of(claimed.job_id) == "cancelled"
    assert len(outcomes_of(claimed.job_id)) == 1


@pytest.mark.django_db(transaction=True)
def test_two_cancels_in_opposite_order_do_not_deadlock(
    second_connection: psycopg.Connection, third_connection: psycopg.Connection, blocked
) -> None:
    job_ids = enqueue_many(50)
    with second_connection.transaction():
        mine = Job.objects.cancel(job_ids, connection=second_connection)
        theirs: Future = blocked(third_connection, Job.objects.cancel, job_ids[::-1])
    assert mine.cancelled == job_ids
    assert theirs.result().skipped == job_ids


def test_a_cancelled_job_keeps_what_was_asked() -> None:
    job_id = enqueue(args='["a"]')
    before = rows_of(job_id)["job"]
    Job.objects.cancel([job_id])
    assert rows_of(job_id)["job"] == before


@pytest.mark.parametrize("verb", ["cancel", "retry", "promote_now"])
def test_the_id_of_a_result_is_an_id(verb: str) -> None:
    statuses = {"cancel": states.READY, "retry": states.DEAD, "promote_now": states.SCHEDULED}
    job_id = make(statuses[verb]).job_id
    report = getattr(Job.objects, verb)([str(job_id), job_id])
    expected = {
        "cancel": CancelReport(cancelled=[job_id]),
        "retry": RetryReport(retried=[job_id]),
        "promote_now": [(job_id, "default")],
    }
    assert report == expected[verb]


@pytest.mark.parametrize("verb", ["cancel", "retry", "promote_now"])
def test_what_is_no_id_is_refused_before_any_sql(verb: str, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0), pytest.raises(ValueError, match="job ids are whole numbers"):
        getattr(Job.objects, verb)([1, "abc"])
