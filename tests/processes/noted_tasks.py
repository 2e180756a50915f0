"""Tasks that log, ask the database and enqueue: what is noted of them is looked at from outside."""

import asyncio
import logging
import os
import resource
import signal
import threading
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection, transaction

from django_pgqueue import Cancel, Snooze, enqueue_many, task
from django_pgqueue.context import JobContext

from .executions import begin, pause
from .tasks import ok

logger = logging.getLogger("tests.noted")


def _fail() -> None:
    raise ValueError("failed as asked")


def _snooze() -> None:
    raise Snooze(3600.0)


def _cancel() -> None:
    raise Cancel("as asked")


ENDS: dict[str, Callable[[], None]] = {
    "succeeded": lambda: None,
    "failed": _fail,
    "snoozed": _snooze,
    "cancelled": _cancel,
    "lost": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


@task(takes_context=True)
def say(context: JobContext, end: str) -> None:
    """Log a line, and end as asked."""
    logger.info("job %d will have %s", context.job_id, end)
    ENDS[end]()


@task(takes_context=True, atomic=True)
def say_atomically(context: JobContext, end: str) -> None:
    """Log a line, write, and end as asked."""
    logger.info("job %d will have %s", context.job_id, end)
    Group.objects.create(name=f"noted {context.job_id}")
    ENDS[end]()


@task(takes_context=True)
async def say_in_a_coroutine(context: JobContext, end: str) -> None:
    """Log a line, and end as asked."""
    logger.info("job %d will have %s", context.job_id, end)
    await asyncio.sleep(0)
    ENDS[end]()


@task(takes_context=True)
def say_and_wait(context: JobContext, seconds: float) -> None:
    """Log a line, and take a while in which a time limit can reach it."""
    logger.info("job %d waits", context.job_id)
    begin(context)
    for _ in range(int(seconds / 0.01)):
        pause(0.01)


LINES = 30


@task(takes_context=True)
def say_much(context: JobContext) -> None:
    """Log lines with pauses, so that others log meanwhile."""
    for number in range(LINES):
        logger.info("job %d line %d", context.job_id, number)
        pause(0.002)


@task(takes_context=True)
async def say_much_in_a_coroutine(context: JobContext) -> None:
    """Log lines with pauses: here, in tasks of the loop, and in threads that Django lends."""
    for number in range(LINES):
        if number % 3 == 0:
            logger.info("job %d line %d", context.job_id, number)
        elif number % 3 == 1:
            await sync_to_async(logger.info)("job %d line %d", context.job_id, number)
        else:
            await asyncio.create_task(_say(context.job_id, number))
        await asyncio.sleep(0.002)


async def _say(job_id: int, number: int) -> None:
    logger.info("job %d line %d", job_id, number)


@task
def say_in_a_thread() -> None:
    """Log from a thread that only this task knows of."""
    thread = threading.Thread(target=logger.error, args=("from a thread",))
    thread.start()
    thread.join()


@task
def flood(lines: int, length: int) -> int:
    """Log far too much; return the megabytes that the process has grown by."""
    text = "x" * length
    logger.info(text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(lines):
        logger.info("%d %s", number, text)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024


# --- SQL


@task
def ask(times: int) -> None:
    """Ask the database so many times."""
    for _ in range(times):
        Group.objects.count()


@task(atomic=True)
def ask_atomically(times: int) -> None:
    """Ask the database so many times, inside the transaction that completes the job."""
    for _ in range(times):
        Group.objects.count()


@task
async def ask_in_a_coroutine(times: int) -> None:
    """Ask the database so many times, from the event loop."""
    for _ in range(times):
        await Group.objects.acount()


@task
def ask_slowly(seconds: float) -> None:
    """Have the database take its time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", [seconds])


# --- children


@task
def enqueue_here(way: str) -> None:
    """Enqueue one job or two, in one of the ways that there are."""
    WAYS[way]()


@task(atomic=True)
def enqueue_here_atomically() -> None:
    """Enqueue a job in the transaction that completes this one."""
    ok.enqueue()


@task
async def enqueue_in_a_coroutine() -> None:
    """Enqueue a job from the event loop, and one from a thread that Django lends."""
    await ok.aenqueue()
    await sync_to_async(ok.enqueue)()


def _after_commit() -> None:
    with transaction.atomic():
        transaction.on_commit(lambda: ok.enqueue() and None)


def _in_a_thread() -> None:
    def enqueue() -> None:
        try:
            ok.enqueue()
        finally:
            connection.close()

    thread = threading.Thread(target=enqueue)
    thread.start()
    thread.join()


WAYS: dict[str, Callable[[], Any]] = {
    "enqueue": ok.enqueue,
    "enqueue_many": lambda: enqueue_many([ok.bind(1), ok.bind(2)]),
    "unique": ok.using(unique_key="noted").enqueue,
    "after the commit": _after_commit,
    "in a thread of its own": _in_a_thread,
}
