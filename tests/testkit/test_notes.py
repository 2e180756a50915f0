"""What a worker notes of an attempt, ``run_jobs`` notes too: its log, its SQL, and whom it enqueued."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from django_pgqueue import running
from django_pgqueue.models import Attempt, Job
from django_pgqueue.testing import run_jobs

from ..processes import noted_tasks as tasks

pytestmark = [pytest.mark.usefixtures("invariants")]


@pytest.fixture(autouse=True)
def _at_info() -> Iterator[None]:
    before = logging.root.level
    logging.root.setLevel(logging.INFO)
    yield
    logging.root.setLevel(before)


def attempt_of(result: Any) -> Attempt:
    return Attempt.objects.get(job_id=int(result.id))


@pytest.mark.parametrize("task", [tasks.say, tasks.say_atomically, tasks.say_in_a_coroutine])
@pytest.mark.parametrize("end", ["succeeded", "failed", "snoozed", "cancelled"])
def test_the_log_is_stored_however_the_attempt_ends(task: Any, end: str) -> None:
    result = task.enqueue(end)
    run_jobs()
    attempt = attempt_of(result)
    assert attempt.outcome == end
    assert attempt.log_tail.endswith(f" INFO tests.noted: job {result.id} will have {end}")


@pytest.mark.parametrize("task", [tasks.ask, tasks.ask_in_a_coroutine])
@pytest.mark.parametrize("times", [0, 1, 5])
def test_the_tasks_own_statements_are_counted_and_no_others(task: Any, times: int) -> None:
    result = task.enqueue(times)
    run_jobs()
    attempt = attempt_of(result)
    assert attempt.sql_queries == (times or None)
    assert (attempt.sql_seconds is not None) == bool(times)


def test_a_block_of_an_atomic_task_is_a_savepoint_in_a_test_and_a_statement() -> None:
    result = tasks.ask_atomically.enqueue(5)
    run_jobs()
    assert attempt_of(result).sql_queries == 6


@pytest.mark.parametrize("way", ["enqueue", "enqueue_many", "unique", "after the commit"])
def test_what_a_task_enqueues_has_it_as_its_parent(way: str) -> None:
    result = tasks.enqueue_here.enqueue(way)
    run_jobs(max_jobs=1)
    parent = Job.objects.get(pk=int(result.id))
    assert parent.parent_id is None
    assert parent.children.count() == (2 if way == "enqueue_many" else 1)
    assert {child.parent_id for child in Job.objects.exclude(pk=parent.pk)} == {parent.pk}


def test_what_a_coroutine_enqueues_has_it_as_its_parent() -> None:
    result = tasks.enqueue_in_a_coroutine.enqueue()
    run_jobs(max_jobs=1)
    assert Job.objects.filter(parent_id=int(result.id)).count() == 2


def test_a_job_that_a_test_enqueues_has_no_parent() -> None:
    """Neither before nor after other jobs ran here."""
    tasks.say.enqueue("succeeded")
    run_jobs()
    assert running.current() is None
    tasks.say.enqueue("failed")
    run_jobs()
    assert set(Job.objects.values_list("parent_id", flat=True)) == {None}


def test_nothing_stays_behind() -> None:
    make = logging.getLogRecordFactory()
    tasks.say.enqueue("succeeded")
    run_jobs()
    assert logging.getLogRecordFactory() is make
    assert connection.execute_wrappers == []
