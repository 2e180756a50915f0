"""The ``django.tasks`` backend: ``django_pgqueue.backend.PgQueueBackend``.

Enqueueing is one INSERT on the queue's database in whatever transaction the caller has there: a
rolled-back job never existed.  The class keeps no state of its own; Django makes an instance per
thread and per handler.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.core.checks import CheckMessage
from django.core.exceptions import ImproperlyConfigured

from . import announcements, conf, enqueueing, wakeups
from .checks import check_alias, queue_name_problem, queues_problem
from .compat import (
    DEFAULT_TASK_QUEUE_NAME,
    AnyResult,
    AnyTask,
    BaseTaskBackend,
    InvalidTask,
    NativeInvalidTask,
    Task,
    TaskResult,
    TaskResultStatus,
    is_the_apis_own,
)
from .records import Enqueued, NewJob
from .results import get_result, get_results, new_result
from .storable import time_problem
from .task_options import DJANGOS_OWN, check_options
from .tasks import P, PgQueueTask, R


class PgQueueBackend(BaseTaskBackend):
    """Stores tasks as jobs in PostgreSQL; ``manage.py runworkers`` runs them."""

    task_class = PgQueueTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        self._params = params
        queues = params.get("QUEUES", [DEFAULT_TASK_QUEUE_NAME])
        self._queues_problem = queues_problem(queues) or next(
            (queue_name_problem(name) for name in queues if not isinstance(name, str)), None
        )
        # Django makes a set of whatever QUEUES is: of the letters of a text, too.
        super().__init__(alias, dict(params) if self._queues_problem is None else {**params, "QUEUES": []})
        # Wrong options are reported by check(), with a hint; until then their defaults hold.
        self.settings, _ = conf.Options.parse(params.get("OPTIONS") or {})

    def validate_task(self, task: AnyTask) -> None:
        """Raise InvalidTask for what this backend cannot store or run.

        Raises ImproperlyConfigured when QUEUES is no list of names.
        """
        if self._queues_problem is not None:
            raise ImproperlyConfigured(f"TASKS[{self.alias!r}]: {self._queues_problem}")
        if not isinstance(task, PgQueueTask):  # which has looked at its options when it was made
            check_options(task, DJANGOS_OWN)
        try:
            super().validate_task(task)
        except NativeInvalidTask as error:
            raise InvalidTask(*error.args) from None
        problem = queue_name_problem(task.queue_name) or time_problem(
            task.run_after, getattr(task, "delay", None)
        )
        if problem:
            raise InvalidTask(problem[0].upper() + problem[1:])
        if len(task.module_path) > conf.MAX_TASK_PATH:
            raise InvalidTask(
                f"The task path {task.module_path[:60]!r}… has {len(task.module_path)} characters; "
                f"{conf.MAX_TASK_PATH} are allowed."
            )

    def enqueue(
        self, task: "Task[P, R]", args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> "TaskResult[P, R]":
        """Insert a job in the caller's transaction and return its result.

        Raises InvalidTask for a bad task, InvalidArguments (a ValueError) or TypeError for arguments
        that cannot be stored; both before any SQL.
        """
        results: list[Any] = self.enqueue_many([(task, args, kwargs)])
        result: TaskResult[P, R] = results[0]
        return result

    async def aenqueue(
        self, task: "Task[P, R]", args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> "TaskResult[P, R]":
        """See enqueue()."""
        return await sync_to_async(self.enqueue, thread_sensitive=True)(task=task, args=args, kwargs=kwargs)

    def enqueue_many(
        self, calls: Iterable[tuple[AnyTask, Sequence[Any], Mapping[str, Any]]]
    ) -> list[AnyResult]:
        """Insert many jobs in the caller's transaction, a statement per thousand; results in order.

        Everything is checked before anything is written; a bad item raises with its index.  A task with
        a ``unique_key`` that a live job holds gives that job's result, raises DuplicateJob or replaces,
        as its ``on_conflict`` says.
        """
        prepared = enqueueing.prepare_all(list(calls), self)
        notify = self.settings.notify
        asked_at = time.monotonic()
        rows = enqueueing.insert(prepared, alias=self.alias, database=self.settings.database, notify=notify)
        results = self._results(prepared, rows)
        if notify:
            queues = {
                item.job.queue
                for item, row in zip(prepared, rows, strict=True)
                if _is_due(item.job, row) and not row.is_notified
            }
            # Only the statement of a single job looks.
            wakeups.notify_after_commit(
                sorted(queues),
                using=self.settings.database,
                sleepers=rows[0].sleepers if len(rows) == 1 else None,
                seen_at=asked_at,
            )
        if announcements.listens("task_enqueued", logging.DEBUG):
            self._announce(result for result, row in zip(results, rows, strict=True) if row.inserted)
        return results

    def _announce(self, results: Iterable[AnyResult]) -> None:
        # Stored already: a receiver that raises must not make the caller believe otherwise.
        for result in results:
            announcements.send("task_enqueued", sender=type(self), task_result=result)

    def get_result(self, result_id: str) -> AnyResult:
        """Return the result with this id; raises TaskResultDoesNotExist."""
        return get_result(result_id, alias=self.alias, database=self.settings.database)

    async def aget_result(self, result_id: str) -> AnyResult:
        """See get_result()."""
        return await sync_to_async(self.get_result, thread_sensitive=True)(result_id)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Return what is wrong with this alias's settings."""
        # Where both APIs are loaded each has a handler with an instance of its own; one of them reports.
        return check_alias(self.alias, self._params) if is_the_apis_own(self) else []

    def _results(self, prepared: Sequence[enqueueing.Prepared], rows: Sequence[Enqueued]) -> list[AnyResult]:
        live = {row.job_id for row in rows if not row.inserted}
        found = get_results(live, alias=self.alias, database=self.settings.database) if live else {}
        return [
            self._new(item, row) if row.inserted else self._found(found, row)
            for item, row in zip(prepared, rows, strict=True)
        ]

    def _found(self, found: Mapping[int, AnyResult], row: Enqueued) -> AnyResult:
        # Of another alias, or pruned in this very moment: the error says which.
        return found.get(row.job_id) or self.get_result(str(row.job_id))

    def _new(self, item: enqueueing.Prepared, row: Enqueued) -> AnyResult:
        return new_result(
            task=item.task,
            id=str(row.job_id),
            status=TaskResultStatus.READY,
            enqueued_at=row.enqueued_at,
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=item.args,
            kwargs=item.kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )


def _is_due(job: NewJob, row: Enqueued) -> bool:
    return row.inserted and job.run_after is None and job.delay is None
