"""Transfers between accounts: the task that shows whether a job's effects in this database happen once.

Nothing in the task itself keeps a transfer from being made twice; only ``atomic=True`` does, by which its
writes and its completion commit together. ``CHAOS_LEDGER=plain`` leaves that away, to show what happens then.
"""

import os

from django.db import connection

from django_pgqueue import task
from django_pgqueue.context import JobContext

from . import recording, tables
from .tasks import PATIENT, recorded


@task(**PATIENT, atomic=os.environ.get(recording.LEDGER) != "plain")
def transfer(context: JobContext, tag: str, payer: int, payee: int, cents: int) -> str:
    """Move money; accounts are locked as they come, so that some transfers meet in a deadlock."""
    with recorded(context, tag) as value, connection.cursor() as cursor:
        for account, change in ((payer, -cents), (payee, cents)):
            cursor.execute(
                f"UPDATE {tables.ACCOUNTS} SET balance = balance + %s WHERE id = %s", [change, account]
            )
        cursor.execute(f"INSERT INTO {tables.TRANSFERS} (tag, cents) VALUES (%s, %s)", [tag, cents])
        return value
