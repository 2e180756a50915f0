"""Which job enqueued which: what is stored with the new job, and by which index it is found."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from django_pgqueue import enqueue_many, running, sql
from django_pgqueue.enqueueing import parent_in
from django_pgqueue.execution import Execution
from django_pgqueue.execution import prepare as resolve
from django_pgqueue.models import Job
from django_pgqueue.records import NewJob

from . import tasks
from .support import claim, enqueue, fetch

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]


@pytest.fixture
def parent() -> Iterator[int]:
    """A job whose task runs here."""
    execution = Execution(claim(enqueue()), "worker-1", 0.0)
    resolve(execution)
    with running.within(execution):
        yield execution.job.job_id


def parent_of(job: Any) -> int | None:
    return Job.objects.get(pk=int(job.id)).parent_id


def test_one_job(parent: int) -> None:
    assert parent_of(tasks.ok.enqueue()) == parent


def test_many_jobs(parent: int) -> None:
    results = enqueue_many([tasks.ok.bind(value) for value in range(3)])
    assert [parent_of(result) for result in results] == [parent] * 3


def test_more_than_a_statement_takes(parent: int) -> None:
    tasks.ok.enqueue_many([(value,) for value in range(1500)])
    assert Job.objects.filter(parent_id=parent).count() == 1500


def test_jobs_of_different_parents_in_one_statement() -> None:
    jobs = [NewJob("tests.tasks.ok", parent_id=parent) for parent in (None, 7, 8, None)]
    rows = Job.objects.enqueue_many(jobs, backend="default")
    stored = Job.objects.in_bulk([row.job_id for row in rows])
    assert [stored[row.job_id].parent_id for row in rows] == [None, 7, 8, None]


def test_outside_of_a_job_there_is_no_parent() -> None:
    assert parent_of(tasks.ok.enqueue()) is None


def test_while_a_module_is_imported_there_is_no_parent() -> None:
    """The task is not known yet, and so neither is the queue's database."""
    with running.within(Execution(claim(enqueue()), "worker-1", 0.0)):
        assert parent_of(tasks.ok.enqueue()) is None


def test_a_job_of_another_database_is_no_parent(parent: int, settings: Any) -> None:
    """Its number would be another job's there."""
    assert parent_in("default") == parent
    assert parent_in("elsewhere") is None


# --- unique jobs

KEY = tasks.ok.using(unique_key="one")


def test_a_live_job_keeps_its_parent(parent: int) -> None:
    with running.within(None):
        live = KEY.enqueue()
    assert KEY.enqueue().id == live.id
    assert parent_of(live) is None


def test_who_replaces_the_arguments_of_a_job_becomes_its_parent(parent: int) -> None:
    with running.within(None):
        live = KEY.enqueue(1)
    assert KEY.using(on_conflict="replace").enqueue(2).id == live.id
    assert parent_of(live) == parent
    with running.within(None):
        KEY.using(on_conflict="replace").enqueue(3)
    assert parent_of(live) is None


def test_a_job_that_follows_a_running_one_has_its_own_parent(parent: int) -> None:
    with running.within(None):
        live = KEY.enqueue(1)
    claim(int(live.id))
    follower = KEY.using(on_conflict="replace").enqueue(2)
    assert (parent_of(live), parent_of(follower)) == (None, parent)


# --- what stays


def test_a_retried_job_keeps_its_parent(parent: int) -> None:
    child = int(tasks.ok.enqueue().id)
    Job.objects.cancel([child])
    Job.objects.retry([child])
    assert Job.objects.get(pk=child).parent_id == parent


def test_a_parent_that_is_pruned_leaves_its_children_alone() -> None:
    execution = Execution(claim(enqueue(max_attempts=1)), "worker-1", 0.0)
    resolve(execution)
    with running.within(execution):
        child = int(tasks.ok.enqueue().id)
    Job.objects.cancel([execution.job.job_id])
    fetch(f"DELETE FROM {sql.STATE} WHERE job_id = %s RETURNING 1", [execution.job.job_id])
    fetch(f"DELETE FROM {sql.JOB} WHERE id = %s RETURNING 1", [execution.job.job_id])
    assert Job.objects.get(pk=child).parent_id == execution.job.job_id
    with pytest.raises(Job.DoesNotExist):
        _ = Job.objects.get(pk=child).parent


@pytest.mark.parametrize("analysed", [True, False])
def test_children_are_found_by_their_index(analysed: bool) -> None:
    """Also beside a parent that has nearly all of the children, when the statistics say so."""
    parents = [8, *[7] * 990, *[None] * 8, 8]
    jobs = [NewJob("tests.tasks.ok", parent_id=parent) for parent in parents]
    ids = [row.job_id for row in Job.objects.enqueue_many(jobs, backend="default")]
    with connection.cursor() as cursor:
        if analysed:
            cursor.execute(f"ANALYZE {sql.JOB}")
        for parent in (7, 8, 9):
            cursor.execute(f"EXPLAIN {sql.CHILDREN}", {"job_id": parent, "after": ids[0], "limit": 20})
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "Index Only Scan using pgqueue_job_parent" in plan
            assert f"Index Cond: ((ROW(parent_id, id) > ROW('{parent}'::bigint" in plan
            assert "Sort" not in plan
    assert Job.objects.children(8, after=0, limit=20) == [ids[0], ids[-1]]
    assert Job.objects.children(8, after=ids[0], limit=20) == [ids[-1]]
    assert Job.objects.children(7, after=ids[1], limit=3) == ids[2:5]
    assert Job.objects.children(9, after=0, limit=3) == []


def test_the_index_holds_children_only() -> None:
    (row,) = fetch("SELECT indexdef FROM pg_indexes WHERE indexname = 'pgqueue_job_parent'")
    assert row["indexdef"].endswith("(parent_id, id) WHERE (parent_id IS NOT NULL)")
