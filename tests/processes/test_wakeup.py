"""Wake-ups: a sleeping worker starts at once, a busy one is left alone, and nothing depends on them."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise

import psycopg
import pytest
from django.db import transaction

from django_pgqueue import sql

from ..waiting import wait_for, wait_until
from . import tasks
from .conftest import Workers
from .queue import Queue

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("django_database")]

# Whoever waits for the poll here waits for minutes.
SLEEPY = ("--lease", 200, "--heartbeat", 60, "--poll", 100)


@contextmanager
def heard(queue: Queue) -> Iterator[Callable[[], int]]:
    """Count the notifications that the server sends meanwhile."""
    with psycopg.connect(queue.url, autocommit=True) as listener:
        listener.execute(sql.LISTEN)
        count = 0

        def more() -> int:
            nonlocal count
            count += sum(1 for _ in listener.notifies(timeout=0.5))
            return count

        yield more


def asleep(queue: Queue) -> bool:
    """Whether a worker has said that it sleeps."""
    statement = (
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = %s"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    return queue.value(statement, [sql.LOCK_CLASS]) > 0


def latency(queue: Queue, name: str = "default") -> float:
    """Enqueue as a project does, and return the seconds until the task was called."""
    wait_until(lambda: asleep(queue))
    result = tasks.mark.using(queue_name=name).enqueue()
    enqueued = time.monotonic()
    (execution,) = queue.wait_started(int(result.id))
    return execution.began - enqueued


def test_a_sleeping_worker_starts_at_once(queue: Queue, start: Workers) -> None:
    """Before and after its listening connection was killed; scheduled jobs too, when they are due."""
    worker = start(*SLEEPY)
    assert latency(queue) < 1.5
    assert latency(queue, "emails") < 1.5
    queue.session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE 'django_pgqueue wakeup%'"
    )
    worker.wait_for("wakeup_lost")
    worker.wait_for("reconnected")
    assert latency(queue) < 1.5
    assert len(worker.events("wakeup_lost")) == 1
    before = time.monotonic()
    job = queue.enqueue(tasks.mark, delay=1.5)  # without a notification: the keeper knows the time
    (execution,) = queue.wait_started(job, timeout=10.0)
    assert 1.4 < execution.began - before < 4.0


def test_who_falls_asleep_between_an_insert_and_its_commit_still_starts_at_once(
    queue: Queue, start: Workers
) -> None:
    start(*SLEEPY, "--threads", 1)
    for _ in range(3):
        busy = tasks.sleep.enqueue(1.5)
        (execution,) = queue.wait_started(int(busy.id))
        wait_until(lambda: not asleep(queue))
        wait_for(max(execution.began + 1.35 - time.monotonic(), 0.0))
        with transaction.atomic():
            late = tasks.mark.enqueue()
            wait_until(lambda: asleep(queue))
        committed = time.monotonic()
        (execution,) = queue.wait_started(int(late.id))
        assert execution.began - committed < 1.5


def test_a_retry_is_not_late(queue: Queue, start: Workers) -> None:
    start(*SLEEPY)
    job = queue.enqueue(tasks.fail_at_first, 2, max_attempts=3, backoff_base=0.5, backoff_cap=0.5, delay=0.1)
    queue.wait(job, "succeeded", timeout=10.0)


def test_only_a_sleeping_worker_is_notified_and_only_of_its_own_queues(queue: Queue, start: Workers) -> None:
    start(*SLEEPY, "--threads", 1, "--queues", "default")
    busy = tasks.sleep.enqueue(2)
    queue.wait_started(int(busy.id))
    wait_until(lambda: not asleep(queue))
    with heard(queue) as count:
        behind = [int(tasks.ok.enqueue().id) for _ in range(20)]
        assert count() == 0, "a busy system sends notifications"
    queue.wait([int(busy.id), *behind], "succeeded")
    wait_until(lambda: asleep(queue))
    with heard(queue) as count:
        tasks.ok.using(queue_name="emails").enqueue()
        with transaction.atomic():
            tasks.ok.enqueue()
            transaction.set_rollback(True)
        queue.enqueue(tasks.ok, delay=3600)
        assert count() == 0
        with transaction.atomic():
            for _ in range(20):
                first = tasks.sleep.enqueue(0.05)
        queue.wait(int(first.id), "succeeded")
        assert 1 <= count() <= 2, "not once for a transaction"
    queue.session.execute(f"DELETE FROM {sql.STATE} WHERE queue = 'emails'")
    queue.session.execute(f"DELETE FROM {sql.JOB} WHERE queue = 'emails'")


def test_what_a_notification_says_is_not_trusted(queue: Queue, start: Workers) -> None:
    worker = start(*SLEEPY)
    wait_until(lambda: asleep(queue))
    later = queue.enqueue(tasks.mark, delay=3600)
    with queue.session.transaction():
        for payload in (
            "",
            str(later),
            "*",
            "tests.processes.tasks.die",
            "'; DROP TABLE x; --",
            "\n\t",
            "ü" * 3000,
        ):
            queue.session.execute("SELECT pg_notify(%s, %s)", [sql.CHANNEL, payload])
            queue.session.execute("SELECT pg_notify(%s, %s)", [sql.RESULTS_CHANNEL, payload])
    queue.wait(queue.enqueue(tasks.ok), "succeeded", timeout=5.0)
    assert queue.status(later) == "scheduled"
    assert worker.events("wakeup_lost") == []


def test_without_notifications_the_poll_finds_everything(queue: Queue, start: Workers) -> None:
    start("--no-notify", "--poll", 0.5)
    jobs = [int(tasks.mark.enqueue().id), queue.enqueue(tasks.mark, delay=1)]
    queue.wait(jobs, "succeeded", timeout=10.0)
    assert not asleep(queue)


@pytest.mark.slow
def test_idle_children_do_not_poll_in_step(queue: Queue, start: Workers) -> None:
    start("--processes", 4, "--poll", 0.5, "--no-notify")
    polls: dict[int, set[datetime]] = {}
    until = time.monotonic() + 5

    def watched() -> bool:
        rows = queue.fetch(
            "SELECT pid, query_start FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'django_pgqueue child%%'",
            [],
        )
        for row in rows:
            if row["query_start"]:
                polls.setdefault(row["pid"], set()).add(row["query_start"])
        return time.monotonic() > until

    wait_until(watched)
    assert len(polls) == 4
    for times in polls.values():
        ordered = sorted(times)
        gaps = [(b - a).total_seconds() for a, b in pairwise(ordered)]
        gaps = [gap for gap in gaps if gap > 0.1]  # statements of one look
        assert len(gaps) >= 5
        assert statistics.stdev(gaps) > 0.1 * statistics.mean(gaps)
        assert max(gaps) < 1.5
