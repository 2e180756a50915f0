"""The record of executions: a row in a table of its own for every call of a task that asks for it.

The row is committed before the task goes on, so that a task that kills its process leaves one too.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from django_pgqueue.context import JobContext

NAME = "tests_execution"
TABLE = f"""
CREATE TABLE IF NOT EXISTS {NAME} (
    id bigserial PRIMARY KEY, job_id bigint NOT NULL, lease_version bigint NOT NULL, attempt int NOT NULL,
    pid int NOT NULL, began float8 NOT NULL, ended float8, note text NOT NULL DEFAULT ''
)
"""


def begin(context: JobContext, note: str = "") -> int:
    """Write down that the task was called; return the row's id."""
    values = [context.job_id, context.fencing_token, context.attempt, os.getpid(), time.monotonic(), note]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {NAME} (job_id, lease_version, attempt, pid, began, note)"
            " VALUES (%s, %s, %s, %s, %s, %s) RETURNING id",
            values,
        )
        return cursor.fetchone()[0]


def end(row: int, note: str | None = None) -> None:
    """Write down that the task comes to its end."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {NAME} SET ended = %s, note = coalesce(%s, note) WHERE id = %s",
            [time.monotonic(), note, row],
        )


@contextmanager
def recorded(context: JobContext, note: str = "") -> Iterator[int]:
    """Record a call from its beginning to its end, by return or by error."""
    row = begin(context, note)
    try:
        yield row
    finally:
        end(row)


def pause(seconds: float) -> None:
    """Take time, in one wait that no timeout can interrupt."""
    threading.Event().wait(seconds)
