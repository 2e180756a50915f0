"""Tests as projects write them with Django's classes; run by Django's runner, not collected by pytest."""

from django.contrib.auth.models import Group
from django.db import connections, transaction
from django.test import TestCase, TransactionTestCase

from django_pgqueue.testing import (
    arun_jobs,
    assert_enqueued,
    assert_enqueues,
    assert_not_enqueued,
    enqueued_jobs,
    forward_time,
    run_jobs,
    run_worker,
    worker_dies,
)

from .tasks import add_group


class InTransactions(TestCase):
    """The queue's database and the tasks' own are in the test's transactions; a third one is forbidden."""

    databases = {"default", "queue"}

    @classmethod
    def setUpTestData(cls) -> None:
        cls.result = add_group.enqueue("of the class")

    def test_jobs_of_the_class_run_in_every_test(self) -> None:
        run = run_jobs(raise_errors=True)
        assert run.of(self.result).outcomes == ["succeeded"]
        self.result.refresh()
        assert self.result.return_value == "of the class"

    test_jobs_of_the_class_run_in_every_other_test = test_jobs_of_the_class_run_in_every_test

    def test_assertions(self) -> None:
        assert len(enqueued_jobs()) == 1
        assert_enqueued(add_group.bind("of the class"), count=1)
        assert_not_enqueued(add_group.bind("another"))

    def test_hooks_of_the_test_are_run_by_django(self) -> None:
        with assert_enqueues(add_group, count=2), self.captureOnCommitCallbacks(execute=True):
            with transaction.atomic():
                transaction.on_commit(lambda: add_group.enqueue("late"))
            add_group.enqueue("early")
        assert run_jobs().outcomes == ["succeeded"] * 3

    def test_hooks_of_another_database_are_mentioned(self) -> None:
        transaction.on_commit(lambda: add_group.enqueue("late"), using="default")
        with self.assertRaisesRegex(AssertionError, "captureOnCommitCallbacks"):  # noqa: PT027
            assert_enqueued(add_group.bind("late"))

    def test_a_forbidden_database_fails_the_job(self) -> None:
        add_group.enqueue("elsewhere", database="forbidden")
        ran = run_jobs().of(add_group)[-1]
        assert ran.outcome == "failed"
        assert "not allowed" in str(ran.error)

    def test_a_transaction_that_a_task_breaks_in_either_database(self) -> None:
        for database in ("default", "queue"):
            add_group.enqueue(database, database=database, twice=True)
        add_group.enqueue("after")
        assert run_jobs().outcomes == ["succeeded", "failed", "failed", "succeeded"]
        assert set(Group.objects.values_list("name", flat=True)) == {"of the class", "after"}
        for alias in self.databases:
            assert connections[alias].in_atomic_block
            assert not connections[alias].needs_rollback

    def test_time_and_crashes(self) -> None:
        with worker_dies("start"):
            assert run_jobs().outcomes == ["lost"]
        forward_time(3600)
        assert run_jobs().outcomes == ["succeeded"]

    async def test_coroutine(self) -> None:
        await add_group.aenqueue("async")
        run = await arun_jobs(raise_errors=True)
        assert run.outcomes == ["succeeded", "succeeded"]


class WithCommits(TransactionTestCase):
    """Real workers, and the flush that Django does after each test."""

    databases = {"default", "queue"}

    def setUp(self) -> None:
        self.worker = self.enterContext(run_worker(threads=4))

    def test_a_worker(self) -> None:
        results = [add_group.enqueue(f"group {n}", ("queue", "default")[n % 2]) for n in range(20)]
        forbidden = add_group.using(max_attempts=1).enqueue("no", database="forbidden")
        self.worker.wait(results[0], forbidden, timeout=30.0)
        assert results[0].return_value == "group 0"
        assert "ImproperlyConfigured" in forbidden.errors[0].exception_class_path

    test_a_worker_after_a_flush = test_a_worker

    def test_run_jobs_beside_a_worker(self) -> None:
        add_group.using(queue_name="emails").enqueue("here")
        run_jobs(raise_errors=True)
        self.worker.wait()
        assert Group.objects.filter(name="here").exists()
