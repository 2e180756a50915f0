"""Fixtures for the tests with real workers.

``queue`` is a database of their own, empty before and after each test; ``start`` starts workers on it.
Rows are deleted, not truncated: a truncation beside a living worker can deadlock.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connections
from psycopg.conninfo import make_conninfo

from ..waiting import wait_until
from . import tasks
from .nursery import Nursery
from .queue import Queue
from .worker import Worker, environ

Start = Callable[..., Worker]


class Workers:
    """Starts workers; knows them all, and ends them."""

    def __init__(self, queue: Queue, logs: Path, nursery: Nursery) -> None:
        self.queue = queue
        self.logs = logs
        self.nursery = nursery
        self.all: list[Worker] = []

    def __call__(
        self,
        *arguments: Any,
        wait: bool = True,
        url: str | None = None,
        startup: str = "",
        env: dict[str, str] | None = None,
        new_interpreter: bool = False,
        **settings: Any,
    ) -> Worker:
        """Start ``runworkers`` with these arguments and, by default, wait until it is up."""
        words = [str(argument) for argument in arguments]
        environment = environ(url or self.queue.url, startup, **settings) | (env or {})
        log = self.logs / f"worker-{len(self.all) + 1}.log"
        worker = Worker(words, environment, log, None if new_interpreter else self.nursery)
        self.all.append(worker)
        return worker.wait_started(int(_option(worker, "--processes", "1"))) if wait else worker

    def assert_fit(self) -> None:
        """I5: whoever did not end as the test expected is alive and can run a job."""
        for worker in self.all:
            assert worker.ended is not None or worker.alive, (
                f"{worker} ended by itself with {worker.process.returncode}:\n{worker.text[-4000:]}"
            )
        living = [worker for worker in self.all if worker.ended is None]
        queues = {_option(worker, "--queues", "default").split(",")[0] for worker in living}
        jobs = [self.queue.enqueue(tasks.ok, priority=100, queue=name) for name in queues]
        self.queue.notify(queues)
        self.queue.wait(jobs, "succeeded", timeout=10.0)

    def show_logs(self) -> None:
        """Have pytest show the ends of the logs when the test has failed."""
        for worker in self.all:
            sys.stderr.write(f"--- {worker}\n{worker.text[-5000:]}\n")

    def close(self) -> None:
        """End them all."""
        for worker in self.all:
            worker.close()

    def stop(self) -> None:
        """SIGTERM those that still run; each must exit with 0."""
        running = [worker for worker in self.all if worker.ended is None]
        for worker in running:
            worker.signal(15)
        for worker in running:
            worker.wait_end(0)


def _option(worker: Worker, name: str, default: str) -> str:
    words = worker.arguments
    return words[words.index(name) + 1] if name in words else default


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where workers are forked."""
    nursery = Nursery()
    try:
        yield nursery
    finally:
        nursery.close()


@pytest.fixture(scope="session")
def processes_url(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database for the tests with workers: other tests roll back or truncate theirs."""
    name = f"test_processes_{os.getpid()}"
    server = os.environ["DATABASE_URL"]
    with psycopg.connect(server, autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name}")
    try:
        yield prepared(make_conninfo(server, dbname=name), nursery, tmp_path_factory.mktemp("migrate"))
    finally:
        with psycopg.connect(server, autocommit=True) as session:
            session.execute(f"DROP DATABASE {name} WITH (FORCE)")


def prepared(url: str, nursery: Nursery, logs: Path) -> str:
    """Make the tables in a new database."""
    pid = nursery.start(["migrate", "-v0"], environ(url), logs / "log")
    code = wait_until(lambda: [found] if (found := nursery.poll(pid)) is not None else None, 60.0)
    assert code == [0], (logs / "log").read_text()
    with Queue(url) as queue:
        queue.prepare()
    return url


@pytest.fixture
def queue(processes_url: str) -> Iterator[Queue]:
    """The queue; all rows are checked and deleted when the test is over."""
    with Queue(processes_url) as queue:
        queue.clear()
        try:
            yield queue
            queue.assert_invariants()
        finally:
            queue.clear()


@pytest.fixture
def start(queue: Queue, standing_workers: Workers, nursery: Nursery, tmp_path: Path) -> Iterator[Workers]:
    """Start workers: ``start("--lease", 2)``. In the end they must be fit and stop cleanly."""
    standing_workers.stop()  # it would take their jobs, or rescue them
    workers = Workers(queue, tmp_path, nursery)
    with ExitStack() as stack:
        stack.callback(workers.close)
        yield workers
        workers.show_logs()
        workers.assert_fit()
        workers.stop()


@pytest.fixture(scope="module")
def standing_workers(
    processes_url: str, nursery: Nursery, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    """The place of the module's standing worker."""
    with Queue(processes_url) as queue:
        workers = Workers(queue, tmp_path_factory.mktemp("standing"), nursery)
        try:
            yield workers
            workers.stop()
        finally:
            workers.close()


@pytest.fixture
def worker(queue: Queue, standing_workers: Workers) -> Iterator[Worker]:
    """One worker for all tests of the module that take it, with 4 threads; it must outlive each of them.

    Tests that take ``start`` end it: keep the two kinds apart within a module.
    """
    if not standing_workers.all or standing_workers.all[-1].ended is not None:
        standing_workers("--threads", 4, "--poll", 0.05, env={"PYTHONPATH": str(standing_workers.logs)})
    yield standing_workers.all[-1]
    standing_workers.show_logs()
    try:
        standing_workers.assert_fit()
    except AssertionError:  # the next test gets a new one
        standing_workers.all.pop().close()
        raise


@pytest.fixture
def django_database(queue: Queue, django_db_blocker: Any) -> Iterator[None]:
    """Let the test use Django's own connection to the queue's database, in real transactions."""
    settings = connections["default"].settings_dict
    before = dict(settings)
    with django_db_blocker.unblock():
        connections.close_all()
        settings["NAME"] = queue.session.info.dbname
        try:
            yield
        finally:
            connections.close_all()
            settings |= before
