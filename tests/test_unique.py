"""Unique keys: one live job per key, whoever enqueues, in bulk too; and what happens on a conflict."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from django_pgqueue import DuplicateJob, enqueue_many, sql
from django_pgqueue import task as task_decorator
from django_pgqueue.compat import InvalidTask, signals
from django_pgqueue.conf import MAX_GIVEN_KEY, MAX_UNIQUE_KEY
from django_pgqueue.models import Job, JobState
from django_pgqueue.records import NewJob
from django_pgqueue.states import CANCELLED, DEAD, READY, RUNNING, SCHEDULED, SUCCEEDED

from .support import claim, make, settle_one, state_of, status_of
from .tasks import ok, other

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

KEY = "order 7"


@pytest.fixture
def enqueued() -> Iterator[list[str]]:
    """The result ids that task_enqueued was sent for."""
    heard: list[str] = []

    def hear(task_result: Any, **kwargs: Any) -> None:
        heard.append(task_result.id)

    signals.task_enqueued.connect(hear)
    yield heard
    signals.task_enqueued.disconnect(hear)


# --- return, the default


@pytest.mark.parametrize("status", [SCHEDULED, READY, RUNNING])
def test_a_live_job_is_returned(status: str, enqueued: list[str]) -> None:
    live = make(status, unique_key=KEY)
    result = ok.using(unique_key=KEY).enqueue("other arguments")
    assert result.id == str(live.job_id)
    assert result.args == []
    assert enqueued == []
    assert Job.objects.count() == 1


@pytest.mark.parametrize("status", [SUCCEEDED, DEAD, CANCELLED])
def test_an_ended_job_holds_no_key(status: str, enqueued: list[str]) -> None:
    ended = make(status, unique_key=KEY)
    result = ok.using(unique_key=KEY).enqueue()
    assert result.id != str(ended.job_id)
    assert enqueued == [result.id]


def test_another_key_and_no_key_are_other_jobs() -> None:
    ids = {ok.using(unique_key=key).enqueue().id for key in (KEY, "order 8", None, None)}
    assert len(ids) == 4


def test_a_rolled_back_job_holds_no_key() -> None:
    with transaction.atomic():
        ok.using(unique_key=KEY).enqueue()
        transaction.set_rollback(True)
    assert Job.objects.count() == 0
    assert ok.using(unique_key=KEY).enqueue().args == []


def test_the_key_may_be_made_of_the_arguments() -> None:
    task = ok.using(unique_key=lambda order, **_: f"order {order}")
    first, second, third = task.enqueue(1, note="a"), task.enqueue(1, note="b"), task.enqueue(2)
    assert first.id == second.id != third.id
    assert state_of(int(third.id)).unique_key == "order 2"


@pytest.mark.parametrize("key", ["", "two\nlines", "NUL\0", "x" * 247, 7])
def test_a_bad_key_is_refused_before_any_sql(key: Any, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0), pytest.raises(InvalidTask, match="unique_key"):
        ok.using(unique_key=key).enqueue()


def test_a_callable_that_gives_a_bad_key_is_refused() -> None:
    with pytest.raises(InvalidTask, match="unique_key"):
        ok.using(unique_key=lambda: 7).enqueue()


@pytest.mark.parametrize("key", ["", "two\nlines", "NUL\0", "x" * (MAX_GIVEN_KEY + 1)])
def test_a_key_that_is_no_callable_is_looked_at_when_the_task_is_made(key: str) -> None:
    with pytest.raises(InvalidTask, match="unique_key"):
        ok.using(unique_key=key)
    with pytest.raises(InvalidTask, match="unique_key"):
        task_decorator(unique_key=key)(other.func)


def test_the_longest_key_has_room_for_the_mark_of_a_follower() -> None:
    assert MAX_GIVEN_KEY + len(sql.FOLLOWER) == MAX_UNIQUE_KEY
    key = "x" * MAX_GIVEN_KEY
    running = make(RUNNING, unique_key=key)
    follower = ok.using(unique_key=key, on_conflict="replace").enqueue()
    assert int(follower.id) != running.job_id


def test_a_callable_that_does_not_take_the_arguments_says_so() -> None:
    with pytest.raises(InvalidTask, match=r"tests\.tasks\.ok: unique_key .*<lambda>\(n\): .*'n'"):
        ok.using(unique_key=lambda n: f"order {n}").enqueue()
    with pytest.raises(InvalidTask, match=r"item 1: tests\.tasks\.ok: unique_key .*too many"):
        ok.using(unique_key=lambda n: f"order {n}").enqueue_many([(1,), (1, 2)])


def test_an_error_inside_the_callable_is_the_callers_own() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        ok.using(unique_key=lambda n: "order " + n).enqueue(None)


@pytest.mark.parametrize("on_conflict", ["raise", "replace"])
def test_a_conflict_without_a_key_is_refused(on_conflict: Any, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0), pytest.raises(InvalidTask, match=f"{on_conflict}.*needs a unique_key"):
        ok.using(on_conflict=on_conflict).enqueue()
    assert ok.using(on_conflict=on_conflict, unique_key=lambda: None).enqueue(), "this call has no key"


# --- raise


def test_raise_names_the_live_job() -> None:
    live = make(RUNNING, unique_key=KEY)
    with pytest.raises(DuplicateJob, match=f"job {live.job_id} .*'{KEY}'") as caught:
        ok.using(unique_key=KEY, on_conflict="raise").enqueue()
    assert (caught.value.job_id, caught.value.unique_key) == (live.job_id, KEY)


def test_raise_in_bulk_writes_nothing_and_spares_the_outer_transaction() -> None:
    make(READY, unique_key="order 500")
    task = ok.using(unique_key=lambda n: f"order {n}", on_conflict="raise")
    with transaction.atomic():
        with pytest.raises(DuplicateJob):
            task.enqueue_many((n,) for n in range(1000))
        assert Job.objects.count() == 1


# --- replace


def test_replace_gives_a_waiting_job_new_arguments_and_a_new_time(enqueued: list[str]) -> None:
    live = make(READY, unique_key=KEY)
    result = ok.using(unique_key=KEY, on_conflict="replace", delay=60.0, priority=5).enqueue("new")
    assert result.id == str(live.job_id)
    assert result.args == ["new"]
    state = state_of(live.job_id)
    assert (state.status, state.priority) == (SCHEDULED, 5)
    assert enqueued == [result.id]
    assert Job.objects.count() == 1


def test_replace_again_and_again_keeps_one_job() -> None:
    task = ok.using(unique_key=KEY, on_conflict="replace", delay=60.0)
    ids = {task.enqueue(n).id for n in range(5)}
    assert len(ids) == 1
    assert Job.objects.get().args == [4]


def test_replace_of_a_running_job_is_one_follower_that_never_overlaps() -> None:
    running = make(RUNNING, unique_key=KEY)
    task = ok.using(unique_key=KEY, on_conflict="replace")
    follower, again = task.enqueue(1), task.enqueue(2)
    assert follower.id == again.id != str(running.job_id)
    make_due(int(follower.id))
    assert Job.objects.promote(limit=10) == [], "it would overlap"
    assert Job.objects.promote_now([int(follower.id)]) == []

    settle_one("complete", running.fence)

    assert [row[0] for row in Job.objects.promote(limit=10)] == [int(follower.id)]
    assert state_of(int(follower.id)).unique_key == KEY
    assert claim(int(follower.id)).args == "[2]"


def test_a_follower_waits_for_the_retries_of_the_running_job_too() -> None:
    running = make(RUNNING, unique_key=KEY)
    follower = int(ok.using(unique_key=KEY, on_conflict="replace").enqueue().id)
    make_due(follower)
    settle_one("fail", running.fence, delay=3600.0)
    assert Job.objects.promote(limit=10) == []
    Job.objects.cancel([running.job_id])
    assert [row[0] for row in Job.objects.promote(limit=10)] == [follower]


def make_due(job_id: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {sql.STATE} SET run_at = run_at - interval '1 hour' WHERE job_id = %s", [job_id]
        )


# --- bulk


def test_raise_within_one_call_names_both_places_and_no_job(django_assert_num_queries: Any) -> None:
    task = ok.using(unique_key=lambda n: f"order {n}", on_conflict="raise")
    with (
        django_assert_num_queries(0),
        pytest.raises(DuplicateJob, match=r"item 2: item 0 .*'order 1'") as caught,
    ):
        task.enqueue_many([(1,), (2,), (1,)])
    error = caught.value
    assert (error.job_id, error.index, error.first_index, error.unique_key) == (None, 2, 0, "order 1")
    assert Job.objects.count() == 0


def test_raise_in_bulk_names_the_place_and_the_live_job() -> None:
    live = make(READY, unique_key="order 2")
    task = ok.using(unique_key=lambda n: f"order {n}", on_conflict="raise")
    with pytest.raises(DuplicateJob, match=f"item 1: job {live.job_id} .*'order 2'") as caught:
        task.enqueue_many([(1,), (2,), (3,)])
    assert (caught.value.job_id, caught.value.index) == (live.job_id, 1)
    with pytest.raises(DuplicateJob, match=f"^job {live.job_id}") as alone:
        task.enqueue(2)
    assert alone.value.index is None


def test_a_later_item_may_share_the_key_of_one_that_raises() -> None:
    raising = ok.using(unique_key=KEY, on_conflict="raise")
    first, second = enqueue_many([raising.bind(1), ok.using(unique_key=KEY).bind(2)])
    assert first.id == second.id


def test_one_duplicate_among_a_thousand_costs_nothing_else() -> None:
    live = make(READY, unique_key="order 500")
    task = ok.using(unique_key=lambda n: f"order {n}")
    results = task.enqueue_many((n,) for n in range(1000))
    assert len({result.id for result in results}) == 1000
    assert results[500].id == str(live.job_id)
    assert [result.args for result in results[:500]] == [[n] for n in range(500)]
    assert Job.objects.count() == JobState.objects.count() == 1000


def test_duplicates_within_one_call_are_one_job() -> None:
    task = ok.using(unique_key=KEY)
    first, second, third = enqueue_many([task.bind(1), other.bind(), task.bind(2)])
    assert first.id == third.id != second.id
    assert third.args == [1]


@pytest.mark.django_db(transaction=True)
def test_bulk_inserts_of_the_same_keys_in_opposite_order_do_not_deadlock(
    connect: Callable[[], psycopg.Connection],
) -> None:
    keys = [f"order {n}" for n in range(200)]

    def insert(session: psycopg.Connection, ordered: list[str]) -> None:
        for number in range(5):
            jobs = [NewJob("tests.tasks.ok", unique_key=f"{key} of {number}") for key in ordered]
            Job.objects.enqueue_unique(jobs, backend="default", connection=session)

    with ThreadPoolExecutor() as pool:
        forward = pool.submit(insert, connect(), keys)
        backward = pool.submit(insert, connect(), keys[::-1])
        forward.result(60), backward.result(60)
    assert Job.objects.count() == JobState.objects.count() == 5 * len(keys)


@pytest.mark.django_db(transaction=True)
def test_an_insert_waits_for_an_uncommitted_one_of_the_same_key(
    connect: Callable[[], psycopg.Connection], blocked: Callable[..., Any]
) -> None:
    first, second = connect(), connect()
    new = [NewJob("tests.tasks.ok", unique_key=KEY)]
    with first.transaction():
        (mine,) = Job.objects.enqueue_unique(new, backend="default", connection=first)
        waiting = blocked(second, Job.objects.enqueue_unique, new, backend="default")
    (theirs,) = waiting.result(10)
    assert (theirs.job_id, theirs.inserted) == (mine.job_id, False)
    assert status_of(mine.job_id) == READY


def test_a_thousand_duplicates_are_read_together(django_assert_num_queries: Any) -> None:
    """A savepoint, the insert and the look at who has the keys, then jobs and attempts: no query for each."""
    task = ok.using(unique_key=lambda n: f"order {n}")
    first = task.enqueue_many((n,) for n in range(1000))
    with django_assert_num_queries(8):
        again = task.enqueue_many((n,) for n in reversed(range(1000)))
    assert [result.id for result in again] == [result.id for result in reversed(first)]


@pytest.mark.django_db(transaction=True)
def test_bulk_replacements_of_the_same_jobs_in_opposite_order_do_not_deadlock() -> None:
    task = ok.using(unique_key=lambda n: f"order {n}", on_conflict="replace")
    task.enqueue_many((n,) for n in range(100))

    def replace(step: int) -> None:
        try:
            for _ in range(5):
                task.enqueue_many((n,) for n in range(100)[::step])
        finally:
            connection.close()

    with ThreadPoolExecutor() as pool:
        forward, backward = pool.submit(replace, 1), pool.submit(replace, -1)
        forward.result(60), backward.result(60)
    assert Job.objects.count() == 100


@pytest.mark.django_db(transaction=True)
def test_an_open_transaction_with_the_key_of_followers_holds_up_nobody(
    connect: Callable[[], psycopg.Connection], third_connection: psycopg.Connection
) -> None:
    """A caller has taken the key that a due follower would get, and does not commit."""
    caller, keeper = connect(), third_connection
    keyed = ok.using(unique_key=lambda n: f"order {n}", on_conflict="replace")
    leaders = [make(RUNNING, unique_key=f"order {n}") for n in range(3)]
    followers = [int(result.id) for result in keyed.enqueue_many((n,) for n in range(3))]
    plain = int(other.using(delay=0.01).enqueue().id)
    for job_id in (*followers, plain):
        make_due(job_id)
    for leader in leaders:
        settle_one("complete", leader.fence)
    with caller.transaction():
        new = [NewJob("tests.tasks.ok", unique_key="order 1")]
        (taken,) = Job.objects.enqueue_unique(new, backend="default", connection=caller)
        assert taken.inserted
        with keeper.transaction():
            keeper.execute("SET LOCAL lock_timeout = '7s'")
            promoted = {row[0] for row in Job.objects.promote(limit=10, connection=keeper)}
            assert keeper.execute("SHOW lock_timeout").fetchone() == ("7s",)
    assert promoted == {plain, followers[0], followers[2]}
    assert status_of(followers[1]) == SCHEDULED
    assert Job.objects.promote(limit=10) == [], "its leader is there now"
    Job.objects.cancel([taken.job_id])
    assert [row[0] for row in Job.objects.promote(limit=10)] == [followers[1]]
