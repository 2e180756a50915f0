"""rescue and rescue_worker: a lost attempt is charged and seen; a live lease is never touched."""

import time
from datetime import timedelta

import pytest
from django.db import connection

from django_pgqueue import leases, maintenance, sql
from django_pgqueue.models import Job
from tests.support import (
    DONE,
    LEASE,
    LOST,
    OTHER_WORKER,
    OVER,
    WORKER,
    attempts_of,
    claim,
    claim_queue,
    completed,
    enqueue,
    enqueue_many,
    fetch,
    hot_path,
    make,
    outcomes_of,
    released,
    rows_of,
    running,
    settle_one,
    state_of,
    status_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

HOUR = 3600.0


def rescue(*, limit: int = 100, server_up: float = 0.0, **options: object) -> list[int]:
    rescued = Job.objects.rescue(limit=limit, server_up=server_up, **options)
    return sorted(row.job_id for row in rescued)


# --- by the end of the lease


def test_a_lease_that_is_over_is_rescued_and_the_attempt_is_charged() -> None:
    job_id = make("running", lease=OVER).job_id
    claimed_at = state_of(job_id).claimed_at
    (row,) = Job.objects.rescue(limit=10, server_up=0.0)
    assert row == (job_id, "scheduled", 1, WORKER.worker_id, "tests.tasks.ok", "default")
    (attempt,) = attempts_of(job_id)
    assert (attempt.outcome, attempt.number, attempt.worker_id) == ("lost", 1, WORKER.worker_id)
    assert (attempt.started_at, attempt.host, attempt.pid) == (claimed_at, "", None)
    assert attempt.exception_class == "django_pgqueue.exceptions.LeaseExpired"
    assert WORKER.worker_id in attempt.message
    state = state_of(job_id)
    assert (state.worker_id, state.lease_token, state.claimed_at, state.lease_expires_at) == (None,) * 4


def test_a_live_lease_is_not_touched() -> None:
    live, over = make("running", lease=HOUR).job_id, make("running", lease=OVER).job_id
    before = rows_of(live)
    assert rescue() == [over]
    assert rows_of(live) == before


def test_a_renewed_lease_is_not_touched() -> None:
    made = make("running", lease=OVER)
    assert Job.objects.renew([made.fence], lease=HOUR)[made.fence].result == DONE
    assert rescue() == []
    assert status_of(made.job_id) == "running"


def test_nobody_is_rescued_before_the_server_has_been_up_for_a_lease() -> None:
    job_id = make("running", lease=OVER).job_id
    (up,) = fetch(
        "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float8 AS seconds"
    )
    assert rescue(server_up=up["seconds"] + HOUR) == []
    assert rescue(server_up=max(up["seconds"] - 1, 0.0)) == [job_id]


def test_a_job_that_kills_its_workers_ends_dead_and_blocks_nobody() -> None:
    poison = enqueue(max_attempts=3)
    neighbours = enqueue_many(20)
    starts = 0
    for _ in range(10):
        Job.objects.promote_now([poison])
        if status_of(poison) == "ready":
            claim(poison, lease=OVER)
            starts += 1
        rescue()
    assert starts == 3
    assert status_of(poison) == "dead"
    assert outcomes_of(poison) == ["lost"] * 3
    assert [status_of(job_id) for job_id in neighbours] == ["ready"] * 20


def test_the_longest_held_go_first_and_limit_bounds_the_batch() -> None:
    job_ids = [job.job_id for job in running(5, lease=OVER)]
    assert rescue(limit=2) == job_ids[:2]
    assert rescue(limit=2) == job_ids[2:4]


def test_rescue_needs_no_code_of_the_task() -> None:
    job_id = make("running", lease=OVER, task_path="gone.module.task").job_id
    assert rescue() == [job_id]


# --- the backoff of a lost attempt: from the policy stored with the job


def lose(job_id: int) -> float:
    """Lose one attempt of a job and return the seconds until it is due again."""
    claim(job_id, lease=OVER)
    assert rescue() == [job_id]
    (row,) = fetch(
        "SELECT extract(epoch FROM state.run_at - attempt.finished_at)::float8 AS delay"
        f" FROM {sql.STATE} AS state JOIN {sql.ATTEMPT} AS attempt USING (job_id)"
        " WHERE job_id = %s ORDER BY number DESC LIMIT 1",
        [job_id],
    )
    return row["delay"]


def test_the_ceiling_doubles_with_each_charged_attempt_up_to_the_cap() -> None:
    job_id = enqueue(max_attempts=10, backoff_base=100.0, backoff_cap=350.0)
    longest = [100.0, 200.0, 350.0, 350.0]
    for ceiling in longest:
        assert -0.5 <= lose(job_id) <= ceiling + 0.5
        Job.objects.promote_now([job_id])


def test_only_charged_attempts_raise_the_ceiling() -> None:
    job_id = enqueue(max_attempts=10, backoff_base=1.0, backoff_cap=1e9)
    for verb in ("snooze", "release", "snooze", "release", "snooze") * 4:
        settle_one(verb, claim(job_id).fence)
        Job.objects.promote_now([job_id])
    assert lose(job_id) <= 1.5


def test_lost_together_does_not_come_back_together() -> None:
    running(200, lease=OVER, backoff_base=1000.0, backoff_cap=1000.0)
    assert len(rescue(limit=1000)) == 200
    (spread,) = fetch(
        "SELECT extract(epoch FROM min(run_at) - clock_timestamp())::float8 AS first,"
        f" extract(epoch FROM max(run_at) - min(run_at))::float8 AS width FROM {sql.STATE}"
    )
    assert spread["first"] > -60, "never before the minimum"
    assert 300 < spread["width"] <= 1000, "full jitter fills the interval"


@pytest.mark.parametrize("ended", [60, 1100, 100_000])
@pytest.mark.usefixtures("db")
def test_no_number_of_attempts_overflows_the_backoff(ended: int) -> None:
    job_id = make("running", lease=OVER, max_attempts=ended + 5, backoff_base=5.0, backoff_cap=3600.0).job_id
    with connection.cursor() as cursor:  # no verb makes a hundred thousand attempts in time
        cursor.execute(f"UPDATE {sql.STATE} SET attempts = %s WHERE job_id = %s", [ended, job_id])
    assert rescue() == [job_id]
    (row,) = fetch(
        f"SELECT status, extract(epoch FROM run_at - clock_timestamp())::float8 AS delay FROM {sql.STATE}"
    )
    assert row["status"] == "scheduled"
    assert -1 <= row["delay"] <= 3600
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {sql.STATE} SET attempts = 1 WHERE job_id = %s", [job_id])
        cursor.execute(f"UPDATE {sql.ATTEMPT} SET number = 1 WHERE job_id = %s", [job_id])


@pytest.mark.parametrize(("base", "cap"), [(0.0, 0.0), (1e308, 1e308), (5.0, 1e300), (1e12, 1e12)])
def test_no_policy_stops_the_rescue(base: float, cap: float) -> None:
    """One absurd policy must not keep other jobs from being rescued, nor make a time that nobody can read."""
    absurd = make("running", lease=OVER, backoff_base=base, backoff_cap=cap, max_attempts=100).job_id
    plain = make("running", lease=OVER).job_id
    assert rescue() == [absurd, plain]
    assert state_of(absurd).run_at.year < 2200


# --- against an owner who is alive after all (forced interleavings)


@pytest.mark.django_db(transaction=True)
def test_rescue_does_not_undo_a_success_that_committed_after_its_snapshot(
    second_connection, third_connection, pause, blocked
) -> None:
    made = make("running", lease=OVER)
    paused = pause(second_connection)
    rescuing = blocked(second_connection, rescue)
    assert settle_one("complete", made.fence, connection=third_connection) == DONE
    before = rows_of(made.job_id)
    paused.end()
    assert rescuing.result() == []
    assert rows_of(made.job_id) == before
    assert (status_of(made.job_id), outcomes_of(made.job_id)) == ("succeeded", ["succeeded"])


@pytest.mark.django_db(transaction=True)
def test_rescue_does_not_touch_a_job_that_was_claimed_anew_after_its_snapshot(
    second_connection, pause, blocked
) -> None:
    made = make("running", lease=OVER)
    paused = pause(second_connection)
    rescuing = blocked(second_connection, rescue)
    settle_one("release", made.fence)
    (owner,) = claim_queue(worker=OTHER_WORKER)
    before = rows_of(made.job_id)
    paused.end()
    assert rescuing.result() == []
    assert rows_of(made.job_id) == before
    assert settle_one("complete", owner.fence) == DONE


@pytest.mark.django_db(transaction=True)
def test_rescue_does_not_touch_a_lease_that_was_renewed_after_its_snapshot(
    second_connection, pause, blocked
) -> None:
    made = make("running", lease=OVER)
    paused = pause(second_connection)
    rescuing = blocked(second_connection, rescue)
    assert Job.objects.renew([made.fence], lease=HOUR)[made.fence].result == DONE
    paused.end()
    assert rescuing.result() == []
    assert settle_one("complete", made.fence) == DONE


@pytest.mark.django_db(transaction=True)
def test_rescue_passes_over_a_job_whose_owner_is_just_settling_it(second_connection) -> None:
    settling, over = make("running", lease=OVER), make("running", lease=OVER)
    with second_connection.transaction():
        assert settle_one("complete", settling.fence, connection=second_connection) == DONE
        assert rescue() == [over.job_id]
    assert rescue() == []
    assert status_of(settling.job_id) == "succeeded"


@pytest.mark.django_db(transaction=True)
def test_two_rescues_at_once_charge_once(second_connection) -> None:
    job_ids = [job.job_id for job in running(4, lease=OVER)]
    with second_connection.transaction():
        hot_path(second_connection)
        assert rescue(limit=2, connection=second_connection) == job_ids[:2]
        assert rescue() == job_ids[2:]
    assert [outcomes_of(job_id) for job_id in job_ids] == [["lost"]] * 4


# --- by the death of a worker process


def rescue_worker(lost: list) -> list[int]:
    return sorted(row.job_id for row in Job.objects.rescue_worker(lost, worker=WORKER))


def test_started_jobs_of_a_dead_process_are_charged_and_the_others_are_not() -> None:
    started, waiting = running(2, lease=HOUR, max_attempts=3)
    lost = [
        released(started.fence, started_ago=4.0, message="signal 9"),
        released(waiting.fence, started_ago=None),
    ]
    assert rescue_worker(lost) == [started.job_id, waiting.job_id]

    (attempt,) = attempts_of(started.job_id)
    assert (attempt.outcome, attempt.message, attempt.host) == ("lost", "signal 9", WORKER.host)
    assert attempt.exception_class == "django_pgqueue.exceptions.WorkerDied"
    assert abs(attempt.finished_at - attempt.started_at - timedelta(seconds=4)) < timedelta(seconds=1)
    assert status_of(started.job_id) == "scheduled"

    assert attempts_of(waiting.job_id) == []
    state = state_of(waiting.job_id)
    assert (state.status, state.attempts, state.attempts_allowed) == ("ready", 0, 3)


def test_rescue_worker_tells_the_status_and_whose_the_jobs_were() -> None:
    spent, waiting = running(2, max_attempts=1)
    rows = Job.objects.rescue_worker(
        [released(spent.fence), released(waiting.fence, started_ago=None)], worker=WORKER
    )
    assert sorted(rows) == [
        (spent.job_id, "dead", 1, "worker-1", "tests.tasks.ok", "default"),
        (waiting.job_id, "ready", 0, "worker-1", None, None),
    ]


def test_the_log_line_names_task_and_queue(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", logger="django_pgqueue")
    (expired,) = running(lease=OVER, queue="emails")
    maintenance.rescue(None, server_up=0.0)
    (lost,) = running(queue="emails")
    leases.give_back([(lost.fence, time.monotonic())], worker=WORKER, reason="died", connection=None)
    for record, job_id in zip(caplog.records, (expired.job_id, lost.job_id), strict=True):
        said = {"job": job_id, "task": "tests.tasks.ok", "queue": "emails"}
        assert record.event == "rescued"
        assert said.items() <= record.fields.items()


def test_a_poison_job_takes_no_prefetched_neighbours_budget() -> None:
    poison = enqueue(max_attempts=2, backoff_base=0.0, backoff_cap=0.0)
    neighbours = enqueue_many(5, max_attempts=1)
    for _ in range(2):
        Job.objects.promote(limit=10)
        batch = claim_queue()
        rescue_worker(
            [released(job.fence, started_ago=0.1 if job.job_id == poison else None) for job in batch]
        )
    assert status_of(poison) == "dead"
    assert [(status_of(job_id), outcomes_of(job_id)) for job_id in neighbours] == [("ready", [])] * 5


def test_rescue_worker_touches_only_the_fences_that_it_was_given() -> None:
    mine, theirs = running(1)[0], running(1)[0]
    before = rows_of(theirs.job_id)
    assert rescue_worker([released(mine.fence)]) == [mine.job_id]
    assert rows_of(theirs.job_id) == before
    assert rescue_worker([]) == []


def test_a_success_that_was_stored_before_the_process_died_stays() -> None:
    (claimed,) = running()
    Job.objects.complete([completed(claimed.fence)], worker=WORKER)
    before = rows_of(claimed.job_id)
    assert rescue_worker([released(claimed.fence)]) == []
    assert rescue_worker([released(claimed.fence, started_ago=None)]) == []
    assert rows_of(claimed.job_id) == before


def test_the_zombie_of_a_rescued_job_is_told_that_it_lost() -> None:
    made = make("running", lease=OVER)
    rescue()
    answer = Job.objects.complete([completed(made.fence)], worker=WORKER)[made.fence]
    assert answer == (LOST, "scheduled", 1)
    assert Job.objects.renew([made.fence], lease=LEASE)[made.fence] == (LOST, False)
