"""claim: in order, one queue, nobody waits for anybody, and the payload arrives as it was handed in."""

import json
import random
from datetime import timedelta

import pytest
from django.db import connection, transaction

from django_pgqueue import connections, sql
from django_pgqueue.models import Job
from django_pgqueue.records import HEAD, NewJob
from django_pgqueue.storable import dump_json
from tests.support import (
    LEASE,
    OTHER_WORKER,
    WORKER,
    claim_queue,
    enqueue,
    enqueue_many,
    fetch,
    hot_path,
    make,
    rows_of,
    running,
    settle_one,
    state_of,
    status_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]


@pytest.fixture(autouse=True)
def as_the_worker_does(db: None) -> None:
    """A batch comes in claim order under the plans that the worker's transactions allow."""
    if connection.in_atomic_block:
        hot_path()


def ids(claimed: list) -> list[int]:
    return [job.job_id for job in claimed]


def drain(**options: object) -> list[int]:
    """Claim until nothing is left, from one cursor to the next."""
    order: list[int] = []
    while batch := claim_queue(**options):
        order += ids(batch)
        options["after"] = batch[-1].cursor
    return order


# --- order


def test_higher_priority_first_then_longer_ready_first() -> None:
    plan = [0, 5, -3, 100, 5, 0, -100, 100]
    job_ids = [enqueue(priority=priority) for priority in plan]
    by_rank = sorted(zip(plan, job_ids, strict=True), key=lambda pair: -pair[0])
    assert ids(claim_queue()) == [job_id for _, job_id in by_rank]


def test_position_counts_not_the_id() -> None:
    first, second, third = enqueue(delay=60.0), enqueue(), enqueue()
    Job.objects.promote_now([first])
    assert ids(claim_queue()) == [second, third, first]


def test_a_job_that_was_given_back_queues_at_the_tail() -> None:
    first, second = enqueue(), enqueue()
    (claimed,) = claim_queue(limit=1)
    settle_one("release", claimed.fence, started_ago=None)
    assert ids(claim_queue()) == [second, first]


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_a_hundred_jobs_of_one_transaction_keep_their_order(limit: int) -> None:
    with transaction.atomic():
        job_ids = [enqueue() for _ in range(100)]
    assert drain(limit=limit) == job_ids


def test_a_later_job_due_in_the_future_holds_nobody_back() -> None:
    enqueue(priority=100, delay=3600.0)
    low = enqueue(priority=-100)
    assert ids(claim_queue()) == [low]


def test_mixed_priorities_drain_in_order_whatever_the_batch() -> None:
    chance = random.Random(1)
    jobs = [(enqueue(priority=priority), priority) for priority in chance.choices(range(-100, 101), k=60)]
    expected = [job_id for job_id, priority in sorted(jobs, key=lambda job: (-job[1], job[0]))]
    assert drain(limit=7) == expected


# --- how much, and of what


def test_limit_bounds_the_batch() -> None:
    job_ids = enqueue_many(5)
    assert ids(claim_queue(limit=2)) == job_ids[:2]
    assert [status_of(job_id) for job_id in job_ids] == ["running"] * 2 + ["ready"] * 3


def test_other_queues_are_not_touched() -> None:
    mine, others = enqueue(queue="emails"), enqueue(queue="other", priority=100)
    before = rows_of(others)
    assert ids(claim_queue("emails")) == [mine]
    assert rows_of(others) == before
    assert claim_queue("email") == claim_queue("emails ") == claim_queue("%") == []


def test_nothing_to_claim_is_an_empty_list() -> None:
    assert claim_queue() == []


def test_what_a_claim_writes() -> None:
    job_id = enqueue()
    (claimed,) = claim_queue(lease=LEASE)
    state = state_of(job_id)
    assert (state.worker_id, state.lease_token, state.lease_version) == (
        WORKER.worker_id,
        claimed.lease_token,
        1,
    )
    assert (state.attempts, state.attempts_allowed) == (claimed.attempts, claimed.attempts_allowed) == (0, 5)
    assert state.claimed_at == claimed.claimed_at
    assert abs(state.lease_expires_at - state.claimed_at - timedelta(seconds=LEASE)) < timedelta(seconds=1)
    assert claimed.failures == 0


def test_the_lease_counts_from_now_and_not_from_the_start_of_the_transaction() -> None:
    job_id = enqueue()
    (start,) = fetch("SELECT now() AS at")
    (claimed,) = claim_queue()
    assert claimed.claimed_at > start["at"]
    assert state_of(job_id).lease_expires_at > start["at"] + timedelta(seconds=LEASE)


def test_every_claim_has_a_new_version_and_its_own_token() -> None:
    job_id = enqueue()
    fences = []
    for _ in range(3):
        (claimed,) = claim_queue()
        fences.append(claimed.fence)
        settle_one("release", claimed.fence, started_ago=None)
    assert [fence.lease_version for fence in fences] == [1, 2, 3]
    assert len({fence.lease_token for fence in fences}) == 3
    assert state_of(job_id).lease_version == 3


def test_failures_count_what_was_charged() -> None:
    job_id = enqueue(max_attempts=5)
    for verb in ("fail", "snooze", "fail", "release"):
        (claimed,) = claim_queue()
        settle_one(verb, claimed.fence)
        Job.objects.promote_now([job_id])
    (claimed,) = claim_queue()
    assert (claimed.attempts, claimed.failures) == (4, 2)


def test_after_a_retry_the_failures_count_from_zero() -> None:
    made = make("dead", failures=2)
    Job.objects.retry([made.job_id])
    (claimed,) = claim_queue()
    assert (claimed.attempts, claimed.failures, claimed.attempts_allowed) == (3, 0, 6)


# --- the cursor


def test_the_cursor_excludes_what_lies_before_it() -> None:
    first, second, third = enqueue_many(3)
    (claimed,) = claim_queue(limit=1)
    settle_one("release", claimed.fence)  # first now lies behind third
    assert ids(claim_queue(limit=1, after=claimed.cursor)) == [second]
    urgent = enqueue(priority=1)
    assert ids(claim_queue(after=claimed.cursor)) == [third, first]
    assert ids(claim_queue(after=HEAD)) == [urgent]


@pytest.mark.parametrize("part", ["rank", "position", "job_id"])
def test_the_cursor_is_a_place_in_the_whole_key(part: str) -> None:
    """A claim from just before a job finds it, from the job itself it does not, in each part of the key."""
    job_id = enqueue(priority=3)
    place = claim_queue(limit=1)[0]
    settle_one("release", place.fence, started_ago=None)
    now_at = place.cursor._replace(position=state_of(job_id).position)
    assert claim_queue(after=now_at) == []
    before = now_at._replace(**{part: getattr(now_at, part) - 1})
    assert ids(claim_queue(after=before)) == [job_id]


@pytest.mark.django_db(transaction=True)
def test_a_sweep_finds_what_committed_behind_the_cursor(second_connection) -> None:
    with second_connection.transaction():
        late = enqueue(connection=second_connection)
        early = enqueue()
        (claimed,) = claim_queue()
        assert claimed.job_id == early
    assert claim_queue(after=claimed.cursor) == []
    assert ids(claim_queue(after=HEAD)) == [late]


# --- nobody waits


@pytest.mark.django_db(transaction=True)
def test_rows_that_another_session_holds_are_skipped(second_connection) -> None:
    job_ids = enqueue_many(4)
    with second_connection.transaction():
        hold = f"SELECT FROM {sql.STATE} WHERE job_id = ANY(%s) FOR NO KEY UPDATE"
        second_connection.execute(hold, [[job_ids[0], job_ids[2]]])
        assert sorted(ids(claim_queue())) == [job_ids[1], job_ids[3]]
    assert sorted(ids(claim_queue())) == [job_ids[0], job_ids[2]]


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_never_get_the_same_job(second_connection) -> None:
    job_ids = enqueue_many(10)
    with second_connection.transaction(), transaction.atomic():
        hot_path()
        hot_path(second_connection)
        mine = ids(claim_queue(limit=4))
        theirs = ids(claim_queue(limit=4, worker=OTHER_WORKER, connection=second_connection))
        assert mine + theirs == job_ids[:8]
    assert [state_of(job_id).worker_id for job_id in mine + theirs] == ["worker-1"] * 4 + ["worker-2"] * 4


@pytest.mark.django_db(transaction=True)
def test_a_foreign_key_check_does_not_hide_a_job(second_connection) -> None:
    """The claim locks FOR NO KEY UPDATE: a table of the project that points at a job does not stop it."""
    job_id = enqueue()
    with second_connection.transaction():
        second_connection.execute(f"SELECT FROM {sql.STATE} WHERE job_id = %s FOR KEY SHARE", [job_id])
        assert ids(claim_queue()) == [job_id]


@pytest.mark.django_db(transaction=True)
def test_a_job_cancelled_after_the_snapshot_of_a_claim_is_not_claimed(
    second_connection, pause, blocked
) -> None:
    first, second, third = enqueue_many(3)
    paused = pause(second_connection)
    with second_connection.transaction():
        hot_path(second_connection)  # rows are picked one by one
        claiming = blocked(second_connection, claim_queue)
        assert Job.objects.cancel([second]).cancelled == [second]
        paused.end()
        assert ids(claiming.result()) == [first, third]
    assert status_of(second) == "cancelled"


# --- cancel requested


def test_a_cancelled_job_is_never_claimed() -> None:
    cancelled, kept = enqueue_many(2)
    Job.objects.cancel([cancelled])
    assert ids(claim_queue()) == [kept]


def test_a_retried_job_is_no_longer_asked_to_cancel() -> None:
    (claimed,) = running()
    Job.objects.cancel([claimed.job_id])
    settle_one("release", claimed.fence)
    Job.objects.retry([claimed.job_id])
    (again,) = claim_queue()
    assert Job.objects.renew([again.fence], lease=LEASE)[again.fence].cancel_requested is False


# --- the payload

PAYLOAD = {
    "floats": [1e23, -0.0, 0.1, 5e-324, 1.7976931348623157e308],
    "key order": {"z": 1, "a": 2, "m": {"y": 1, "b": 2}},
    "huge": 10**400,
    "negative": -(2**70),
    "text": "Grüße, 你好, 👩‍👩‍👧, \u0301, \ufeff, \\u0041, \"quoted\", '%s %(name)s', tab\t, null\\x00",
    "nothing": [None, True, False, "", [], {}],
    "10": "a key that looks like a number",
}


@pytest.mark.parametrize("through", ["django", "psycopg"])
@pytest.mark.django_db(transaction=True)
def test_the_payload_arrives_as_it_was_handed_in(through: str, second_connection) -> None:
    new = NewJob(
        "tests.tasks.ok", args=dump_json([PAYLOAD, 1]), kwargs=dump_json(PAYLOAD), metadata=dump_json(PAYLOAD)
    )
    Job.objects.enqueue(new, backend="default")
    (claimed,) = claim_queue(connection=second_connection if through == "psycopg" else connection)
    for text, sent in (
        (claimed.args, [PAYLOAD, 1]),
        (claimed.kwargs, PAYLOAD),
        (claimed.metadata, PAYLOAD),
    ):
        arrived = json.loads(text)
        assert arrived == sent
        assert json.dumps(arrived) == json.dumps(sent), "also the order of keys and the sign of -0.0"
        assert repr(arrived) == repr(sent)


def test_the_claim_brings_what_a_worker_needs() -> None:
    options = {
        "queue": "emails",
        "priority": 7,
        "max_attempts": 3,
        "timeout": 12.5,
        "backoff_base": 1.5,
        "backoff_cap": 60.0,
    }
    job_id = Job.objects.enqueue(NewJob("shop.tasks.mail", **options), backend="other").job_id
    (claimed,) = claim_queue("emails")
    assert {name: getattr(claimed, name) for name in options} == options
    assert (claimed.backend, claimed.task_path) == ("other", "shop.tasks.mail")
    assert claimed.run_after is None
    assert claimed.enqueued_at == Job.objects.get(pk=job_id).enqueued_at


@pytest.mark.django_db(transaction=True)
def test_a_role_that_writes_dates_in_another_order() -> None:
    job_id = enqueue()
    with connections.connect("default", "test") as private:
        private.execute("SET DateStyle = 'SQL, DMY'")
        (job,) = claim_queue(connection=private)
    assert job.claimed_at == state_of(job_id).claimed_at
