"""The ``django.tasks`` backend: ``django_pgqueue.backend.PgQueueBackend``.

Enqueueing is one INSERT on the queue's database in whatever transaction the caller has there: a
rolled-back job never existed.  The class keeps no state of its own; Django makes an instance per
thread and per handler.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.core.checks import CheckMessage
from django.db import connections
from django.utils.timezone import get_current_timezone, is_naive, make_aware

from . import conf, wakeups
from .checks import check_alias, queue_name_problem
from .compat import BaseTaskBackend, InvalidTask, Task, TaskResult, TaskResultStatus, normalize_json, signals
from .events import log_receiver_error
from .exceptions import InvalidArguments
from .models import Job
from .records import Enqueued, NewJob
from .results import get_result
from .retries import Backoff
from .storable import check_json, dump_json
from .tasks import PgQueueTask


class PgQueueBackend(BaseTaskBackend):
    """Stores tasks as jobs in PostgreSQL; ``manage.py runworkers`` runs them."""

    task_class = PgQueueTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)  # type: ignore[arg-type]
        self._params = params
        # Wrong options are reported by check(), with a hint; until then their defaults hold.
        self.settings, _ = conf.Options.parse(params.get("OPTIONS") or {})

    def validate_task(self, task: Task) -> None:
        """Raise InvalidTask for what this backend cannot store or run."""
        super().validate_task(task)
        problem = queue_name_problem(task.queue_name)
        if problem:
            raise InvalidTask(problem[0].upper() + problem[1:])
        if len(task.module_path) > conf.MAX_TASK_PATH:
            raise InvalidTask(
                f"The task path {task.module_path[:60]!r}… has {len(task.module_path)} characters; "
                f"{conf.MAX_TASK_PATH} are allowed."
            )

    def enqueue(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """Insert a job in the caller's transaction and return its result.

        Raises InvalidTask for a bad task, InvalidArguments (a ValueError) or TypeError for arguments
        that cannot be stored; both before any SQL.
        """
        return self.enqueue_many([(task, args, kwargs)])[0]

    async def aenqueue(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """See enqueue()."""
        return await sync_to_async(self.enqueue, thread_sensitive=True)(task=task, args=args, kwargs=kwargs)

    def enqueue_many(
        self, calls: Iterable[tuple[Task, Sequence[Any], Mapping[str, Any]]]
    ) -> list[TaskResult]:
        """Insert many jobs in the caller's transaction, a statement per thousand; results in order.

        Everything is checked before anything is written.
        """
        prepared = self._prepare_all(list(calls))
        connection = connections[self.settings.database]
        rows = Job.objects.enqueue_many(
            [new for new, _, _, _ in prepared], backend=self.alias, connection=connection
        )
        results = [
            self._new_result(task, row, args, kwargs)
            for (_, task, args, kwargs), row in zip(prepared, rows, strict=True)
        ]
        if self.settings.notify:
            queues = sorted(
                {new.queue for new, _, _, _ in prepared if new.run_after is None and new.delay is None}
            )
            wakeups.notify_after_commit(queues, using=self.settings.database)
        for result in results:
            self._send_enqueued(result)
        return results

    def get_result(self, result_id: str) -> TaskResult:
        """Return the result with this id; raises TaskResultDoesNotExist."""
        return get_result(result_id, alias=self.alias, database=self.settings.database)

    async def aget_result(self, result_id: str) -> TaskResult:
        """See get_result()."""
        return await sync_to_async(self.get_result, thread_sensitive=True)(result_id)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Return what is wrong with this alias's settings."""
        return check_alias(self.alias, self._params)

    def _prepare_all(
        self, calls: Sequence[tuple[Task, Sequence[Any], Mapping[str, Any]]]
    ) -> list[tuple[NewJob, Task, list[Any], dict[str, Any]]]:
        prepared = []
        for index, call in enumerate(calls):
            try:
                prepared.append(self._prepare(*call))
            except (InvalidTask, TypeError, ValueError) as error:
                if len(calls) > 1:
                    error.args = (f"item {index}: {error}", *error.args[1:])
                raise
        return prepared

    def _prepare(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[NewJob, Task, list[Any], dict[str, Any]]:
        self.validate_task(task)
        plain_args: Any = normalize_json(list(args))
        plain_kwargs: Any = normalize_json(dict(kwargs))
        policy = self._policy(task)
        new = NewJob(
            task_path=task.module_path,
            args=self._checked_json(plain_args, "args", task),
            kwargs=self._checked_json(plain_kwargs, "kwargs", task),
            queue=task.queue_name,
            priority=int(task.priority),
            run_after=aware(task.run_after),
            delay=getattr(task, "delay", None),
            metadata=dump_json(dict(getattr(task, "metadata", None) or {})),
            max_attempts=getattr(task, "max_attempts", None) or self.settings.max_attempts,
            timeout=getattr(task, "timeout", None) or self.settings.timeout,
            backoff_base=policy.base,
            backoff_cap=policy.cap,
        )
        return new, task, plain_args, plain_kwargs

    def _checked_json(self, value: Any, name: str, task: Task) -> str:
        try:
            check_json(value, name)
            text = dump_json(value)
        except RecursionError:
            raise InvalidArguments(
                f"{task.module_path}: {name} is nested too deeply to be stored as JSON"
            ) from None
        except ValueError as error:
            raise InvalidArguments(f"{task.module_path}: {error}") from None
        limit = self.settings.max_argument_bytes
        if len(text) * 4 > limit and len(text.encode()) > limit:
            raise InvalidArguments(
                f"{task.module_path}: {name} takes {len(text.encode()):,} bytes as JSON; "
                f"max_argument_bytes allows {limit:,}. Store the data elsewhere and pass its id."
            )
        return text

    def _policy(self, task: Task) -> Backoff:
        backoff = getattr(task, "backoff", None)
        if isinstance(backoff, Backoff):
            return backoff
        return Backoff(self.settings.backoff_base, max(self.settings.backoff_cap, self.settings.backoff_base))

    def _new_result(self, task: Task, row: Enqueued, args: list[Any], kwargs: dict[str, Any]) -> TaskResult:
        return TaskResult(
            task=task,
            id=str(row.job_id),
            status=TaskResultStatus.READY,
            enqueued_at=row.enqueued_at,
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )

    def _send_enqueued(self, result: TaskResult) -> None:
        # The job is stored already: a receiver that raises must not make the caller believe otherwise.
        for receiver, error in signals.task_enqueued.send_robust(type(self), task_result=result):
            if isinstance(error, Exception):
                log_receiver_error("task_enqueued", receiver, error, job=result.id)


def aware(moment: datetime | None) -> datetime | None:
    """Return ``moment`` as an aware time; a naive one is in the current time zone (USE_TZ=False)."""
    if moment is not None and is_naive(moment):
        return make_aware(moment, get_current_timezone())
    return moment
