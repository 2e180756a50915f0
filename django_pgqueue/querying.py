"""How the verbs talk to a connection: execute a statement, in pieces, in a transaction, with cheap arrays."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any
from uuid import UUID

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction

Connection = Any
"""A Django ``DatabaseWrapper`` or a ``psycopg.Connection``."""
ROWS_PER_STATEMENT = 1000


def run(connection: Connection, statement: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Execute a statement of ``sql`` and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def queue_connection(alias: str) -> Any:
    """Return this thread's Django connection of an alias.

    Raises ImproperlyConfigured when there is no such alias and when it is not PostgreSQL.
    """
    if alias not in connections.settings:
        raise ImproperlyConfigured(
            f"The queue's database {alias!r} is not in DATABASES. Correct OPTIONS['database'] in TASKS."
        )
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise ImproperlyConfigured(
            f"The queue's database {alias!r} is {connection.vendor}; django_pgqueue needs PostgreSQL. Name a "
            "PostgreSQL alias in OPTIONS['database'] of TASKS and in a router, or use another backend here, "
            "such as the Immediate one in tests."
        )
    return connection


def savepoint(connection: Connection) -> AbstractContextManager[Any]:
    """Return a transaction of the connection, or a savepoint in the one that it has."""
    if isinstance(connection, psycopg.Connection):
        return connection.transaction()
    atomic: AbstractContextManager[Any] = transaction.atomic(using=connection.alias)
    return atomic


def plain_ids(job_ids: Iterable[int | str]) -> list[int]:
    """Return ids as sorted whole numbers, each once; the id of a TaskResult is a string.

    Raises ValueError for what is no job id, before any SQL.
    """
    try:
        return sorted({int(job_id) for job_id in job_ids})
    except (TypeError, ValueError):
        raise ValueError(f"job ids are whole numbers or the ids of results, not {job_ids!r}") from None


def chunks(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    """Yield slices of at most ``size`` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def array(values: Sequence[Any]) -> str:
    """Return an array parameter as a literal, which is far cheaper than a list.

    psycopg dumps a list element by element in Python; a batch has thousands of elements.
    """
    return "{" + ",".join([_ELEMENT_OF.get(type(value), _quoted)(value) for value in values]) + "}"


def _quoted(value: Any) -> str:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@lru_cache(maxsize=64)
def _token(value: UUID) -> str:
    return str(value)


_ELEMENT_OF: dict[type, Callable[[Any], str]] = {
    type(None): lambda value: "NULL",
    int: int.__repr__,
    float: float.__repr__,
    UUID: _token,
}
