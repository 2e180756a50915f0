"""Enqueueing inside a transaction, with a hungry worker beside it."""

import time

import pytest
from django.contrib.auth.models import Group
from django.db import transaction

from django_pgqueue.models import Job

from ..waiting import wait_until
from . import tasks
from .queue import Queue
from .worker import Worker

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("django_database")]


def let_it_hunger() -> None:
    """Give the worker time for many looks."""
    until = time.monotonic() + 1.0
    wait_until(lambda: time.monotonic() > until)


def test_a_job_starts_after_the_commit_and_sees_what_was_written(queue: Queue, worker: Worker) -> None:
    with transaction.atomic():
        Group.objects.create(name="committed")
        result = tasks.count_groups.enqueue("committed")
        let_it_hunger()
        assert queue.status(int(result.id)) is None, "visible before the commit"
    queue.wait(int(result.id), "succeeded")
    assert queue.attempt(int(result.id)).return_value == 1


def test_a_rolled_back_job_never_existed(queue: Queue, worker: Worker) -> None:
    with transaction.atomic():
        result = tasks.count_groups.enqueue("x")
        transaction.set_rollback(True)
    with transaction.atomic():
        kept = tasks.count_groups.enqueue("x")
        with transaction.atomic():
            inner = tasks.count_groups.enqueue("x")
            transaction.set_rollback(True)
    queue.wait(int(kept.id), "succeeded")
    assert queue.statuses([int(result.id), int(inner.id)]) == {}
    assert Job.objects.count() == 1


def test_an_enqueue_that_fails_takes_what_was_written_with_it(queue: Queue, worker: Worker) -> None:
    with pytest.raises(ValueError, match="NUL"):
        create_group_and_enqueue("a\x00b")
    assert not Group.objects.filter(name="alone").exists()


@transaction.atomic
def create_group_and_enqueue(argument: str) -> None:
    Group.objects.create(name="alone")
    tasks.count_groups.enqueue(argument)


def test_an_open_transaction_holds_nobody_up(queue: Queue, worker: Worker) -> None:
    with transaction.atomic():
        mine = tasks.ok.enqueue(1)
        theirs = queue.enqueue(tasks.ok)
        queue.wait(theirs, "succeeded")
    queue.wait(int(mine.id), "succeeded")
