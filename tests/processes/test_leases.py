"""Leases of running jobs: kept whatever the task does, lost in the open, never fought over."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest

from django_pgqueue import sql
from django_pgqueue.models import Job

from ..waiting import wait_for, wait_until
from . import tasks
from .conftest import Workers
from .machine import faketime_library
from .queue import Queue

pytestmark = pytest.mark.process

LEASE = 2.0
SHORT = ("--lease", LEASE, "--heartbeat", 0.5, "--poll", 0.1)


@contextmanager
def locked(queue: Queue, *jobs: int) -> Iterator[None]:
    """Hold the state rows of jobs from another session, as a careless transaction would."""
    with psycopg.connect(queue.url) as session:
        session.execute(
            f"SELECT FROM {sql.STATE} WHERE job_id = ANY(%s) ORDER BY job_id FOR UPDATE", [list(jobs)]
        )
        yield


@contextmanager
def refused(queue: Queue, condition: str) -> Iterator[None]:
    """Have the server refuse updates of state rows: ``condition`` speaks of OLD and NEW."""
    queue.session.execute(f"""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'permission denied, says the test' USING ERRCODE = 'insufficient_privilege';
        END $$;
        CREATE TRIGGER refuse BEFORE UPDATE ON {sql.STATE} FOR EACH ROW WHEN ({condition})
        EXECUTE FUNCTION refuse();
    """)
    try:
        yield
    finally:
        queue.session.execute("DROP FUNCTION refuse CASCADE")


ANY_UPDATE = "true"
A_RENEWAL = "OLD.status = 'running' AND NEW.status = 'running' AND OLD.lease_token = NEW.lease_token"


def test_long_jobs_of_every_kind_run_once(queue: Queue, start: Workers) -> None:
    """On two workers, for three leases: plain sleep, the interpreter held, the connection maltreated."""
    start(*SHORT, "--threads", 8, wait=False), start(*SHORT, "--threads", 8)
    start.all[0].wait_started()
    meddling = [
        queue.enqueue(tasks.meddle_and_sleep, how, 3 * LEASE, max_attempts=1) for how in tasks.MEDDLING
    ]
    sleeping = queue.enqueue(tasks.sleep, 4 * LEASE, max_attempts=1)
    holding = queue.enqueue(tasks.hold_interpreter, 2 * LEASE, max_attempts=1)
    seen: set[object] = set()

    def ended() -> bool:
        seen.add(queue.state(sleeping).lease_expires_at)
        return set(queue.statuses([*meddling, sleeping, holding]).values()) == {"succeeded"}

    wait_until(ended, 30.0)
    for job in [*meddling, sleeping, holding]:
        assert queue.outcomes(job) == ["succeeded"]
        assert len(queue.executions(job)) == 1
    assert len(seen - {None}) >= 8, "renewed less than twice in a lease"


def test_a_locked_row_costs_its_neighbours_nothing(queue: Queue, start: Workers) -> None:
    worker = start(*SHORT)
    locked_one, *neighbours = queue.enqueue_many(tasks.sleep, [(4,)] * 4, max_attempts=1)
    for job in [locked_one, *neighbours]:
        queue.wait_started(job)
    with locked(queue, locked_one):
        wait_until(partial(expired, queue, locked_one))
        assert not any(expired(queue, job) for job in neighbours)
    queue.wait([locked_one, *neighbours])
    for job in neighbours:
        assert queue.executions(job)[0].note == "held"
        assert queue.outcomes(job) == ["succeeded"]
    assert len(queue.outcomes(locked_one)) == 1
    assert not worker.events("lease_in_doubt", job=neighbours[0])


def expired(queue: Queue, job: int) -> bool:
    lease = queue.state(job).lease_expires_at
    return lease is not None and bool(
        queue.value("SELECT %s < clock_timestamp() - interval '0.2 s'", [lease])
    )


def test_rescue_and_a_late_end_never_both_count(queue: Queue, start: Workers) -> None:
    """Twenty jobs ended and expired behind a lock: when it goes, their owner and two rescuers race."""
    start(*SHORT, "--threads", 20, wait=False), start(*SHORT, "--threads", 20)
    start.all[0].wait_started()
    jobs = queue.enqueue_many(tasks.sleep, [(1, 0.1)] * 20, max_attempts=3)
    for job in jobs:
        queue.wait_started(job)
    with locked(queue, *jobs):
        wait_until(lambda: all(expired(queue, job) for job in jobs))
    queue.wait(jobs, "succeeded")
    for job in jobs:
        assert queue.outcomes(job) in (["succeeded"], ["lost", "succeeded"])
        assert len(queue.executions(job)) == len(queue.outcomes(job))


def test_renewals_that_are_refused_are_seen_and_survived(queue: Queue, start: Workers) -> None:
    worker = start(*SHORT)
    job = queue.enqueue(tasks.sleep, 4, max_attempts=1)
    queue.wait_started(job)
    with refused(queue, A_RENEWAL):
        worker.wait_for("lease_in_doubt", job=job)
        queue.wait(job)
        said = [e for e in worker.events("connection_lost") if "permission denied" in e.fields["error"]]
        assert 1 <= len(said) <= 2, "it is said once for each connection"
    assert queue.executions(job)[0].note == "lost", "the task was not told"
    # Nobody else took it, so what it did counts.
    assert queue.outcomes(job) == ["succeeded"]


def test_outcomes_outlive_a_time_without_rights(queue: Queue, start: Workers) -> None:
    worker = start(*SHORT, "--threads", 2)
    jobs = [
        queue.enqueue(tasks.sleep, 1, max_attempts=2),
        queue.enqueue(tasks.sleep, 1, kwargs={"raises_at": 1}, max_attempts=1),
    ]
    for job in jobs:
        queue.wait_started(job)
    with refused(queue, ANY_UPDATE):
        wait_until(lambda: all(queue.executions(job)[0].ended for job in jobs))
        worker.wait_for("connection_lost")
        wait_for(1)
    queue.wait(jobs)
    assert [queue.outcomes(job) for job in jobs] == [["succeeded"], ["failed"]]
    assert queue.attempt(jobs[1]).exception_class == "builtins.ValueError"
    assert len(worker.text.splitlines()) < 40, "it filled the log"


def test_a_job_that_came_back_waits_for_its_earlier_attempt(queue: Queue, start: Workers) -> None:
    """The only worker lost a lease but still runs the task: it must neither run it twice at once nor spin."""
    worker = start("--lease", 30, "--heartbeat", 5, "--poll", 0.1)
    job = queue.enqueue(tasks.tick, 2, 0.1, max_attempts=3)
    queue.wait_started(job)
    queue.session.execute(f"UPDATE {sql.STATE} SET lease_expires_at = clock_timestamp() - interval '1 s'")
    assert Job.objects.rescue(limit=10, server_up=0.0, connection=queue.session)
    queue.wait(job, "succeeded")
    assert queue.outcomes(job) == ["lost", "succeeded"]
    first, second = queue.executions(job)
    assert second.began >= first.ended
    assert queue.state(job).lease_version < 50, "it was claimed and refused over and over"
    assert worker.events("lease_lost", job=job)


def test_a_worker_with_a_wrong_clock_takes_nothing_and_is_not_late(queue: Queue, start: Workers) -> None:
    """Whatever Python says the time is, the database's clock decides."""
    right, fast = start(*SHORT, wait=False), start(*SHORT, startup="fast_clock")
    right.wait_started()
    jobs = queue.enqueue_many(tasks.sleep, [(1.5 * LEASE,)] * 6, max_attempts=1)
    later = queue.enqueue(tasks.mark, delay=3600)
    queue.wait(jobs, "succeeded")
    owners = {queue.executions(job)[0].pid for job in jobs}
    assert owners == {right.child, fast.child}, "only one of them worked: the test shows nothing"
    assert queue.status(later) == "scheduled"
    assert not right.events("rescued") + fast.events("rescued")


def test_a_worker_under_faketime_takes_nothing(queue: Queue, start: Workers) -> None:
    library = faketime_library()
    if library is None:
        pytest.skip("libfaketime is not installed (Debian: apt-get install faketime)")
    right = start(*SHORT, wait=False)
    faked = [
        start(
            *SHORT,
            wait=False,
            new_interpreter=True,
            env={"LD_PRELOAD": library, "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"},
        )
        for offset in ("+10m", "-10m")
    ]
    for worker in (right, *faked):
        worker.wait_started()
    jobs = queue.enqueue_many(tasks.sleep, [(1.5 * LEASE,)] * 9, max_attempts=1)
    later = queue.enqueue(tasks.mark, delay=3600)
    queue.wait(jobs, "succeeded")
    assert {queue.executions(job)[0].pid for job in jobs} == {w.child for w in (right, *faked)}
    assert queue.status(later) == "scheduled"
    assert not any(worker.events("rescued") for worker in (right, *faked))
