"""From a stored path to a task, and back to the options that a job was enqueued with."""

from datetime import datetime
from functools import lru_cache
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from .compat import AnyTask, Task
from .exceptions import UnknownTask
from .models import Job
from .tasks import PgQueueTask


def resolve_task(path: str) -> AnyTask:
    """Return the task at a dotted path, or at the path that ``task_aliases`` gives for a renamed one.

    Raises UnknownTask when this code has no such module or attribute or when it is not a task;
    whatever an existing module raises at its import goes through.
    """
    return _import_task(aliases().get(path, path))


@lru_cache(maxsize=1)
def aliases() -> dict[str, str]:
    """Return old task paths with the new ones, from the options of all aliases of TASKS."""
    found: dict[str, str] = {}
    for params in (getattr(settings, "TASKS", None) or {}).values():
        given = (params.get("OPTIONS") or {}).get("task_aliases")
        if isinstance(given, dict):
            found |= given
    return found


def _forget_aliases(*, setting: str, **kwargs: Any) -> None:
    if setting == "TASKS":
        aliases.cache_clear()


setting_changed.connect(_forget_aliases)


@lru_cache(maxsize=4096)
def _import_task(path: str) -> AnyTask:
    module_path, _, name = path.rpartition(".")
    if not module_path or "" in path.split("."):  # a relative one is relative to nothing
        raise UnknownTask(f"no worker knows this task: {path} is not a dotted path")
    try:
        module = import_module(module_path)
    except ModuleNotFoundError as error:
        # The module itself or a package above it; what it imports in its turn is an error of its own.
        if not f"{module_path}.".startswith(f"{error.name}."):
            raise
        raise UnknownTask(f"no worker knows this task: {path} ({error})") from None
    if not hasattr(module, name):
        raise UnknownTask(f"no worker knows this task: {path} ({module_path} has no {name!r})")
    found = getattr(module, name)
    if not isinstance(found, Task):
        raise UnknownTask(f"no worker knows this task: {path} is a {type(found).__name__}, not a task")
    return found


def task_of(job: Job) -> AnyTask:
    """Return the task of a job with the options of its enqueueing.

    A path that this code does not have gives a stand-in, so that a result can be read anywhere.
    """
    try:
        task = resolve_task(job.task_path)
    except (Exception, SystemExit):  # noqa: BLE001 - raised by a module at its import
        return stand_in(job)
    return bound_task(task, job.backend, job.queue, job.priority, job.run_after)


def bound_task(task: AnyTask, backend: str, queue: str, priority: int, run_after: datetime | None) -> AnyTask:
    """Return ``task`` with the options that a job was enqueued with; not validated again."""
    if (
        task.queue_name == queue
        and task.priority == priority
        and task.run_after == run_after
        and task.backend == backend
    ):
        return task
    wanted = {"backend": backend, "queue_name": queue, "priority": priority, "run_after": run_after}
    bound: AnyTask = object.__new__(type(task))
    for name in type(task).__dataclass_fields__:
        object.__setattr__(bound, name, getattr(task, name))
    for name, value in wanted.items():
        object.__setattr__(bound, name, value)
    return bound


def stand_in(job: Job) -> AnyTask:
    """Return a task that has a path but no code; calling it raises UnknownTask."""

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise UnknownTask(f"no worker knows this task: {job.task_path}")

    missing.__module__, _, missing.__qualname__ = job.task_path.rpartition(".")
    missing.__name__ = missing.__qualname__
    shell = object.__new__(PgQueueTask)
    for name, dataclass_field in PgQueueTask.__dataclass_fields__.items():
        default = dataclass_field.default
        object.__setattr__(shell, name, {} if name == "metadata" else default)
    values = {"func": missing, "takes_context": False, "backend": job.backend, "queue_name": job.queue}
    for name, value in (values | {"priority": job.priority, "run_after": job.run_after}).items():
        object.__setattr__(shell, name, value)
    return shell
