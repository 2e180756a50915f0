"""The settles and renew: what they write, and the answer for each fence: done, lost or locked."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection, transaction

from django_pgqueue import conf, sql
from django_pgqueue.models import Job
from django_pgqueue.records import Fence
from tests.support import (
    DONE,
    LOCKED,
    LOST,
    OTHER_WORKER,
    OVER,
    SETTLEMENTS,
    WORKER,
    attempts_of,
    cancelled,
    claim,
    claim_queue,
    completed,
    enqueue,
    enqueue_many,
    failed,
    fetch,
    make,
    outcomes_of,
    released,
    rows_of,
    running,
    settle_one,
    snoozed,
    state_of,
    status_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

HOUR = 3600.0
ENDS = {
    "complete": "succeeded",
    "fail": "scheduled",
    "snooze": "scheduled",
    "release": "ready",
    "cancel_held": "cancelled",
}


def settle(*settlements: object, **options: object) -> list[str]:
    """Settle a mixed batch and return the results in the order given."""
    answers = Job.objects.settle(settlements, worker=WORKER, **options)
    return [answer.result for answer in answers]


def renew(*fences: Fence, **options: object) -> list[str]:
    answers = Job.objects.renew(fences, lease=HOUR, **options)
    return [answers[fence].result for fence in fences]


# --- what is written


def attempt_after(settlement: object) -> dict:
    assert settle(settlement) == [DONE]
    return rows_of(settlement.fence.job_id)["attempts"][-1]


def test_complete_stores_the_return_value() -> None:
    (claimed,) = running()
    attempt = attempt_after(completed(claimed.fence, return_value='{"b":[1e23,-0.0],"a":null}'))
    assert repr(attempt["return_value"]) == "{'b': [1e+23, -0.0], 'a': None}"
    assert attempt["outcome"] == "succeeded"
    assert (attempt["exception_class"], attempt["message"], attempt["traceback"]) == ("", "", "")


def test_fail_stores_the_error() -> None:
    (claimed,) = running()
    error = {
        "exception_class": "shop.errors.Grüße",
        "message": "\u2028 100 % %s",
        "traceback": "a\nb",
        "fingerprint": "f" * 32,
    }
    attempt = attempt_after(failed(claimed.fence, **error))
    assert {name: attempt[name] for name in error} == error
    assert (attempt["outcome"], attempt["return_value"]) == ("failed", None)


def test_snooze_and_release_and_cancel_store_their_reason() -> None:
    for make_settlement, outcome in ((snoozed, "snoozed"), (released, "released"), (cancelled, "cancelled")):
        attempt = attempt_after(make_settlement(running()[0].fence, message="because"))
        assert (attempt["outcome"], attempt["message"]) == (outcome, "because")


def test_snooze_can_name_a_class() -> None:
    attempt = attempt_after(snoozed(running()[0].fence, exception_class="x.UnknownTask"))
    assert attempt["exception_class"] == "x.UnknownTask"


@pytest.mark.parametrize("verb", SETTLEMENTS)
def test_every_attempt_tells_who_ran_it_and_under_which_claim(verb: str) -> None:
    (claimed,) = running(worker=OTHER_WORKER)
    settle_one(verb, claimed.fence)
    (attempt,) = rows_of(claimed.job_id)["attempts"]
    told = [
        attempt[name]
        for name in ("job_id", "lease_version", "lease_token", "worker_id", "host", "pid", "number")
    ]
    assert told == [*claimed.fence, OTHER_WORKER.worker_id, WORKER.host, WORKER.pid, 1]


@pytest.mark.parametrize("verb", SETTLEMENTS)
def test_a_settled_job_belongs_to_nobody(verb: str) -> None:
    (claimed,) = running()
    settle_one(verb, claimed.fence)
    (state,) = rows_of(claimed.job_id)["state"]
    assert [state[name] for name in ("worker_id", "lease_token", "claimed_at", "lease_expires_at")] == [
        None
    ] * 4
    assert (state["finished_at"] is not None) == (ENDS[verb] in ("succeeded", "cancelled"))


# --- times: the caller gives durations, the database's clock makes them times


def near(moment: datetime, expected: datetime) -> bool:
    return abs(moment - expected) < timedelta(seconds=5)


def database_now() -> datetime:
    return fetch("SELECT clock_timestamp() AS at")[0]["at"]


@pytest.mark.parametrize("verb", ["complete", "fail", "snooze", "cancel_held"])
def test_durations_become_times_of_the_databases_clock(verb: str) -> None:
    (claimed,) = running()
    settle_one(verb, claimed.fence, started_ago=7200.0, finished_ago=3600.0)
    (attempt,) = attempts_of(claimed.job_id)
    now = database_now()
    assert near(attempt.started_at, now - timedelta(hours=2))
    assert near(attempt.finished_at, now - timedelta(hours=1))
    finished_at = state_of(claimed.job_id).finished_at
    assert finished_at is None or near(finished_at, now - timedelta(hours=1))


def test_a_released_attempt_ends_now() -> None:
    (claimed,) = running()
    settle_one("release", claimed.fence, started_ago=60.0)
    (attempt,) = attempts_of(claimed.job_id)
    assert near(attempt.finished_at, database_now())
    assert near(attempt.started_at, database_now() - timedelta(minutes=1))


@pytest.mark.parametrize("verb", ["fail", "snooze"])
@pytest.mark.parametrize("delay", [0.0, 0.001, 1800.0, 10 * 365 * 24 * 3600.0])
def test_a_delay_counts_from_now(verb: str, delay: float) -> None:
    (claimed,) = running()
    settle_one(verb, claimed.fence, delay=delay)
    assert near(state_of(claimed.job_id).run_at, database_now() + timedelta(seconds=delay))


@pytest.mark.parametrize("status", ["dead", "cancelled"])
def test_a_job_that_ends_keeps_its_due_time(status: str) -> None:
    made = make("running", cancel_requested=status == "cancelled")
    run_at = state_of(made.job_id).run_at
    settle_one("fail", made.fence, final=True, delay=1e6)
    assert (status_of(made.job_id), state_of(made.job_id).run_at) == (status, run_at)


def test_the_worlds_clock_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python hands over durations only: nothing here may look at the process's own clock."""
    for name, value in vars(sql).items():
        if name.isupper() and isinstance(value, str):
            assert "now()" not in value.lower().replace("clock_timestamp()", ""), (
                f"{name} uses the transaction's time"
            )


# --- answers


@pytest.mark.parametrize("verb", SETTLEMENTS)
def test_a_settle_whose_reply_was_lost_is_done_when_it_is_repeated(verb: str) -> None:
    (claimed,) = running()
    assert settle_one(verb, claimed.fence) == DONE
    before = rows_of(claimed.job_id)
    assert settle_one(verb, claimed.fence) == DONE
    assert rows_of(claimed.job_id) == before


def test_a_repeated_settle_is_done_also_when_the_job_runs_again_elsewhere() -> None:
    (claimed,) = running(backoff_base=0.0)
    settle_one("fail", claimed.fence, delay=0.0)
    Job.objects.promote_now([claimed.job_id])
    claim_queue(worker=OTHER_WORKER)
    before = rows_of(claimed.job_id)
    answer = Job.objects.fail([failed(claimed.fence)], worker=WORKER)[claimed.fence]
    assert answer == (DONE, "running", 1)
    assert rows_of(claimed.job_id) == before


@pytest.mark.parametrize("verb", SETTLEMENTS)
def test_an_attempt_that_rescue_wrote_is_not_the_owners(verb: str) -> None:
    made = make("running", lease=OVER)
    Job.objects.rescue(limit=10, server_up=0.0)
    assert settle_one(verb, made.fence) == LOST
    assert outcomes_of(made.job_id) == ["lost"]


def test_a_job_that_is_gone_is_lost() -> None:
    made = make("succeeded")
    Job.objects.prune("succeeded", age=0.0, limit=10)
    answers = Job.objects.complete([completed(made.fence)], worker=WORKER)
    assert answers == {made.fence: (LOST, None, None)}
    assert renew(made.fence) == [LOST]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", [*SETTLEMENTS, "renew"])
def test_a_row_that_another_session_holds_is_locked_and_stops_no_other(verb: str, second_connection) -> None:
    fences = [job.fence for job in running(4)]
    held = fences[1]
    before = rows_of(held.job_id)

    def act() -> list[str]:
        return renew(*fences) if verb == "renew" else settle(*(SETTLEMENTS[verb](fence) for fence in fences))

    with second_connection.transaction():
        second_connection.execute(
            f"SELECT FROM {sql.STATE} WHERE job_id = %s FOR NO KEY UPDATE", [held.job_id]
        )
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '1ms'")  # whoever waits at all, fails
            assert act() == [DONE, LOCKED, DONE, DONE]
        assert rows_of(held.job_id) == before
    assert act() == [DONE] * 4


@pytest.mark.django_db(transaction=True)
def test_a_row_whose_holder_takes_it_away_is_first_locked_then_lost(second_connection) -> None:
    made = make("running", lease=OVER)
    with second_connection.transaction():
        Job.objects.rescue(limit=10, server_up=0.0, connection=second_connection)
        assert settle(completed(made.fence)) == [LOCKED]
    assert settle(completed(made.fence)) == [LOST]


@pytest.mark.django_db(transaction=True)
def test_a_settle_that_is_rolled_back_never_happened(second_connection) -> None:
    (claimed,) = running()
    before = rows_of(claimed.job_id)
    with suppress(ZeroDivisionError), second_connection.transaction():
        assert settle(completed(claimed.fence), connection=second_connection) == [DONE]
        raise ZeroDivisionError
    assert rows_of(claimed.job_id) == before
    assert settle(completed(claimed.fence), connection=second_connection) == [DONE]


# --- batches


@pytest.mark.parametrize("through", ["django", "psycopg"])
@pytest.mark.django_db(transaction=True)
def test_a_mixed_batch_is_answered_row_by_row(through: str, second_connection) -> None:
    session = second_connection if through == "psycopg" else connection
    made = {verb: running(2) for verb in SETTLEMENTS}
    stale = [jobs[1].fence._replace(lease_token=uuid4()) for jobs in made.values()]
    settlements = [SETTLEMENTS[verb](jobs[0].fence) for verb, jobs in made.items()]
    wrong = [SETTLEMENTS[verb](fence) for verb, fence in zip(made, stale, strict=True)]
    batch = [settlement for pair in zip(wrong, settlements, strict=True) for settlement in pair]
    assert settle(*batch, connection=session) == [LOST, DONE] * len(SETTLEMENTS)
    assert {verb: status_of(jobs[0].job_id) for verb, jobs in made.items()} == ENDS
    assert {status_of(jobs[1].job_id) for jobs in made.values()} == {"running"}


def test_values_stay_with_their_job_whatever_the_order() -> None:
    jobs = running(20)
    jobs = jobs[::2] + jobs[1::-2] + jobs[3::2]
    answers = Job.objects.complete(
        [completed(j.fence, return_value=str(j.job_id)) for j in jobs], worker=WORKER
    )
    assert list(answers) == [job.fence for job in jobs]
    for job in jobs:
        assert attempts_of(job.job_id)[0].return_value == job.job_id
        assert answers[job.fence] == (DONE, "succeeded", 1)


def test_an_empty_batch_is_no_question() -> None:
    assert Job.objects.settle([], worker=WORKER) == []
    assert Job.objects.renew([], lease=HOUR) == {}
    for verb in SETTLEMENTS:
        assert getattr(Job.objects, verb)([], worker=WORKER) == {}


def test_the_same_settlement_twice_in_a_batch_writes_one_attempt() -> None:
    (claimed,) = running()
    assert settle(completed(claimed.fence), completed(claimed.fence)) == [DONE, DONE]
    assert outcomes_of(claimed.job_id) == ["succeeded"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("verb", [*SETTLEMENTS, "renew"])
def test_a_zombie_and_the_new_owner_in_one_batch_get_each_their_own_answer(verb: str, reverse: bool) -> None:
    """One keeper renews for all children: one that lost the job must hear so beside the one that has it."""
    made = make("running", lease=OVER)
    Job.objects.rescue(limit=10, server_up=0.0)
    Job.objects.promote_now([made.job_id])
    owner = claim(made.job_id)
    forged = owner.fence._replace(lease_token=uuid4())
    fences = [made.fence, owner.fence, forged]
    answers = [LOST, DONE, LOST]
    if reverse:
        fences, answers = fences[::-1], answers[::-1]
    got = renew(*fences) if verb == "renew" else settle(*(SETTLEMENTS[verb](fence) for fence in fences))
    assert got == answers


def test_thousands_of_rows_are_one_statement(django_assert_num_queries) -> None:
    enqueue_many(3000)
    claimed = claim_queue(limit=3000)
    with django_assert_num_queries(1):
        answers = Job.objects.complete([completed(job.fence) for job in claimed], worker=WORKER)
    assert {answer.result for answer in answers.values()} == {DONE}


# --- renew


def test_renew_moves_the_end_of_the_lease_and_nothing_else() -> None:
    made = make("running", lease=1.0)
    before = rows_of(made.job_id)["state"][0]
    assert renew(made.fence) == [DONE]
    after = rows_of(made.job_id)["state"][0]
    assert near(after["lease_expires_at"], database_now() + timedelta(hours=1))
    assert {name for name in before if before[name] != after[name]} == {"lease_expires_at"}


def test_renew_tells_who_is_asked_to_stop() -> None:
    asked, other = make("running", cancel_requested=True).fence, make("running").fence
    answers = Job.objects.renew([asked, other], lease=HOUR)
    assert {fence: answer.cancel_requested for fence, answer in answers.items()} == {
        asked: True,
        other: False,
    }


def test_renew_can_shorten_a_lease() -> None:
    made = make("running", lease=HOUR)
    Job.objects.renew([made.fence], lease=1.0)
    assert near(state_of(made.job_id).lease_expires_at, database_now())


# --- a claim whose reply was lost


def test_release_unheld_gives_back_what_the_worker_does_not_hold() -> None:
    held, unheld, asked = running(3)
    (theirs,) = running(worker=OTHER_WORKER)
    Job.objects.cancel([asked.job_id])
    before = rows_of(held.job_id), rows_of(theirs.job_id)
    released_ids = Job.objects.release_unheld([held.job_id], worker_id=WORKER.worker_id, within=60.0)
    assert sorted(released_ids) == [unheld.job_id, asked.job_id]
    assert (rows_of(held.job_id), rows_of(theirs.job_id)) == before
    assert [status_of(job.job_id) for job in (unheld, asked)] == ["ready", "cancelled"]
    assert outcomes_of(unheld.job_id) == []
    assert settle_one("complete", unheld.fence) == LOST


def test_release_unheld_looks_at_recent_claims_only() -> None:
    (claimed,) = running()
    assert Job.objects.release_unheld([], worker_id=WORKER.worker_id, within=0.0) == []
    assert status_of(claimed.job_id) == "running"


def test_the_year_of_every_stored_time_is_readable() -> None:
    (claimed,) = running()
    settle_one("fail", claimed.fence, delay=10 * 365 * 24 * 3600.0)
    assert state_of(claimed.job_id).run_at > datetime.now(UTC) + timedelta(days=3600)
    assert enqueue() > claimed.job_id


def test_the_largest_budget_can_be_snoozed_given_back_and_retried() -> None:
    """What is not charged adds to the attempts allowed, so the largest budget must leave room for it."""
    (claimed,) = running(max_attempts=conf.MAX_ATTEMPTS)
    for verb in ("snooze", "release"):
        settle_one(verb, claimed.fence)
        Job.objects.promote_now([claimed.job_id])
        claimed = claim(claimed.job_id)
    settle_one("fail", claimed.fence, final=True)
    for _ in range(20):
        Job.objects.retry([claimed.job_id])
        Job.objects.cancel([claimed.job_id])
    assert state_of(claimed.job_id).attempts_allowed > conf.MAX_ATTEMPTS
