"""Runs Python on projects of its own: each run has its own test databases, named after this process."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import psycopg

from devtools.environments import ROOT

PLUGIN = "django_pgqueue.pytest_plugin"
# Where the distribution is installed, pytest finds the plugin by itself.
LOADING = [] if PLUGIN in {e.value for e in entry_points(group="pytest11")} else ["-p", PLUGIN]
INI = "[pytest]\naddopts = --strict-markers --strict-config -p no:cacheprovider\n"
SETTINGS = """
import os
from tests.settings import *
DATABASES["default"]["TEST"] = {"NAME": f"test_kit_pytest_{os.environ['TESTKIT_RUN']}"}
"""


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments to its end; what it wrote is in ``stdout``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    paths = os.pathsep.join([str(cwd), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**inherited, "TESTKIT_RUN": str(os.getpid()), "PYTHONPATH": paths},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=110,
    )


def run_pytest(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin in a directory."""
    (directory / "pytest.ini").write_text(INI)
    return run("-m", "pytest", *LOADING, "-rA", *arguments, cwd=directory)


def run_pytest_django(directory: Path, settings: str = "") -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin and pytest-django; ``settings`` is code to add to the settings."""
    (directory / "kit_settings.py").write_text(SETTINGS + settings)
    return run_pytest(directory, "-p", "pytest_django", "--ds=kit_settings", "--create-db")


def databases() -> set[str]:
    """Return the names of test databases that runs have left behind."""
    statement = "SELECT datname FROM pg_database WHERE datname LIKE %s"
    with psycopg.connect(os.environ["DATABASE_URL"]) as session:
        return {row[0] for row in session.execute(statement, [f"test_kit%{os.getpid()}"])}
