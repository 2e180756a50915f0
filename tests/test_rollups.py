"""Rollups: each attempt is counted exactly once, in whatever order transactions commit, whoever counts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from django_pgqueue import histograms, sql
from django_pgqueue.models import Job
from django_pgqueue.operating import Rollup
from django_pgqueue.rollups import Counted, Sums

from . import support
from .support import WORKER, completed, failed, fetch
from .waiting import wait_until

HOUR = 3600.0
pytestmark = pytest.mark.django_db(transaction=True)
Connect = Callable[[], psycopg.Connection]


@pytest.fixture(autouse=True)
def mark() -> None:
    """The first pass makes the mark and counts nothing."""
    assert count() == Counted(0, False, False)


def count(limit: int = 10_000, session: Any = None) -> Counted:
    """Make one pass as the keeper does: in a transaction of its own."""
    with transaction.atomic() if session is None else session.transaction():
        return Rollup.objects.count_attempts(limit=limit, connection=session or connection)


def assert_nobody_is_awaited(limit: int = 10_000) -> None:
    """Ids of transactions are the server's: something may be under way in other databases, too."""

    def all_have_ended() -> bool:
        assert count(limit).attempts == 0
        return mark_row()["pending"] == []

    wait_until(all_have_ended)


def sums(span: int = 60) -> Sums:
    """Return everything that was counted, as one sum."""
    columns = zip(*Rollup.objects.series(span, HOUR).values(), strict=True)
    return Sums(*map(sum, columns))


def succeed(jobs: int, session: Any = None, finished_ago: float = 1.0, **options: Any) -> None:
    """Run so many jobs to their ends by one settle."""
    claimed = support.running(jobs, **options)
    settled = [completed(job.fence, finished_ago=finished_ago) for job in claimed]
    Job.objects.complete(settled, worker=WORKER, connection=session)


def mark_row() -> dict[str, Any]:
    return fetch(f"SELECT next_xid, pending, counted_from::text FROM {sql_mark()}")[0]


def sql_mark() -> str:
    return "django_pgqueue_rollupmark"


# --- what is counted


def test_attempts_are_counted_by_outcome_queue_and_task() -> None:
    succeed(3)
    succeed(1, queue="emails")
    job = support.running(1, max_attempts=3)[0]
    Job.objects.fail([failed(job.fence)], worker=WORKER)
    assert count() == Counted(5, False, False)
    assert sums()[:6] == (4, 1, 0, 0, 0, 0)
    assert sums(900) == sums(60)
    tasks = Rollup.objects.tasks(60, HOUR)
    assert [(task.queue, task.sums.succeeded, task.sums.bad) for task in tasks] == [
        ("default", 3, 1),
        ("emails", 1, 0),
    ]


def test_run_times_are_in_the_histogram_and_in_the_sum() -> None:
    succeed(4)  # each of one second, see support.completed
    count()
    assert sums().run_seconds == pytest.approx(4.0, abs=0.01)
    (times,) = Rollup.objects.times(60, HOUR).tasks.values()
    assert sum(times.runs) == 4
    assert 0.5 <= (histograms.percentile(times.runs, 0.5) or 0) <= 2.048


def test_only_first_attempts_have_waited_since_they_were_enqueued() -> None:
    made = support.make("dead", failures=2)
    assert support.outcomes_of(made.job_id) == ["failed"] * 3
    count()
    (times,) = Rollup.objects.times(60, HOUR).tasks.values()
    assert (sum(times.runs), sum(times.waits)) == (3, 1)


def test_nothing_is_counted_twice_and_an_idle_queue_writes_nothing() -> None:
    succeed(3)
    assert count().attempts == 3
    assert count() == count() == Counted(0, False, False)
    assert sums().ended == 3

    def nothing_is_written() -> bool:
        before = mark_row()
        count()
        return mark_row() == before

    wait_until(nothing_is_written, message="transactions of other databases of the server move the mark, too")


def test_batches_are_bounded_and_say_that_more_waits() -> None:
    for _ in range(5):
        succeed(2)
    passes = [count(limit=4) for _ in range(6)]
    assert [counted.attempts for counted in passes[:2]] == [4, 4]
    assert sum(counted.attempts for counted in passes) == sums().ended == 10
    assert passes[0].is_behind
    assert not passes[-1].is_behind


# --- transactions that commit in another order than they began


def test_what_commits_late_is_counted_when_it_has_committed(connect: Connect) -> None:
    session = connect()
    with session.transaction():
        succeed(2, session)  # written, not committed
        succeed(3)
        assert count().attempts == 3
        assert count().attempts == 0
        assert mark_row()["pending"], "the mark remembers who has not ended"
        succeed(1)
        assert count().attempts == 1
    assert count().attempts == 2
    assert count().attempts == 0
    assert sums().succeeded == 6
    assert_nobody_is_awaited()


def test_what_is_rolled_back_is_never_counted(connect: Connect) -> None:
    session = connect()
    with session.transaction() as undone:
        succeed(2, session)
        succeed(1)
        count()
        raise psycopg.Rollback(undone)
    count()
    assert sums().succeeded == 1
    assert_nobody_is_awaited()


def test_a_batch_that_ends_between_transactions_under_way_loses_none(connect: Connect) -> None:
    first, second = connect(), connect()
    with first.transaction():
        succeed(1, first)
        for _ in range(3):
            succeed(2)
        with second.transaction():
            succeed(1, second)
            succeed(2)
            total = sum(count(limit=2).attempts for _ in range(8))
            assert total == 8
    total = sum(count(limit=2).attempts for _ in range(4))
    assert (total, sums().succeeded) == (2, 10)


def test_two_keepers_count_each_attempt_once(connect: Connect) -> None:
    for _ in range(40):
        succeed(1)
    sessions = [connect() for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        done = list(threads.map(lambda session: [count(3, session).attempts for _ in range(20)], sessions))
    while count().attempts:
        pass
    assert sums().succeeded == 40
    assert sum(map(sum, done)) <= 40


def test_a_keeper_waits_for_no_other(connect: Connect) -> None:
    session = connect()
    succeed(1)
    with session.transaction():
        assert count(session=session).attempts == 1
        assert count() == Counted(0, False, False)
    assert count().attempts == 0
    assert sums().succeeded == 1


def test_a_pass_that_is_undone_is_done_again() -> None:
    succeed(2)
    with transaction.atomic():
        assert Rollup.objects.count_attempts(limit=10, connection=connection).attempts == 2
        transaction.set_rollback(True)
    assert sums().ended == 0
    assert count().attempts == 2
    assert sums().ended == 2


# --- what must not stop the counting


def test_a_bulk_load_is_passed_over_and_said_to_be() -> None:
    with transaction.atomic():
        succeed(30)
    succeed(1)
    first = count(limit=10)
    assert first == Counted(0, True, True)
    assert count(limit=10).attempts == 1
    assert sums().succeeded == 1


def test_a_bulk_load_that_was_under_way_is_passed_over_too(connect: Connect) -> None:
    session = connect()
    with session.transaction():
        succeed(30, session)
        succeed(1)
        assert count(limit=10).attempts == 1
    assert count(limit=10).attempts == 0
    assert_nobody_is_awaited(limit=10)


def test_a_database_with_younger_transactions_begins_anew() -> None:
    succeed(2)
    count()
    fetch(f"UPDATE {sql_mark()} SET next_xid = next_xid + 1000000000 RETURNING 1")
    succeed(1)
    count()
    succeed(1, finished_ago=0.0)
    assert count().attempts == 1
    assert mark_row()["counted_from"] != "-infinity"
    fetch(f"UPDATE {sql_mark()} SET next_xid = 0 RETURNING 1")
    count()
    assert sums().succeeded == 4, (
        "two before, one after; of all that is there, only the last is counted again"
    )


def test_attempts_recorded_before_the_column_was_there_do_not_count() -> None:
    succeed(2)
    fetch(f"UPDATE {sql.ATTEMPT} SET recorded_xid = NULL RETURNING 1")
    succeed(1)
    assert count().attempts == 1


# --- keeping them small


def test_old_rollups_are_pruned_in_batches() -> None:
    succeed(1)
    count()
    assert Rollup.objects.prune(60, age=HOUR, limit=10, connection=connection) == 0
    fetch("UPDATE django_pgqueue_rollup SET starts_at = starts_at - interval '1 day' RETURNING 1")
    assert Rollup.objects.prune(60, age=HOUR, limit=10, connection=connection) == 1
    kept = fetch("SELECT span FROM django_pgqueue_rollup ORDER BY span")
    assert [row["span"] for row in kept] == [900, sql.EVER]


# --- percentiles


def test_percentiles_lie_within_their_bucket() -> None:
    counts = histograms.empty()
    counts[11] = 90  # 1.024 to 2.048 s
    counts[15] = 10  # 16.384 to 32.768 s
    assert histograms.percentile(histograms.empty(), 0.5) is None
    assert 1.024 <= (histograms.percentile(counts, 0.5) or 0) <= 2.048
    assert 16.384 <= (histograms.percentile(counts, 0.95) or 0) <= 32.768
    assert (histograms.percentile(counts, 1.0) or 0) == pytest.approx(32.768)


def test_the_thresholds_of_python_and_of_the_statement_are_the_same() -> None:
    values = [0.0, 0.0005, 0.0015, 1.0, 40.0, 1e6]
    found = fetch(
        "SELECT width_bucket(value, %s::float8[]) AS bucket FROM unnest(%s::float8[]) AS given(value)",
        [list(histograms.THRESHOLDS), values],
    )
    for value, row in zip(values, found, strict=True):
        counts = histograms.empty()
        counts[row["bucket"]] = 1
        low = histograms.percentile(counts, 0.0) or 0.0
        assert low <= max(value, 0.0)
