"""What Django's tests import from `django.test`; unlike its simple test cases these may use the database."""

from django.db import connection
from django.test import TransactionTestCase as DjangosTransactionTestCase
from django.test import override_settings

from django_pgqueue import sql

__all__ = ["SimpleTestCase", "TransactionTestCase", "delete_everything", "override_settings"]


class SimpleTestCase(DjangosTransactionTestCase):
    """A test case on real transactions. What it enqueues is deleted, not truncated, which is quicker."""

    databases = {"default"}

    def _fixture_teardown(self) -> None:
        delete_everything()


class TransactionTestCase(SimpleTestCase):
    """The same; Django's tests leave no app available to theirs."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.available_apps = None
        super().setUpClass()


def delete_everything() -> None:
    """Delete all jobs."""
    with connection.cursor() as cursor:
        for table in (sql.ATTEMPT, sql.STATE, sql.JOB):
            cursor.execute(f"DELETE FROM {table}")
