"""Fixtures for projects that use pytest and pytest-django; loaded by the entry point ``pytest11``.

The plugin does nothing until a test asks for one of its fixtures, and imports neither Django nor the
rest of the package before.  ``-p no:django_pgqueue`` keeps it out altogether.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .testing import WorkerProcess


@pytest.fixture
def pgqueue(db: None) -> ModuleType:
    """The module ``django_pgqueue.testing``: ``pgqueue.run_jobs()`` and so on, with the database at hand."""
    from . import testing  # noqa: PLC0415 - nothing of Django at the start of pytest

    return testing


@pytest.fixture
def pgqueue_worker_options() -> dict[str, Any]:
    """What ``pgqueue_worker`` gives to ``run_worker``; override it in a module, a class or a conftest."""
    return {}


@pytest.fixture
def pgqueue_worker(
    request: pytest.FixtureRequest, transactional_db: None, pgqueue_worker_options: dict[str, Any]
) -> "Iterator[WorkerProcess]":
    """A real worker on the test's database; it has ended before the tables are flushed."""
    from django.test import SimpleTestCase  # noqa: PLC0415

    from .testing import run_worker  # noqa: PLC0415

    if isinstance(request.instance, SimpleTestCase):
        pytest.fail(
            "In a TestCase class the tables are flushed before fixtures end, beside a living worker. "
            "Use self.enterContext(django_pgqueue.testing.run_worker()) in the test or in setUp().",
            pytrace=False,
        )
    with run_worker(**pgqueue_worker_options) as worker:
        yield worker
