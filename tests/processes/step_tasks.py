"""Tasks of several steps: a payment at a bank that takes an idempotency key, and ways to die around it."""

import json
import os
import signal
import urllib.request
from typing import Any

from django.contrib.auth.models import Group
from django.db import connection, transaction

from django_pgqueue import task
from django_pgqueue.execution import JobContext

from .executions import begin, pause


@task(takes_context=True, max_attempts=5)
def check_out(context: JobContext, url: str, order: int, die: str = "") -> list[Any]:
    """Charge and ship, each once; ``die`` says where the first attempt is killed."""
    begin(context)
    deadly = die if context.attempt == 1 else ""
    charge = context.step("charge", ask, url, "charge", order, context.idempotency_key, deadly)
    if deadly == "after the record":
        os.kill(os.getpid(), signal.SIGKILL)
    parcel = context.step("ship", ask, url, "ship", order, context.idempotency_key)
    return [charge, parcel]


def ask(url: str, what: str, order: int, key: str, die: str = "") -> int:
    """Ask the bank, which does one thing for one key."""
    request = urllib.request.Request(
        f"{url}/{what}",
        data=json.dumps({"order": order}).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": f"{key}-{what}"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        done = json.load(answer)["id"]
    if die == "before the record":
        os.kill(os.getpid(), signal.SIGKILL)
    if die == "without a connection":
        cut_off_steps()
    return done


def cut_off_steps() -> None:
    """End the session that records steps, as a restart of the database does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'django_pgqueue steps%%'"
        )
        assert cursor.fetchall(), "no session records steps"


@task(takes_context=True, max_attempts=2)
def roll_back(context: JobContext, url: str) -> int:
    """Charge inside a transaction that is rolled back at first."""
    with transaction.atomic():
        Group.objects.create(name=f"order {context.job_id} {context.attempt}")
        charge = context.step("charge", ask, url, "charge", 1, context.idempotency_key)
        if context.attempt == 1:
            raise OSError("the warehouse does not answer")
        return charge


@task(takes_context=True, max_attempts=3)
def lose_the_lease(context: JobContext, url: str) -> int:
    """Wait inside a step until somebody else has the job."""

    def slowly() -> int:
        done = ask(url, "charge", 1, context.idempotency_key)
        while context.attempt == 1 and not context.lease_lost:
            pause(0.05)
        return done

    begin(context)
    return context.step("charge", slowly)


@task(takes_context=True, max_attempts=3)
async def in_a_coroutine(context: JobContext, url: str) -> list[int]:
    """Charge and ship on the loop, and fail once in between."""
    charge = await context.astep("charge", ask, url, "charge", 1, context.idempotency_key)
    if context.attempt == 1:
        raise OSError("the warehouse does not answer")
    return [charge, await context.astep("ship", ask, url, "ship", 1, context.idempotency_key)]
