"""Crash injection: the worker process dies at a chosen place, and the job is rescued.

The process that would die is the test's own, so it dies by an exception of a class that no task
catches by accident.  What a real death does not do, and this does: run the ``finally`` and
``except BaseException`` blocks on the way out.  Everything else is as in a real one: transactions
that were open are rolled back, what was committed stays, no outcome is written, and the job's
attempt is ended as lost by the verb that a supervisor uses.
"""

import inspect
import pkgutil
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal
from unittest import mock

from ..compat import AnyTask


class WorkerDied(BaseException):
    """Stands for the end of the worker process; nobody but the test kit catches it."""


@dataclass(slots=True)
class Crash:
    """A place at which workers die; ``count`` says how often it has happened."""

    place: str
    task_path: str | None
    times: int | None
    count: int = 0


class Running:
    """What runs now, for the places at which it may die."""

    def __init__(self, task_path: str) -> None:
        self.task_path = task_path
        self.died_at: str | None = None


_crashes: list[Crash] = []
_running: list[Running] = []


@contextmanager
def running(task_path: str) -> Generator[Running]:
    """Let crashes reach the task that runs inside the block."""
    now = Running(task_path)
    _running.append(now)
    try:
        yield now
    finally:
        _running.remove(now)


def reach(place: str) -> None:
    """Die here if a crash is wanted at this place; a process dies only while it runs a job."""
    if not _running or _running[-1].died_at:
        return
    now = _running[-1]
    for crash in _crashes:
        wanted = crash.place == place and crash.task_path in (None, now.task_path)
        if wanted and (crash.times is None or crash.count < crash.times):
            crash.count += 1
            now.died_at = place
            raise WorkerDied(f"the worker dies here: {place}")


@contextmanager
def worker_dies(
    at: Literal["start", "end"] | None = None,
    *,
    before: str | None = None,
    after: str | None = None,
    task: AnyTask | None = None,
    times: int | None = 1,
) -> Generator[Crash]:
    """Let the worker die while ``run_jobs`` runs a job inside the block.

    ``at="start"``: the job has been started, the task has not done anything.  ``at="end"`` (the default):
    the task has done everything, and nobody has written that down.  ``before`` and ``after`` take the
    dotted path of a function or method, as ``mock.patch`` does: when it is called, or when it has returned.

    ``task`` limits it to jobs of one task.  ``times`` is how many attempts die; None means all.  Raises
    AssertionError when nothing died in the block.
    """
    given = [place for place in (at, before, after) if place is not None]
    if len(given) > 1:
        raise TypeError("worker_dies() takes one place: a position, before= or after=.")
    if at not in (None, "start", "end"):
        raise ValueError(f'worker_dies({at!r}): the place is "start" or "end", or give before= or after=.')
    target = before or after
    place = at or (f"before {before}" if before else f"after {after}" if after else "end")
    crash = Crash(place, task.module_path if task is not None else None, times)
    _crashes.append(crash)
    try:
        with _dying(target, place) if target else nullcontext():
            yield crash
    finally:
        _crashes.remove(crash)
    if not crash.count:
        of = f" of {crash.task_path}" if crash.task_path else ""
        raise AssertionError(f"no worker died: no job{of} that run_jobs() ran came to the place {place!r}.")


def _dying(target: str, place: str) -> AbstractContextManager[Any]:
    path, _, name = target.rpartition(".")
    if not path:
        raise ValueError(f"worker_dies(): {target!r} is not the dotted path of a function.")
    owner = pkgutil.resolve_name(path)
    wrapper: Any = _wrapper(getattr(owner, name), place)
    if isinstance(inspect.getattr_static(owner, name), (staticmethod, classmethod)):
        wrapper = staticmethod(wrapper)  # the original is bound already
    return mock.patch.object(owner, name, wrapper)


def _wrapper(original: Callable[..., Any], place: str) -> Callable[..., Any]:
    first = place.startswith("before ")

    @wraps(original)
    def dying(*args: Any, **kwargs: Any) -> Any:
        if first:
            reach(place)
        value = original(*args, **kwargs)
        if not first:
            reach(place)
        return value

    @wraps(original)
    async def dying_coroutine(*args: Any, **kwargs: Any) -> Any:
        if first:
            reach(place)
        value = await original(*args, **kwargs)
        if not first:
            reach(place)
        return value

    return dying_coroutine if inspect.iscoroutinefunction(original) else dying
