"""Django's test classes, to be collected, and tests of our own in the place of those that cannot apply.

Not named test_*.py: the normal run leaves it alone, and `python -m tests.conformance` names it.
"""

from asgiref.sync import sync_to_async
from django.db import transaction
from tasks import tasks
from tasks.test_dummy_backend import DummyBackendTestCase, DummyBackendTransactionTestCase
from tasks.test_immediate_backend import ImmediateBackendTestCase, ImmediateBackendTransactionTestCase
from tasks.test_tasks import TaskTestCase

from django_pgqueue.compat import TaskResultStatus, task_backends

from .backends import drain
from .cases import SimpleTestCase

__all__ = [
    "DummyBackendTestCase",
    "DummyBackendTransactionTestCase",
    "ImmediateBackendTestCase",
    "ImmediateBackendTransactionTestCase",
    "TaskTestCase",
]


class InTheirPlaceTestCase(SimpleTestCase):
    """What the tests of inapplicable.py mean, done to the queue."""

    def setUp(self) -> None:
        self.backend = task_backends["default"]
        self.backend.clear()

    def test_refresh_result(self) -> None:
        result = tasks.calculate_meaning_of_life.enqueue()
        drain(self.backend)
        assert result.status == TaskResultStatus.READY
        result.refresh()
        assert result.status == TaskResultStatus.SUCCESSFUL
        assert result.return_value == 42

    async def test_refresh_result_async(self) -> None:
        result = await tasks.calculate_meaning_of_life.aenqueue()
        await sync_to_async(drain)(self.backend)
        assert result.status == TaskResultStatus.READY
        await result.arefresh()
        assert result.status == TaskResultStatus.SUCCESSFUL
        assert result.return_value == 42

    def test_keyboard_interrupt(self) -> None:
        result = tasks.failing_task_keyboard_interrupt.enqueue()
        after = tasks.calculate_meaning_of_life.enqueue()
        drain(self.backend)
        result.refresh()
        assert result.status == TaskResultStatus.FAILED
        assert [error.exception_class for error in result.errors] == [KeyboardInterrupt]
        after.refresh()
        assert after.return_value == 42

    def test_runs_after_the_commit(self) -> None:
        with transaction.atomic():
            result = tasks.calculate_meaning_of_life.enqueue()
            drain(self.backend)
            result.refresh()
            assert result.status == TaskResultStatus.READY
        drain(self.backend)
        result.refresh()
        assert result.return_value == 42
