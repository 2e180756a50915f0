"""What the workers under test run. ``recorded`` ones leave a row for each call: see executions.py."""

import asyncio
import ctypes
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.db.utils import IntegrityError

from django_pgqueue import Backoff, Cancel, Retry, Snooze, task
from django_pgqueue.context import JobContext

from .executions import begin, end, pause, recorded


@task
def ok(value: Any = None) -> Any:
    return value


@task(takes_context=True)
def mark(context: JobContext, note: str = "") -> str:
    with recorded(context, note):
        return note


@task(takes_context=True)
def sleep(context: JobContext, *seconds: float, raises_at: int = 0) -> int:
    """Take a while, each attempt its own; knows whether it lost its lease meanwhile."""
    row = begin(context)
    pause(seconds[min(context.attempt, len(seconds)) - 1])
    end(row, "lost" if context.lease_lost else "held")
    if context.attempt == raises_at:
        raise ValueError("failed after its time")
    return context.attempt


@task(takes_context=True)
def tick(context: JobContext, *seconds: float) -> None:
    """Take a while, each attempt its own, and write down at every moment that this call still runs."""
    row, until = begin(context), time.monotonic() + seconds[min(context.attempt, len(seconds)) - 1]
    while time.monotonic() < until:
        end(row)
        pause(0.01)


@task(takes_context=True)
def sleep_attentively(context: JobContext, seconds: float) -> None:
    """Take a while, and stop at a checkpoint when told to."""
    row, until = begin(context), time.monotonic() + seconds
    while time.monotonic() < until:
        pause(0.02)
        try:
            context.checkpoint()
        except Exception as error:
            end(row, type(error).__name__)
            raise
    end(row, "held")


@task(takes_context=True)
def fail(context: JobContext, message: str = "failed as asked") -> None:
    with recorded(context):
        raise ValueError(message)


@task(takes_context=True)
def fail_at_first(context: JobContext, times: int = 1) -> int:
    with recorded(context):
        if context.attempt <= times:
            raise ValueError(f"attempt {context.attempt}")
        return context.attempt


# --- crashes


@task(takes_context=True)
def kill9(context: JobContext) -> None:
    """Do to the process what the kernel does when memory runs out."""
    begin(context)
    os.kill(os.getpid(), signal.SIGKILL)


@task(takes_context=True)
def leave(context: JobContext, code: int = 7) -> None:
    begin(context)
    os._exit(code)


@task(takes_context=True)
def crash(context: JobContext) -> None:
    """Read where no memory is: a segmentation fault."""
    begin(context)
    ctypes.string_at(0)


# --- time


@task(takes_context=True)
def hold_interpreter(context: JobContext, seconds: float) -> None:
    """Hold the GIL in one call of C, so that no other thread of this process runs."""
    with recorded(context):
        ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@task(takes_context=True)
def go_on(context: JobContext, seconds: float) -> None:
    """Take no notice of a time limit."""
    begin(context)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(BaseException):
            pause(0.02)


@task(takes_context=True)
def loop_for(context: JobContext, seconds: float) -> None:
    """Take a while in Python code, where a timeout can reach."""
    with recorded(context):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pause(0.01)


@task(takes_context=True)
def read_silent_socket(context: JobContext) -> None:
    """Block in a call that nothing ends."""
    begin(context)
    ours, _theirs = socket.socketpair()
    ours.recv(1)


# --- words to the queue


@task(takes_context=True)
def ask_for_retry(context: JobContext, delay: float | None) -> int:
    if context.attempt == 1:
        raise Retry(delay)
    return context.attempt


@task(takes_context=True)
def ask_to_snooze(context: JobContext, times: int, delay: float) -> int:
    if context.attempt <= times:
        raise Snooze(delay, "not yet")
    return context.attempt


@task
def ask_to_cancel(reason: str) -> None:
    raise Cancel(reason)


@task(backoff=Backoff(base=1.0, cap=2.0))
def fail_with_policy() -> None:
    raise ValueError("policy")


def three_seconds_for_value_errors(error: BaseException, result: Any) -> float | None:
    return 3.0 if isinstance(error, ValueError) and result.attempts >= 1 else None


def broken_backoff(error: BaseException, result: Any) -> float:
    raise ZeroDivisionError("the backoff itself")


@task(backoff=three_seconds_for_value_errors)
def fail_with_callable(kind: str) -> None:
    raise {"value": ValueError, "key": KeyError}[kind](kind)


@task(backoff=broken_backoff)
def fail_with_broken_callable() -> None:
    raise ValueError("first")


def ending_backoff(error: BaseException, result: Any) -> float:
    raise SystemExit(1)


@task(backoff=ending_backoff)
def fail_with_ending_callable() -> None:
    raise ValueError("first")


@task(discard_on=LookupError)
def fail_discarding_lookups(kind: str) -> None:
    raise {"value": ValueError, "key": KeyError}[kind](kind)


@task(retry_on=ConnectionError)
def fail_retrying_connections(kind: str) -> None:
    raise {"value": ValueError, "reset": ConnectionResetError}[kind](kind)


# --- hostile errors


class NeedsArguments(Exception):
    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(code)
        self.reason = reason


class CannotBeShown(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no str")

    __repr__ = __str__


class EndsTheProcessWhenShown(Exception):
    def __str__(self) -> str:
        raise SystemExit(9)

    __repr__ = __str__


class Nameless(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__qualname__", "__name__", "__module__"):
            raise RuntimeError("no name")
        return super().__getattribute__(name)


class HasNoName(Exception, metaclass=Nameless):
    pass


class HidesItsTraceback(Exception):
    @property
    def __traceback__(self) -> None:
        raise RuntimeError("no traceback")


class RefusesNotes(Exception):
    @property
    def __notes__(self) -> None:
        raise SystemExit("no notes")

    @property
    def __cause__(self) -> None:
        raise KeyboardInterrupt


def _nested_class() -> Exception:
    class Inside(Exception):
        pass

    return Inside("from a class inside a function")


def _foreign_class() -> Exception:
    return type("Foreign", (Exception,), {"__module__": "no_such_package.errors"})("not importable elsewhere")


def _chain(length: int) -> Exception:
    error: Exception | None = None
    for number in range(length):
        following = ValueError(f"link {number}")
        following.__cause__, error = error, following
    assert error is not None
    return error


def _recursion() -> None:
    _recursion()


HOSTILE = {
    "needs_arguments": lambda: NeedsArguments(5, reason="why"),
    "cannot_be_shown": lambda: CannotBeShown(),
    "ends_the_process_when_shown": lambda: EndsTheProcessWhenShown(),
    "has_no_name": lambda: HasNoName("unnamed"),
    "hides_its_traceback": lambda: HidesItsTraceback("hidden"),
    "refuses_notes": lambda: RefusesNotes("noteless"),
    "nested": _nested_class,
    "socket_and_lock": lambda: ValueError(socket.socket(), threading.Lock()),
    "group_of_1000": lambda: ExceptionGroup("many", [ValueError(n) for n in range(1000)]),
    "foreign": _foreign_class,
    "nul": lambda: ValueError("x\x00y"),
    "surrogate": lambda: ValueError("bad \udcff name"),
    "50_million_characters": lambda: ValueError("x" * 50_000_000),
    "chain_of_500": lambda: _chain(500),
    "long_class_name": lambda: type("E" * 400, (Exception,), {})("long"),
}


@task(takes_context=True)
def raise_hostile(context: JobContext, name: str) -> None:
    begin(context)
    if name == "recursion":
        _recursion()
    raise HOSTILE[name]()


@task(takes_context=True)
def raise_in_nul_file(context: JobContext) -> None:
    """Raise in code whose file name is not text that can be stored."""
    begin(context)
    exec(compile("raise ValueError('from a strange file')", "templates/\udcff strange.html", "exec"), {})


BASE = {
    "exit_0": lambda: SystemExit(0),
    "exit_3": lambda: SystemExit(3),
    "keyboard_interrupt": KeyboardInterrupt,
    "generator_exit": GeneratorExit,
    "cancelled_error": asyncio.CancelledError,
}


@task(takes_context=True)
def raise_base(context: JobContext, name: str) -> None:
    with recorded(context):
        raise BASE[name]()


# --- hostile values


def _cyclic() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


def _numbers() -> Iterator[int]:
    yield 1


VALUES = {
    "nul": lambda: "\x00",
    "surrogate": lambda: "\ud800",
    "infinity": lambda: float("inf"),
    "nan": lambda: {"x": [float("nan")]},
    "set": lambda: {1, 2},
    "decimal": lambda: Decimal("1.10"),
    "datetime": lambda: datetime(2026, 11, 30, tzinfo=UTC),
    "generator": _numbers,
    "model": lambda: Group(name="a"),
    "queryset": lambda: Group.objects.none(),
    "cyclic": _cyclic,
    "bytes": lambda: b"\xff",
    "odd_key": lambda: {(1, 2): 3},
}


@task(takes_context=True)
def return_value(context: JobContext, name: str) -> Any:
    with recorded(context):
        return VALUES[name]()


# --- connections


@task(takes_context=True)
def swallow_integrity_error(context: JobContext) -> None:
    begin(context)
    atomic = transaction.atomic()
    atomic.__enter__()
    try:
        ContentType.objects.create(id=1, app_label="a", model="a")
        ContentType.objects.create(id=1, app_label="b", model="b")
    except IntegrityError:
        pass


@task(takes_context=True)
def turn_autocommit_off(context: JobContext) -> None:
    begin(context)
    transaction.set_autocommit(False)
    Group.objects.count()


@task(takes_context=True)
def leave_begin_open(context: JobContext) -> None:
    begin(context)
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1")


@task(takes_context=True)
def leave_atomic_open(context: JobContext) -> None:
    begin(context)
    transaction.atomic().__enter__()
    Group.objects.count()


@task(takes_context=True)
def leave_session_settings(context: JobContext) -> None:
    begin(context)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 1234")
        cursor.execute("SET search_path = nowhere, public")
        cursor.execute("CREATE TEMPORARY TABLE left_behind (id int)")


@task(takes_context=True)
def show_connection(context: JobContext) -> dict[str, Any]:
    """Say how this thread's connection was found."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('statement_timeout'), current_setting('search_path'), pg_backend_pid()"
        )
        timeout, path, backend = cursor.fetchone()
    found = {
        "autocommit": transaction.get_autocommit(),
        "atomic": connection.in_atomic_block,
        "timeout": timeout,
        "path": path,
        "backend": backend,
        "thread": threading.current_thread().name,
    }
    pause(0.2)
    return found


MEDDLING = {
    "close": lambda: connection.close(),
    "commit": lambda: connection.commit(),
    "unlock_all": lambda: _execute("SELECT pg_advisory_unlock_all()"),
    "discard_all": lambda: _execute("DISCARD ALL"),
    "read_only": lambda: _execute("SET default_transaction_read_only = on"),
}


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@task(takes_context=True)
def meddle_and_sleep(context: JobContext, how: str, seconds: float) -> None:
    begin(context)
    MEDDLING[how]()
    pause(seconds)


@task(takes_context=True)
def use_orm(context: JobContext) -> int:
    with recorded(context):
        return ContentType.objects.count()


@task
def use_alias_slowly(alias: str, seconds: float) -> int:
    """Keep the thread busy, so that every thread gets some of these."""
    count = ContentType.objects.using(alias).count()
    pause(seconds)
    return count


@task
def sleep_without_database(seconds: float) -> None:
    pause(seconds)


@task
def count_groups(name: str) -> int:
    return Group.objects.filter(name=name).count()


@task
def query_often(times: int) -> int:
    """Make queries; return how long Django's query log is."""
    for _ in range(times):
        Group.objects.exists()
    return len(connection.queries)


# --- memory


_kept: list[bytearray] = []


@task
def keep_megabytes(count: int) -> None:
    _kept.append(bytearray(b"x") * (count * 2**20))


# --- coroutines


@task(takes_context=True)
async def asleep(context: JobContext, seconds: float) -> str:
    """Wait on the loop; returns the thread it ran in."""
    await asyncio.sleep(seconds)
    return threading.current_thread().name


@task(takes_context=True)
async def asleep_recorded(context: JobContext, seconds: float) -> None:
    row = await asyncio.to_thread(begin, context)
    try:
        await asyncio.sleep(seconds)
    finally:
        await asyncio.to_thread(end, row)


@task(takes_context=True)
async def asleep_attentively(context: JobContext, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(0.02)
        context.checkpoint()


@task
async def asleep_stubbornly(seconds: float) -> str:
    """Take a cancellation for a suggestion."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue
    return "not to be stopped"


@task
async def query_on_the_loop(seconds: float) -> int:
    """Hold a database connection for a while; returns its backend's pid."""

    def query() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid(), pg_sleep(%s)", [seconds])
            return cursor.fetchone()[0]

    from asgiref.sync import sync_to_async  # noqa: PLC0415 - as tasks do

    return await sync_to_async(query)()


@task
async def use_async_orm(name: str) -> int:
    await Group.objects.acreate(name=name)
    return await Group.objects.filter(name=name).acount()


@task
async def fail_on_the_loop() -> None:
    raise ValueError("from a coroutine")


@task
async def stop_the_loop() -> str:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.05)
    return "went on"


@task
async def block_the_loop(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251, TID251 - what it must not do


@task
async def raise_base_on_the_loop(name: str) -> None:
    raise BASE[name]()


# --- files


@task(takes_context=True)
def note_in_file(context: JobContext, path: str, seconds: float, fails: bool = False) -> None:
    """Take a while, and note the beginning and the end in a file: for times without a database."""
    _append(path, f"began {context.job_id} {context.fencing_token}")
    pause(seconds)
    _append(path, f"ended {context.job_id} {context.fencing_token}")
    if fails:
        raise ValueError("failed after its time")


def _append(path: str, line: str) -> None:
    with open(path, "ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


@task
def read_version(path: str) -> str:
    """Return what a file says now."""
    return Path(path).read_text()


# --- what an attempt knows of those before it


@task(takes_context=True, backoff=Backoff(base=0.05, cap=0.05))
def tell_history(context: JobContext) -> dict[str, Any]:
    """Fail twice, then return what the context tells of the attempts before."""
    if context.attempt < 3:
        raise ValueError(f"attempt {context.attempt}")
    result = context.task_result
    errors = [error.traceback.splitlines()[-1] for error in result.errors]
    return {"attempts": result.attempts, "workers": result.worker_ids, "errors": errors}


# --- what needs no table of the tests: the queue may live anywhere


@task(takes_context=True)
def fail_once(context: JobContext, times: int = 1) -> int:
    if context.attempt <= times:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt


@task(takes_context=True, timeout=60.0, metadata={"team": "shop"}, backoff=Backoff(base=0.05, cap=0.05))
def show_context(context: JobContext, path: str) -> dict[str, Any]:
    """Write every attribute of the context to a file, then fail at first and report progress in the end."""
    shown = {
        name: getattr(context, name)
        for name in ("attempt", "job_id", "worker_id", "metadata", "idempotency_key", "fencing_token")
    } | {"is_cancelled": context.is_cancelled, "lease_lost": context.lease_lost, "left": context.deadline_in}
    _append(path, json.dumps(shown | {"result": context.task_result.id}))
    if context.attempt == 1:
        raise ValueError("once more")
    context.progress(3, 8, "pages")
    context.checkpoint()
    return shown
