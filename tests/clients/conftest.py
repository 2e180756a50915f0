"""Fixtures for the clients: a database that lasts for the session, and workers on it.

The tests of a suite run in order and build on each other, as a site's life does. Nothing is rolled back:
workers must see what the tests commit.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import setup_databases, teardown_databases

from devtools.databases import database_url
from django_pgqueue import states
from django_pgqueue.models import Job, JobState
from tests.processes.worker import Worker
from tests.waiting import wait_until

Start = Callable[..., Worker]


@pytest.fixture(scope="session", autouse=True)
def database(django_db_blocker: Any) -> Iterator[None]:
    """Make a test database and let all tests use it, in real transactions."""
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False, aliases={"default"})
        yield
        teardown_databases(made, verbosity=0)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start ``runworkers``, or what ``kind`` stands for, on the test database; it ends with the test."""
    workers: list[Worker] = []

    def start(*arguments: Any, kind: type[Worker] = Worker) -> Worker:
        environ = {**os.environ, "DATABASE_URL": database_url(connection.settings_dict)}
        words = [str(argument) for argument in arguments]
        worker = kind(words, environ, tmp_path / f"{kind.COMMAND}-{len(workers) + 1}.log")
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.close()


@pytest.fixture
def drain(start: Start) -> Callable[[], str]:
    """Run ``runworkers --drain`` until no job is left that waits, retries included; return what it logged."""

    def drain() -> str:
        logs = []
        while True:
            worker = start("--drain")
            worker.wait_end(0, timeout=60.0)
            logs.append(worker.text)
            if not waiting():
                return "".join(logs)
            wait_until(due, message="the jobs that wait are not due")

    return drain


def waiting() -> bool:
    """Return whether any job has not ended."""
    return JobState.objects.exclude(status__in=states.ENDED).exists()


def due() -> bool:
    """Return whether any job could run now."""
    seconds = Job.objects.next_run_at()
    return (seconds is not None and seconds <= 0) or JobState.objects.filter(status=states.READY).exists()
