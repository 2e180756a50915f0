"""``context.step``: parts of a job that are done once, however many attempts the job takes.

A step's function runs, its result is stored behind the fence, and every later attempt gets the stored one.
It is stored at once, on a connection of the worker's own: it stays when the task's transaction is rolled
back, since what the function did elsewhere (a payment, a mail) stays too.  Between the effect and its record
a process can die; then the next attempt calls the function again, and only an idempotency key makes that
harmless.
"""

import json
import os
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from inspect import iscoroutinefunction
from typing import Any, Protocol

import psycopg
from asgiref.sync import sync_to_async

from . import steps
from .compat import normalize_json
from .conf import MAX_STEP_NAME
from .connections import PrivateConnection
from .durable import JobStep
from .exceptions import LeaseLost, UnstorableResult
from .models import Job
from .records import Answer, Claimed, Fence
from .storable import dump_result, safe_str

AGAIN = (psycopg.OperationalError, psycopg.InterfaceError)
"""What time can heal: the database is away, or somebody holds the row."""
LEAST_PAUSE = 0.05


class Attempt(Protocol):
    """What a step needs to know of the attempt that it belongs to."""

    job: Claimed
    task: Any
    lease_lost: bool
    row_locked: bool


class Store(Protocol):
    """Where steps are kept.  Both calls raise one of ``AGAIN`` when they are worth another try."""

    thread_sensitive: bool
    """Whether a coroutine must ask on the thread of its own connections."""

    def recorded(self, job_id: int) -> dict[str, Any]:
        """Return the results of the steps that a job has done."""
        ...

    def record(self, fence: Fence, name: str, text: str, *, locked: bool) -> str:
        """Store a result; see ``StepManager.record``."""
        ...


class Steps:
    """The steps of one attempt."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._known: dict[str, Any] | None = None
        options = attempt.task.get_backend().settings
        self._limit: int = options.max_result_bytes
        self._store: Store = _given.get() or private_store(options.database, options.prepared_statements)

    def run(
        self, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Return the step's stored result, or call the function and store what it returns."""
        if iscoroutinefunction(function):
            raise TypeError(f"step {name!r}: {function!r} is a coroutine function: await context.astep(...)")
        if self._is_done(name):
            return self._result(name)
        return self._keep(name, function(*args, **kwargs))

    async def arun(
        self, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """See ``run``; the function may be a coroutine function."""
        if await self._in_thread(self._is_done, name):
            return self._result(name)
        value = function(*args, **kwargs)
        if isinstance(value, Awaitable):
            value = await value
        return await self._in_thread(self._keep, name, value)

    async def _in_thread(self, function: Callable[..., Any], *args: Any) -> Any:
        return await sync_to_async(function, thread_sensitive=self._store.thread_sensitive)(*args)

    def _is_done(self, name: str) -> bool:
        problem = name_problem(name)
        if problem:
            raise ValueError(problem)
        known = self._known
        if known is None:
            job_id = self._attempt.job.job_id
            known = self._known = self._insist(lambda: self._store.recorded(job_id), "was not begun")
        if name not in known and self._attempt.lease_lost:
            raise self._lost(name, "was not begun")
        return name in known

    def _result(self, name: str) -> Any:
        assert self._known is not None  # noqa: S101 - _is_done() came first
        return self._known[name]

    def _keep(self, name: str, value: Any) -> Any:
        text = self._text(name, value)
        fence, locked = self._attempt.job.fence, self._attempt.row_locked
        said = self._insist(
            lambda: self._store.record(fence, name, text, locked=locked), "was done and not recorded", name
        )
        if said == steps.LOST:
            raise self._lost(name, "was done and not recorded")
        # A reply that never came: what was recorded is what this attempt has just done.
        self._known = {**(self._known or {}), name: json.loads(text)}
        return self._known[name]

    def _text(self, name: str, value: Any) -> str:
        try:
            text = dump_result(normalize_json(value) if value is not None else None)
        except (TypeError, ValueError, RecursionError) as error:
            raise UnstorableResult(
                f"step {name!r} was done, but its result (a {type(value).__name__}) cannot be stored as "
                f"JSON: {safe_str(error)}"
            ) from None
        size = len(text.encode())
        if size > self._limit:
            raise UnstorableResult(
                f"step {name!r} was done, but its result takes {size:,} bytes as JSON; max_result_bytes "
                f"allows {self._limit:,}. Store the data elsewhere and return its id."
            )
        return text

    def _insist(self, act: Callable[[], Any], what: str, name: str = "") -> Any:
        pause = LEAST_PAUSE
        while True:
            try:
                return act()
            except AGAIN:
                if self._attempt.lease_lost:
                    raise self._lost(name, what) from None
                time.sleep(pause)
                pause = min(pause * 2, 1.0)

    def _lost(self, name: str, what: str) -> LeaseLost:
        step = f"step {name!r}" if name else "a step"
        return LeaseLost(
            f"{step} of job {self._attempt.job.job_id} {what}: the lease is lost, another worker may run the "
            "job now, with the same idempotency key"
        )


def name_problem(name: Any) -> str | None:
    """Return what is wrong with the name of a step, or None."""
    if not isinstance(name, str) or not name or not name.isprintable():
        return f"the name of a step must be a non-empty string of printable characters, not {name!r}"
    if len(name) > MAX_STEP_NAME:
        return f"the name of a step may have {MAX_STEP_NAME} characters; {name[:40]!r}… has {len(name)}"
    return None


class PrivateSteps:
    """Steps on a connection of the process's own, one at a time."""

    thread_sensitive = False

    def __init__(self, database: str, *, prepared: bool) -> None:
        self._connection = PrivateConnection(database, f"steps {os.getpid()}", prepared=prepared)
        self._turn = threading.Lock()

    def recorded(self, job_id: int) -> dict[str, Any]:
        """Return the results of the steps that a job has done."""
        with self._turn, self._connection.hot() as connection:
            return JobStep.objects.recorded(job_id, connection=connection)

    def record(self, fence: Fence, name: str, text: str, *, locked: bool) -> str:
        """Store a result; see ``StepManager.record``."""
        with self._turn, self._connection.hot() as connection:
            return JobStep.objects.record(fence, name, text, locked=locked, connection=connection)

    def whereabouts(self, fence: Fence, give_up: Callable[[], bool]) -> Answer | None:
        """Ask what became of a job whose reply never came; None when that is not to be had in time."""
        while not give_up():
            with suppress(*AGAIN), self._turn, self._connection.hot() as connection:
                return Job.objects.whereabouts(fence, connection=connection)
            time.sleep(max(self._connection.pause, LEAST_PAUSE))
        return None

    def close(self) -> None:
        """Close the connection; the next use makes another."""
        with self._turn:
            self._connection.close()


_stores: dict[tuple[int, str], PrivateSteps] = {}
_making = threading.Lock()
_given: ContextVar[Store | None] = ContextVar("django_pgqueue_steps", default=None)


def private_store(database: str, prepared: bool) -> PrivateSteps:
    """Return this process's own store of a database."""
    # By process: a connection must not go through a fork.
    with _making:
        key = (os.getpid(), database)
        if key not in _stores:
            _stores[key] = PrivateSteps(database, prepared=prepared)
        return _stores[key]


@contextmanager
def kept_in(store: Store) -> Generator[None]:
    """Have steps kept elsewhere; for the test kit, whose rows no other connection sees."""
    token = _given.set(store)
    try:
        yield
    finally:
        _given.reset(token)
