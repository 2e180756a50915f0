"""The test kit in projects: under Django's test runner, and as a plugin of pytest."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import psycopg
import pytest

from devtools.environments import ROOT

PLUGIN = "django_pgqueue.pytest_plugin"
# pytest takes care of the rest where the distribution is installed.
LOADING = [] if PLUGIN in {e.value for e in entry_points(group="pytest11")} else ["-p", PLUGIN]

pytestmark = pytest.mark.process


def run(*command: str, cwd: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments to its end; what it wrote is in ``stdout``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run_id = str(os.getpid())
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={
            **inherited,
            "TESTKIT_RUN": run_id,
            "PYTHONPATH": os.pathsep.join([str(cwd), str(ROOT)]),
            **environ,
        },
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=110,
    )


def databases() -> set[str]:
    """Return the names of the databases that runs of the project made and left behind."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as session:
        rows = session.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE %s", [f"test_kit%{os.getpid()}"]
        )
        return {row[0] for row in rows}


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

SETTINGS = """
import os
from tests.settings import *
DATABASES["default"]["TEST"] = {"NAME": f"test_kit_pytest_{os.environ['TESTKIT_RUN']}"}
"""
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


@pytest.mark.parametrize("number", [1, 2])
def test_a_worker(pgqueue_worker, pgqueue, number):
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


def run_pytest(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (directory / "pytest.ini").write_text(
        "[pytest]\naddopts = --strict-markers --strict-config -p no:cacheprovider\n"
    )
    return run("-m", "pytest", *LOADING, "-rA", *arguments, cwd=directory)


def test_fixtures(tmp_path: Path) -> None:
    """With pytest-django; the database is dropped, so that no session of a worker can be left."""
    (tmp_path / "kit_settings.py").write_text(SETTINGS)
    (tmp_path / "test_shop.py").write_text(USING)
    done = run_pytest(tmp_path, "-p", "pytest_django", "--ds=kit_settings", "--create-db")
    counted = re.findall(r"(\d+) (passed|failed|errors?)", done.stdout.splitlines()[-1])
    assert counted == [("6", "passed"), ("1", "error")], done.stdout
    assert "Use self.enterContext(django_pgqueue.testing.run_worker())" in done.stdout
    assert databases() == set()


@pytest.mark.parametrize(
    "arguments", [["-p", "no:django"], []], ids=["without pytest-django", "with it, unused"]
)
def test_a_project_that_uses_nothing_of_it(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "test_plain.py").write_text(NOT_USING if arguments else "def test_nothing(): ...")
    done = run_pytest(tmp_path, *arguments)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_a_fixture_without_pytest_django_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text("def test_it(pgqueue): ...")
    done = run_pytest(tmp_path, "-p", "no:django")
    assert "fixture 'db' not found" in done.stdout


def test_the_distribution_announces_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"django_pgqueue": PLUGIN}
