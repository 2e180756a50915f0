"""The backends under test: PgQueueBackend and what Django's tests ask of the Dummy and Immediate ones."""

import asyncio
import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.conf import settings
from django.db import connections

from django_pgqueue.backend import PgQueueBackend
from django_pgqueue.compat import Task, TaskResult
from django_pgqueue.models import Job
from django_pgqueue.worker.board import boards_of, make_memory
from django_pgqueue.worker.config import WorkerConfig, new_identity
from django_pgqueue.worker.engine import Engine

from .cases import delete_everything

T = TypeVar("T")


class StoredBackend(PgQueueBackend):
    """In the place of the Dummy backend: jobs are stored and not run, and the tests may look at them all."""

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)
        # With Django's backends one failure is final. Not by OPTIONS: the tests want those empty.
        self.settings = dataclasses.replace(self.settings, max_attempts=1)

    @property
    def results(self) -> list[TaskResult]:
        """The results of all jobs, oldest first."""
        return _read(lambda: [self.get_result(str(job.pk)) for job in Job.objects.order_by("pk")])

    def clear(self) -> None:
        """Forget all jobs."""
        delete_everything()

    def get_result(self, result_id: str) -> TaskResult:
        """See PgQueueBackend. Closes the connection that a blocking call in a coroutine made."""
        try:
            return super().get_result(result_id)
        finally:
            if _in_coroutine() and os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE"):
                connections.close_all()


class DrainedBackend(StoredBackend):
    """In the place of the Immediate backend: a worker's engine runs each job before enqueue returns."""

    def enqueue(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """Enqueue, run, and return the result as it is then."""
        result = super().enqueue(task, args, kwargs)
        drain(self)
        result.refresh()
        return result


def drain(backend: PgQueueBackend) -> None:
    """Run what is due with the engine, the runners and the settlements of a worker, in this process."""
    queues = tuple(settings.TASKS[backend.alias].get("QUEUES", ["default"]))
    options = {"threads": 1, "drain": True, "poll_interval": 0.05}
    config = WorkerConfig.make(backend.alias, queues, backend.settings, **options)
    memory, descriptor = make_memory(1)
    (board,) = boards_of(memory)
    board.set("beat", time.monotonic())  # what the keeper does
    engine = Engine(config, board, new_identity(), None)
    try:
        assert engine.run()
    finally:
        engine.runners.close(10.0)
        engine.connection.close()
        os.close(descriptor)


def _read(query: Callable[[], T]) -> T:
    """Run a query, for a coroutine in a thread with a connection of its own."""
    if not _in_coroutine():
        return query()

    def in_thread() -> T:
        try:
            return query()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(in_thread).result()


def _in_coroutine() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
