"""The test kit in projects: under Django's test runner, and as a plugin of pytest."""

import re
import tomllib
from pathlib import Path

import pytest

from devtools.environments import ROOT

from .runs import PLUGIN, databases, run, run_pytest, run_pytest_django

pytestmark = pytest.mark.process


def test_under_djangos_runner() -> None:
    """TestCase, TransactionTestCase with a worker, several aliases; and DROP DATABASE is not blocked."""
    done = run(
        *("-W", "error::ResourceWarning", "-m", "django", "test", "tests.testkit.project"),
        *("--pattern", "cases.py", "--settings", "tests.testkit.project.settings", "--noinput"),
    )
    assert done.returncode == 0, done.stdout
    ran = re.search(r"Ran (\d+) tests", done.stdout)
    assert ran is not None, done.stdout
    assert int(ran[1]) == 12
    assert databases() == set()


# --- pytest

USING = """
import pytest
from django.contrib.auth.models import Group
from django.test import TestCase, TransactionTestCase
from django_pgqueue import task
from django_pgqueue.testing import enqueued_jobs, run_jobs


@task
def add_group(name: str) -> str:
    Group.objects.create(name=name)
    return name


def test_the_kit(pgqueue):
    result = add_group.enqueue("a")
    assert pgqueue.run_jobs(raise_errors=True).outcomes == ["succeeded"]
    pgqueue.assert_enqueued(add_group.bind("a"), count=1)


def test_nothing_is_left_of_the_test_before(db):
    assert enqueued_jobs() == []
    assert not Group.objects.exists()


def test_a_worker(pgqueue_worker, pgqueue):
    result = add_group.enqueue("a")
    pgqueue_worker.wait(result)
    assert result.return_value == "a"


class TestOptions:
    @pytest.fixture
    def pgqueue_worker_options(self):
        return {"queues": ["emails"], "threads": 1}

    def test_of_a_class(self, pgqueue_worker):
        assert "queues=emails" in pgqueue_worker.log


class InTestCase(TestCase):
    @pytest.fixture(autouse=True)
    def kit(self, pgqueue):
        self.kit = pgqueue

    def test_fixtures(self):
        add_group.enqueue("a")
        assert self.kit.run_jobs().outcomes == ["succeeded"]


@pytest.mark.usefixtures("pgqueue_worker")
class InTransactionTestCase(TransactionTestCase):
    def test_refused(self): ...
"""
NOT_USING = """
import sys
import pytest


def test_nothing_was_imported():
    assert not {name for name in sys.modules if name.partition(".")[0] == "django"}
    ours = {name for name in sys.modules if name.startswith("django_pgqueue.")}
    assert ours <= {"django_pgqueue.pytest_plugin"}
"""


def test_fixtures(tmp_path: Path) -> None:
    """With pytest-django; the database is dropped, so that no session of a worker can be left."""
    (tmp_path / "test_shop.py").write_text(USING)
    done = run_pytest_django(tmp_path)
    counted = re.findall(r"(\d+) (passed|failed|errors?)", done.stdout.splitlines()[-1])
    assert counted == [("5", "passed"), ("1", "error")], done.stdout
    assert "Use self.enterContext(django_pgqueue.testing.run_worker())" in done.stdout
    assert databases() == set()


def test_without_pytest_django(tmp_path: Path) -> None:
    """A project that uses nothing of it notices nothing; a fixture says what it needs."""
    (tmp_path / "test_plain.py").write_text(NOT_USING)
    (tmp_path / "test_using.py").write_text("def test_it(pgqueue): ...")
    done = run_pytest(tmp_path, "-p", "no:django")
    assert "1 passed, 1 error" in done.stdout, done.stdout
    assert "fixture 'db' not found" in done.stdout


def test_the_distribution_announces_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"django_pgqueue": PLUGIN}
