"""Takes over the waiting rows of django-tasks-db: what ``manage.py pgqueue_import`` does.

A thousand rows at a time are read, stored as jobs and deleted on the other side, in one transaction: a row is
always on exactly one side, whatever interrupts.  Rows that somebody else has locked, such as an old worker
that is about to run them, are left alone.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db import connections, transaction

from . import enqueueing
from .backend import PgQueueBackend
from .resolving import bound_task, resolve_task
from .storable import dump_json

TABLE = "django_tasks_database_dbtaskresult"
BATCH = 1000
START = ("-infinity", "00000000-0000-0000-0000-000000000000")
ORIGIN = "django_tasks_db"
"""The key in a job's metadata under which the id and the time of the old row are kept."""

_COUNT = f"SELECT status, count(*) FROM {TABLE} WHERE backend_name = %s GROUP BY status"  # noqa: S608 - a constant
# "No run_after" is stored there as the year 9999.
_SELECT = f"""
SELECT id::text, enqueued_at::text, task_path, args_kwargs::text, queue_name, priority,
       CASE WHEN run_after < '9000-01-01' THEN run_after END
FROM {TABLE}
WHERE status = 'READY' AND backend_name = %s AND (enqueued_at, id) > (%s::timestamptz, %s::uuid)
ORDER BY enqueued_at, id
LIMIT %s
"""  # noqa: S608 - a constant
_LOCK = "FOR UPDATE SKIP LOCKED"
_DELETE = f"DELETE FROM {TABLE} WHERE id = ANY(%s::uuid[])"  # noqa: S608 - a constant


class Row(NamedTuple):
    """A waiting row of theirs; ``arguments`` is JSON text, ``enqueued_at`` and ``id`` are its place."""

    id: str
    enqueued_at: str
    task_path: str
    arguments: str
    queue: str
    priority: int
    run_after: Any


class Batch(NamedTuple):
    """What became of one batch: how many rows were taken over, and the others with their reasons."""

    taken: int
    refused: list[tuple[Row, str]]


def table_exists(backend: PgQueueBackend) -> bool:
    """Return whether the queue's database has the table of django-tasks-db."""
    connection = connections[backend.settings.database]
    with connection.cursor() as cursor:
        return TABLE in connection.introspection.table_names(cursor)


def count_rows(backend: PgQueueBackend, source: str) -> dict[str, int]:
    """Return the number of rows of their alias ``source`` by status."""
    with connections[backend.settings.database].cursor() as cursor:
        cursor.execute(_COUNT, [source])
        return dict(cursor.fetchall())


def take_over(backend: PgQueueBackend, source: str, *, dry_run: bool = False) -> Iterator[Batch]:
    """Take over the waiting rows of their alias ``source``, oldest first; yields after each transaction.

    A row that cannot be a job here (its task is not in this code, its queue not in QUEUES, its arguments do
    not fit the function) stays where it is.
    """
    place: tuple[str, str] = START
    while True:
        with transaction.atomic(using=backend.settings.database):
            rows = _read(backend, source, place, lock=not dry_run)
            batch = _move(backend, rows, dry_run=dry_run)
        if not rows:
            return
        place = (rows[-1].enqueued_at, rows[-1].id)
        yield batch


def _read(backend: PgQueueBackend, source: str, place: tuple[str, str], *, lock: bool) -> list[Row]:
    with connections[backend.settings.database].cursor() as cursor:
        cursor.execute(_SELECT + (_LOCK if lock else ""), [source, *place, BATCH])
        return [Row(*columns) for columns in cursor.fetchall()]


def _move(backend: PgQueueBackend, rows: list[Row], *, dry_run: bool) -> Batch:
    prepared, moved, refused = [], [], []
    for row in rows:
        try:
            prepared.append(_prepare(backend, row))
            moved.append(row.id)
        except Exception as error:  # noqa: BLE001 - a task's module may raise anything at its import
            refused.append((row, str(error)))
    if moved and not dry_run:
        enqueueing.insert(prepared, alias=backend.alias, database=backend.settings.database)
        with connections[backend.settings.database].cursor() as cursor:
            cursor.execute(_DELETE, [moved])
    return Batch(len(moved), refused)


def _prepare(backend: PgQueueBackend, row: Row) -> enqueueing.Prepared:
    given = json.loads(row.arguments)
    for name in ("args", "kwargs"):
        if name not in given:
            raise ValueError(f"its args_kwargs has no {name!r}")
    task = bound_task(resolve_task(row.task_path), backend.alias, row.queue, row.priority, row.run_after)
    prepared = enqueueing.prepare(task, given["args"], given["kwargs"], backend)
    origin = {ORIGIN: {"id": row.id, "enqueued_at": row.enqueued_at}}
    job = prepared.job._replace(metadata=dump_json(json.loads(prepared.job.metadata) | origin))
    # A task that was made unique meanwhile: two of its rows become one job.
    return prepared._replace(job=job, on_conflict="return")
