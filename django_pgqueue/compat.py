"""The Tasks API: ``django.tasks`` from Django 6.0 on, the ``django-tasks`` backport on 5.2.

The rest of the package imports the API's names from here and never asks for versions itself.  Type checkers
see the newest API; ``AnyTask`` and its like are for annotations that hold for every task.
"""

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django.tasks import TaskContext, TaskResult, TaskResultStatus, checks, signals, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_PRIORITY,
        DEFAULT_TASK_QUEUE_NAME,
        TASK_REFRESH_ATTRS,
        Task,
        TaskError,
    )
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist, TaskResultMismatch
    from django.utils.json import normalize_json
else:
    from django_tasks import (
        TaskContext,
        TaskResult,
        TaskResultStatus,
        checks,
        signals,
        task_backends,
    )
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_PRIORITY,
        DEFAULT_TASK_QUEUE_NAME,
        TASK_REFRESH_ATTRS,
        Task,
        TaskError,
    )
    from django_tasks.exceptions import InvalidTaskError as InvalidTask
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
    from django_tasks.utils import normalize_json

if TYPE_CHECKING:
    AnyTask = Task[..., Any]
    AnyResult = TaskResult[..., Any]
    AnyContext = TaskContext[..., Any]
else:  # not generic at run time
    AnyTask = Task
    AnyResult = TaskResult
    AnyContext = TaskContext

NativeInvalidTask: type[Exception] = InvalidTask

if not TYPE_CHECKING and django.VERSION >= (6, 0) and find_spec("django_tasks") is not None:
    # A library may use the backport beside Django's own API: what it catches must be what is raised.
    from django_tasks import exceptions as _backport

    class InvalidTask(InvalidTask, _backport.InvalidTaskError):
        """The task is invalid; for both APIs."""

    class TaskResultDoesNotExist(TaskResultDoesNotExist, _backport.TaskResultDoesNotExist):
        """There is no such result; for both APIs."""

    class TaskResultMismatch(TaskResultMismatch, _backport.TaskResultMismatch):
        """The result belongs to another task; for both APIs."""


def is_the_apis_own(backend: BaseTaskBackend) -> bool:
    """True for a backend instance that the main API's handler made, not the backport's beside it."""
    beside = sys.modules.get("django_tasks")
    if beside is None or django.VERSION < (6, 0):
        return True
    return getattr(beside.task_backends._connections, backend.alias, None) is not backend


__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "DEFAULT_TASK_PRIORITY",
    "DEFAULT_TASK_QUEUE_NAME",
    "TASK_REFRESH_ATTRS",
    "AnyContext",
    "AnyResult",
    "AnyTask",
    "BaseTaskBackend",
    "InvalidTask",
    "NativeInvalidTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "checks",
    "is_the_apis_own",
    "normalize_json",
    "signals",
    "task_backends",
]
