"""What the workers run under faults. Each call writes down its beginning, its end and a value of its own.

The first argument of every task is its job's tag. ``KINDS`` says what must become of each.
"""

import ctypes
import fcntl
import os
import random
import signal
import threading
import time
from asyncio import sleep
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import IntegrityError, connection, transaction

from django_pgqueue import Backoff, task
from django_pgqueue.context import JobContext

from . import recording, tables
from .history import RAISED, RETURNED, Kind

PATIENT = {
    "takes_context": True,
    "max_attempts": 100,
    "backoff": Backoff(base=0.05, cap=0.5),
    "timeout": 15.0,  # a connection of the task itself may be one that a firewall has forgotten
}
DOOMED_ATTEMPTS = 3
KINDS = {
    "plain": Kind(),
    "failing": Kind(),
    "coroutine": Kind(),
    "long": Kind(),
    "store": Kind(),
    "effect": Kind(has_effect=True),
    "doomed": Kind("dead", budget=DOOMED_ATTEMPTS),
    "gil": Kind(),
    "memory": Kind(),
    "probe": Kind(),
    "transfer": Kind(has_effect=True, atomic=True),
}


@contextmanager
def recorded(context: JobContext, tag: str) -> Iterator[str]:
    """Record a call; gives the value that it shall return."""
    version = context.fencing_token
    value = f"{tag}:{version}:{os.getpid()}:{time.monotonic_ns()}"
    recording.write(recording.BEGAN, tag, context.job_id, version, context.attempt, value)
    try:
        yield value
    except BaseException:
        recording.write(recording.ENDED, context.job_id, version, RAISED, value)
        raise
    recording.write(recording.ENDED, context.job_id, version, RETURNED, value)


@task(**PATIENT)
def plain(context: JobContext, tag: str, seconds: float) -> str:
    """Take some milliseconds."""
    with recorded(context, tag) as value:
        threading.Event().wait(seconds)
        return value


@task(**PATIENT)
def failing(context: JobContext, tag: str, times: int) -> str:
    """Fail at first."""
    with recorded(context, tag) as value:
        if context.attempt <= times:
            raise ValueError(f"attempt {context.attempt} of {tag}")
        return value


@task(**PATIENT | {"max_attempts": DOOMED_ATTEMPTS})
def doomed(context: JobContext, tag: str) -> str:
    """Fail until the budget is spent."""
    with recorded(context, tag):
        raise ValueError(f"{tag} cannot work")


@task(**PATIENT)
async def coroutine(context: JobContext, tag: str, seconds: float) -> str:
    """Take some milliseconds on the loop."""
    with recorded(context, tag) as value:
        await sleep(seconds)
        return value


@task(**PATIENT)
def long(context: JobContext, tag: str, seconds: float) -> str:
    """Take a part of a lease, so that faults find it in the middle."""
    with recorded(context, tag) as value:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            threading.Event().wait(0.05)
        return value


@task(**PATIENT)
def effect(context: JobContext, tag: str) -> str:
    """Have an effect in the database once, whatever the queue does: by a row of its own under the key."""
    with recorded(context, tag) as value:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(
                    f"INSERT INTO {tables.EFFECTS} (key, tag) VALUES (%s, %s)", [context.idempotency_key, tag]
                )
        except IntegrityError:
            pass  # an earlier attempt has done it
        return value


@task(**PATIENT)
def store(context: JobContext, tag: str, seconds: float) -> str:
    """Write to a store that refuses older fencing tokens, at the beginning and after a while."""
    with recorded(context, tag) as value:
        offer(tag, context.fencing_token)
        threading.Event().wait(seconds)
        offer(tag, context.fencing_token)
        return value


def offer(tag: str, token: int) -> bool:
    """Write to the store, a file under a lock; False when it has seen a later token."""
    path = Path(os.environ[recording.VARIABLE]) / f"{tag}.store"
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if max((int(line.split()[0]) for line in file), default=0) > token:
            return False
        file.write(f"{token} {os.getpid()}\n")
        return True


@task(**PATIENT)
def gil(context: JobContext, tag: str, seconds: float) -> str:
    """Hold the interpreter in one call of C, so that no other thread of this process runs."""
    with recorded(context, tag) as value:
        ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
        return value


@task(**PATIENT)
def memory(context: JobContext, tag: str) -> str:
    """At the first attempt be killed for using up memory, as the kernel does it: without a word."""
    with recorded(context, tag) as value:
        if context.attempt == 1:
            hoard = [random.randbytes(1_000_000) for _ in range(32)]
            recording.write(recording.DIES, tag, len(hoard))
            os.kill(os.getpid(), signal.SIGKILL)
        return value


@task(**PATIENT)
def probe(context: JobContext, tag: str) -> str:
    """Show that a worker works; each has a queue of its own for it."""
    with recorded(context, tag) as value:
        return value
