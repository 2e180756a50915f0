"""Assertions about what was enqueued: they hold and fail when they should, and say what was there."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from django_pgqueue import task
from django_pgqueue.testing import (
    assert_enqueued,
    assert_enqueues,
    assert_not_enqueued,
    enqueued_jobs,
    run_jobs,
)
from django_pgqueue.testing import enqueued as enqueued_module

from . import tasks

pytestmark = pytest.mark.django_db

NOON = datetime(2100, 1, 1, 12, tzinfo=UTC)


@task(unique_key=lambda name: f"group {name}", on_conflict="replace", metadata={"team": "a"})
def unique(name: str) -> None: ...


def refusal(check: Callable[[], Any]) -> str:
    """Return the words of the AssertionError that a check must raise."""
    with pytest.raises(AssertionError) as caught:
        check()
    return str(caught.value)


def test_jobs_are_listed_in_the_order_of_enqueueing() -> None:
    tasks.note.enqueue(2)
    tasks.mail.enqueue("ada@example.com")
    tasks.note.enqueue(1)
    assert [job.args for job in enqueued_jobs()] == [[2], ["ada@example.com"], [1]]
    assert [job.args for job in enqueued_jobs(tasks.note)] == [[2], [1]]
    assert enqueued_jobs(tasks.fail) == []


def test_jobs_that_have_run_were_enqueued_too() -> None:
    tasks.note.enqueue(1)
    run_jobs()
    (job,) = assert_enqueued(tasks.note)
    assert job.state.status == "succeeded"


@pytest.mark.parametrize(
    "like",
    [
        {},
        {"count": 1},
        {"args": (42,)},
        {"args": [42], "kwargs": {"note": ("a", "b")}},
        {"queue": "emails", "priority": 7},
        {"run_after": NOON},
        {"metadata": {}},
    ],
    ids=str,
)
def test_what_is_left_out_may_be_anything(like: Any) -> None:
    tasks.mail.using(priority=7, run_after=NOON).enqueue(42, note=["a", "b"])
    assert len(assert_enqueued(tasks.mail, **like)) == 1


@pytest.mark.parametrize(
    "like",
    [
        {"count": 2},
        {"count": 0},
        {"args": [41]},
        {"args": []},
        {"kwargs": {"note": "b"}},
        {"queue": "default"},
        {"priority": 5},
        {"run_after": NOON + timedelta(seconds=2)},
        {"run_after": timedelta(hours=1)},
        {"unique_key": "any"},
        {"metadata": {"team": "a"}},
    ],
    ids=str,
)
def test_what_is_given_must_be_so(like: Any) -> None:
    tasks.mail.using(priority=7, run_after=NOON).enqueue(42, note="a")
    words = refusal(lambda: assert_enqueued(tasks.mail, **like))
    assert f"found {1 if 'count' in like else 0}" in words
    assert "args=[42] kwargs={'note': 'a'} queue=emails priority=7 run_after=2100-01-01T12:00:00" in words


def test_a_call_stands_for_its_arguments() -> None:
    tasks.note.enqueue(42)
    assert_enqueued(tasks.note.bind(42), count=1)
    refusal(lambda: assert_enqueued(tasks.note.bind(41)))
    refusal(lambda: assert_enqueued(tasks.note.bind(value=42)))
    with pytest.raises(TypeError, match="has its arguments already"):
        assert_enqueued(tasks.note.bind(42), args=[42])


def test_delays_count_from_enqueueing() -> None:
    tasks.note.using(run_after=timedelta(hours=1)).enqueue(1)
    assert_enqueued(tasks.note, run_after=timedelta(minutes=60))
    refusal(lambda: assert_enqueued(tasks.note, run_after=timedelta(minutes=59)))


def test_a_job_that_is_due_at_once_has_no_run_after() -> None:
    tasks.note.enqueue(1)
    refusal(lambda: assert_enqueued(tasks.note, run_after=timedelta(0)))


def test_unique_keys_and_metadata() -> None:
    unique.enqueue("a")
    assert_enqueued(unique, unique_key="group a", metadata={"team": "a"})
    assert "unique_key='group a' metadata={'team': 'a'}" in refusal(lambda: assert_enqueued(tasks.note))


def test_other_tasks_are_listed_and_nothing_is_said_to_be_nothing() -> None:
    assert refusal(lambda: assert_enqueued(tasks.note)) == (
        "Expected at least one job of tests.testkit.tasks.note, found 0.\nNothing was enqueued."
    )
    result = tasks.fail.enqueue("x" * 500)
    words = refusal(lambda: assert_enqueued(tasks.note, count=3, args=[1]))
    assert words.startswith(
        "Expected 3 jobs of tests.testkit.tasks.note args=[1], found 0.\nEnqueued were:\n"
    )
    assert f"  #{result.id} tests.testkit.tasks.fail args=['xxx" in words
    assert "… kwargs={} queue=default priority=0 (ready)" in words


def test_long_lists_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueued_module, "SHOWN", 2)
    tasks.note.enqueue_many([(1,), (2,), (3,)])
    words = refusal(lambda: assert_enqueued(tasks.fail))
    assert "args=[2]" in words
    assert "args=[3]" not in words
    assert words.endswith("... and more")


def test_hooks_that_wait_for_a_commit_are_mentioned() -> None:
    tasks.fail.enqueue()
    assert "on_commit" not in refusal(lambda: assert_enqueued(tasks.note)), "the queue's own do not count"
    transaction.on_commit(lambda: tasks.note.enqueue(1))
    assert "1 on_commit() hook(s) wait" in refusal(lambda: assert_enqueued(tasks.note))


def test_a_property_that_jobs_do_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="a job has no arguments; it can be like args, kwargs"):
        assert_enqueued(tasks.note, arguments=[1])  # type: ignore[call-arg]


# --- nothing


def test_nothing_was_enqueued() -> None:
    assert_not_enqueued()
    assert_not_enqueued(tasks.note)
    tasks.note.enqueue(1)
    assert_not_enqueued(tasks.fail)
    assert_not_enqueued(tasks.note.bind(2))
    assert_not_enqueued(tasks.note, queue="emails")
    for wrong in (None, tasks.note, tasks.note.bind(1)):
        assert "Expected 0 jobs of" in refusal(lambda wrong=wrong: assert_not_enqueued(wrong))


# --- in a block


def test_only_jobs_of_the_block_count() -> None:
    tasks.note.enqueue(1)
    with assert_enqueues(tasks.note, count=2) as jobs:
        assert jobs == []
        tasks.note.enqueue_many([(2,), (3,)])
    assert [job.args for job in jobs] == [[2], [3]]


def test_a_block_that_enqueues_nothing_fails() -> None:
    tasks.note.enqueue(1)

    def check() -> None:
        with assert_enqueues(tasks.note):
            tasks.fail.enqueue()

    words = refusal(check)
    assert "tests.testkit.tasks.fail" in words
    assert "args=[1]" not in words, "that one was there before"


def test_an_error_in_the_block_is_not_hidden() -> None:
    with pytest.raises(tasks.Refused), assert_enqueues(tasks.note):
        raise tasks.Refused


def test_a_call_that_found_a_live_job_makes_no_new_one() -> None:
    unique.enqueue("a")

    def check() -> None:
        with assert_enqueues(unique):
            unique.enqueue("a")

    assert "Nothing was enqueued" in refusal(check)


# --- settings


@pytest.mark.parametrize("use_tz", [True, False])
def test_times_with_and_without_time_zones(settings: Any, use_tz: bool) -> None:
    settings.USE_TZ = use_tz
    tasks.note.using(run_after=timedelta(hours=1)).enqueue(1)
    tasks.note.using(run_after=NOON if use_tz else NOON.replace(tzinfo=None)).enqueue(2)
    assert_enqueued(tasks.note, run_after=timedelta(hours=1), count=1)
    assert_enqueued(tasks.note, run_after=NOON, count=1)
