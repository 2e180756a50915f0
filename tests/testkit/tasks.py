"""Tasks for the tests of the test kit; ``done`` says what they did in this process."""

import asyncio
import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import close_old_connections, connection, connections, transaction

from django_pgqueue import Backoff, Cancel, Retry, Snooze, task

done: list[Any] = []


class Refused(Exception):
    """An error of a task."""


@task
def note(value: Any) -> Any:
    done.append(value)
    return value


@task(queue_name="emails", priority=5)
def mail(address: str, note: Any = None) -> str:
    done.append(address)
    return f"sent to {address}"


@task(max_attempts=3, backoff=Backoff(base=60.0, cap=600.0))
def fail(message: str = "no") -> None:
    raise Refused(message)


@task(max_attempts=2, backoff=Backoff(base=0.0, cap=0.0))
def fail_at_once() -> None:
    raise Refused("at once")


@task(max_attempts=3, backoff=Backoff(base=60.0, cap=600.0), takes_context=True)
def recover(context: Any) -> int:
    if context.attempt < 2:
        raise Refused("the first time")
    return context.attempt


@task(max_attempts=2, backoff=Backoff(base=60.0, cap=60.0), takes_context=True)
def fail_with_its_key(context: Any) -> None:
    done.append(context.idempotency_key)
    raise Refused("again")


@task
def put_off(delay: float) -> None:
    raise Snooze(delay)


@task
def give_up(reason: str) -> None:
    raise Cancel(reason)


@task
def try_again(delay: float) -> None:
    raise Retry(delay=delay)


@task(discard_on=(Refused,))
def discard() -> None:
    raise Refused("for good")


@task
def unstorable() -> object:
    return object()


@task
def raise_system_exit() -> None:
    raise SystemExit(3)


@task
def interrupt() -> None:
    raise KeyboardInterrupt


# --- enqueueing tasks


@task
def chain(left: int) -> None:
    done.append(left)
    if left:
        chain.enqueue(left - 1)


@task
def for_ever() -> None:
    for_ever.enqueue()


@task
def after_commit(value: Any, *, fails: bool = False) -> None:
    with transaction.atomic():
        transaction.on_commit(lambda: note.enqueue(value))
    if fails:
        raise Refused("after the commit")


@task
def after_no_commit(value: Any) -> None:
    try:
        with transaction.atomic():
            transaction.on_commit(lambda: note.enqueue(value))
            raise Refused
    except Refused:
        return


@task
def bad_hook() -> None:
    transaction.on_commit(_refuse)


def _refuse() -> None:
    raise Refused("in a hook")


# --- tasks and their database connection


@task
def add_group(name: str, *, fails: bool = False) -> str:
    Group.objects.create(name=name)
    if fails:
        raise Refused("after a write")
    return name


@task
def break_transaction(name: str) -> None:
    Group.objects.create(name=name)
    Group.objects.create(name=name)


@task
def break_transaction_and_return() -> str:
    with connection.connection.cursor() as cursor:
        try:
            cursor.execute("SELECT 1 / 0")
        except Exception:  # noqa: BLE001 - as some tasks do
            return "hidden"
    return "nothing was broken"


@task
def close_connections() -> int:
    close_old_connections()
    connection.close()
    connections.close_all()
    return Group.objects.count()


@task
def durable(name: str) -> None:
    with transaction.atomic(durable=True):
        Group.objects.create(name=name)


@task
def leave_block_open(name: str) -> None:
    transaction.atomic().__enter__()
    Group.objects.create(name=name)


# --- coroutines


@task
async def coroutine(name: str) -> int:
    await asyncio.sleep(0)
    await Group.objects.acreate(name=name)
    await note.aenqueue(name)
    return await Group.objects.acount()


@task
async def failing_coroutine(kind: str) -> None:
    await asyncio.sleep(0)
    raise {"refused": Refused, "exit": SystemExit, "cancelled": asyncio.CancelledError}[kind]()


@task(takes_context=True)
async def reporting_coroutine(context: Any) -> bool:
    context.progress(1, 2, "half")
    return context.is_cancelled


# --- the context


@task(takes_context=True, timeout=60.0, metadata={"team": "orders"})
def look_at_context(context: Any) -> list[Any]:
    context.progress(1, 2, "half")
    return [context.attempt, context.job_id, context.metadata, 0 < context.deadline_in <= 60]


@task(takes_context=True)
def work(context: Any) -> int:
    for step in range(3):
        context.checkpoint()
        do_step(step)
    return 3


def do_step(step: int) -> None:
    done.append(step)


# --- crashes


@task(max_attempts=3, backoff=Backoff(base=60.0, cap=60.0))
def pay(name: str) -> str:
    with transaction.atomic():
        Group.objects.create(name=f"{name} reserved")
        Bank.charge(name)
        Bank.confirm(name)
    Group.objects.create(name=f"{name} paid")
    return "paid"


@task(max_attempts=3, backoff=Backoff(base=60.0, cap=60.0))
async def pay_later(name: str) -> str:
    await acharge(name)
    return "paid"


async def acharge(name: str) -> None:
    done.append(f"charged {name}")


@task
def swallow() -> str:
    try:
        do_step(1)
    except BaseException:  # noqa: BLE001 - as some tasks do
        return "swallowed"
    return "not asked"


class Bank:
    """Effects outside the database."""

    @staticmethod
    def charge(name: str) -> None:
        done.append(f"charged {name}")

    @classmethod
    def confirm(cls, name: str) -> None:
        done.append(f"confirmed {name} at {cls.__name__}")


# --- for real workers


@task
def sleep(seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", [seconds])


@task
def write_and_wait(name: str, seconds: float) -> None:
    with transaction.atomic():
        Group.objects.create(name=name)
        time.sleep(seconds)  # noqa: TID251 - a task that takes time


@task
def at(hours: float) -> str:
    return str(timedelta(hours=hours))


@task
def show_settings(*names: str) -> list[Any]:
    return [getattr(settings, name) for name in names]
