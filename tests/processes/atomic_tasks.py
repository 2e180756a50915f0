"""Atomic tasks: transfers between accounts, and ways to end in the middle of one."""

import os
import signal
from typing import Any

from django.contrib.auth.models import Group
from django.db import connection, transaction

from django_pgqueue import task
from django_pgqueue.execution import JobContext

from . import tasks
from .executions import pause


def write(statement: str, *values: Any) -> Any:
    """Run a statement on the task's own connection."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone() if cursor.description else None


@task(atomic=True, takes_context=True, max_attempts=50)
def transfer(context: JobContext, source: int, target: int, amount: int, seconds: float = 0.0) -> int:
    """Move an amount, and say so in the ledger; nothing but the transaction keeps it from happening twice."""
    write("UPDATE tests_account SET balance = balance - %s WHERE id = %s", amount, source)
    if seconds:
        pause(seconds)
    write("UPDATE tests_account SET balance = balance + %s WHERE id = %s", amount, target)
    write("INSERT INTO tests_ledger (job_id, amount) VALUES (%s, %s)", context.job_id, amount)
    return amount


@task(atomic=True, takes_context=True, max_attempts=5)
def slow(context: JobContext, seconds: float) -> str:
    """Write, and take longer than several heartbeats."""
    Group.objects.create(name=f"slow {context.job_id} {context.attempt}")
    pause(seconds)
    return "done"


@task(atomic=True, takes_context=True, max_attempts=1)
def write_and_loop(context: JobContext, seconds: float) -> None:
    """Write, and take longer than is allowed."""
    Group.objects.create(name=f"loop {context.job_id}")
    for _ in range(int(seconds / 0.02)):
        pause(0.02)


@task(atomic=True, takes_context=True, max_attempts=5)
def die(context: JobContext, where: str) -> str:
    """Be killed in the first attempt: before the end, or right after the commit."""
    Group.objects.create(name=f"die {context.job_id} {context.attempt}")
    tasks.ok.enqueue()
    if context.attempt == 1 and where == "inside":
        os.kill(os.getpid(), signal.SIGKILL)
    if context.attempt == 1 and where == "after the commit":
        transaction.on_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))
    return "done"


@task(atomic=True, takes_context=True, max_attempts=5)
def wait_until_lost(context: JobContext) -> int:
    """Write, and go on until somebody else has the job; the next attempt just writes."""
    Group.objects.create(name=f"lost {context.job_id} {context.attempt}")
    begun_elsewhere(context)
    while context.attempt == 1 and not context.lease_lost:
        pause(0.05)
    return context.attempt


def begun_elsewhere(context: JobContext) -> None:
    """Say on another connection that the task runs: what is said on its own one is rolled back."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("INSERT INTO tests_begun (job_id) VALUES (%s)", [context.job_id])
    finally:
        other.close()


@task(atomic=True, takes_context=True, max_attempts=2)
def compute(context: JobContext, seconds: float, lifted: str = "", busy: bool = False) -> str:
    """Write, and compute for a while: between two statements, or in one; perhaps with a limit lifted."""
    if lifted:
        write(f"SET LOCAL {lifted} = 0")
    Group.objects.create(name=f"compute {context.job_id} {context.attempt}")
    if busy:
        write("SELECT pg_sleep(%s)", seconds)
    else:
        pause(seconds)
    return "done"
