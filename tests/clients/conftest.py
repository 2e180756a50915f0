"""Fixtures for the clients: a database that lasts for the session, and workers on it.

The tests of a suite run in order and build on each other, as a site's life does. Nothing is rolled back:
workers must see what the tests commit.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import setup_databases, teardown_databases

from devtools.databases import database_url
from django_pgqueue import sql, states
from django_pgqueue.models import Job, JobState
from tests.processes.worker import Worker
from tests.waiting import wait_until


class Processes:
    """Starts ``runworkers`` and other commands on the test database; knows them all, and ends them."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._all: list[Worker] = []
        self._standing: Worker | None = None

    def start(self, *arguments: Any, kind: type[Worker] = Worker) -> Worker:
        """Start ``runworkers``, or the command that ``kind`` stands for, with these arguments."""
        environ = {**os.environ, "DATABASE_URL": database_url(connection.settings_dict)}
        words = [str(argument) for argument in arguments]
        worker = kind(words, environ, self._logs / f"{kind.COMMAND}-{len(self._all) + 1}.log")
        self._all.append(worker)
        return worker

    def worker(self) -> Worker:
        """Return a worker that runs: the one of the tests before, or a new one if that was ended."""
        if self._standing is None or not self._standing.alive:
            self._standing = self.start("--poll", 0.1).wait_started()
        return self._standing

    def finish(self) -> None:
        """Have a worker run until no job waits."""
        self.worker()
        wait_until(lambda: not waiting(), 60.0, "jobs still wait")

    def drain(self) -> None:
        """Run ``runworkers --drain`` until no job waits, again for those that are to be retried."""
        while True:
            self.start("--drain").wait_end(0, timeout=60.0)
            if not waiting():
                return
            wait_until(due, message="the jobs that wait are not due")

    def close(self) -> None:
        """End them all; the standing worker must be well."""
        with ExitStack() as stack:
            for worker in self._all:
                stack.callback(worker.close)
            if self._standing and self._standing.alive:
                self._standing.stop()


@pytest.fixture(scope="session", autouse=True)
def database(django_db_blocker: Any) -> Iterator[None]:
    """Make a test database and let all tests use it, in real transactions."""
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False, aliases={"default"})
        yield
        teardown_databases(made, verbosity=0)


@pytest.fixture(scope="module")
def processes(database: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """The suite's processes; they end with it."""
    processes = Processes(tmp_path_factory.mktemp("processes"))
    yield processes
    processes.close()


@pytest.fixture
def delete_jobs() -> Iterator[Callable[[], None]]:
    """Delete all jobs when the test is over."""
    yield
    with connection.cursor() as cursor:
        for table in (sql.ATTEMPT, sql.STATE, sql.JOB):
            cursor.execute(f"DELETE FROM {table}")


def waiting() -> bool:
    """Return whether any job has not ended."""
    return JobState.objects.exclude(status__in=states.ENDED).exists()


def due() -> bool:
    """Return whether any job could run now."""
    seconds = Job.objects.next_run_at()
    return (seconds is not None and seconds <= 0) or JobState.objects.filter(status=states.READY).exists()
