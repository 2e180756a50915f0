"""Which job enqueued which, with real workers: in whatever way a task enqueues."""

from typing import Any

import pytest

from django_pgqueue import sql

from . import noted_tasks as tasks
from .queue import Queue
from .worker import Worker

pytestmark = pytest.mark.process


def parents(queue: Queue, job: int) -> list[Any]:
    """Return the parents of all jobs that were enqueued after this one."""
    rows = queue.fetch(f"SELECT parent_id FROM {sql.JOB} WHERE id > %s ORDER BY id", [job])
    return [row["parent_id"] for row in rows]


@pytest.mark.parametrize(
    ("way", "jobs"), [("enqueue", 1), ("enqueue_many", 2), ("unique", 1), ("after the commit", 1)]
)
def test_what_a_task_enqueues_has_it_as_its_parent(queue: Queue, worker: Worker, way: str, jobs: int) -> None:
    job = queue.enqueue(tasks.enqueue_here, way)
    queue.wait(job, "succeeded")
    assert parents(queue, job) == [job] * jobs


def test_what_a_coroutine_enqueues_has_it_as_its_parent(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.enqueue_in_a_coroutine)
    queue.wait(job, "succeeded")
    assert parents(queue, job) == [job, job]


def test_what_an_atomic_task_enqueues_has_it_as_its_parent(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.enqueue_here_atomically)
    queue.wait(job, "succeeded")
    assert parents(queue, job) == [job]


def test_a_thread_of_the_tasks_own_enqueues_for_nobody(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.enqueue_here, "in a thread of its own")
    queue.wait(job, "succeeded")
    assert parents(queue, job) == [None]


def test_one_job_after_the_other_in_the_same_thread(queue: Queue, worker: Worker) -> None:
    """Nobody inherits the children of the job before."""
    jobs = queue.enqueue_many(tasks.enqueue_here, [("enqueue",)] * 20)
    queue.wait(jobs, "succeeded")
    assert sorted(parents(queue, jobs[-1])) == jobs
