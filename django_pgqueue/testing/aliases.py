"""From an alias of ``TASKS`` to what the test kit needs of it."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from ..backend import PgQueueBackend
from ..compat import task_backends


def queue_backend(alias: str) -> PgQueueBackend:
    """Return the backend of an alias; raises ImproperlyConfigured when it is another one."""
    backend = task_backends[alias]
    if isinstance(backend, PgQueueBackend):
        return backend
    path = f"{type(backend).__module__}.{type(backend).__qualname__}"
    raise ImproperlyConfigured(
        f"TASKS[{alias!r}] is {path}, which keeps no jobs in the database. The test kit works with "
        "django_pgqueue.backend.PgQueueBackend: name it in the settings of the tests, or pass backend=."
    )


def connection_of(backend: PgQueueBackend) -> Any:
    """Return this thread's Django connection to the backend's database."""
    return connections[backend.settings.database]


def queues_of(backend: PgQueueBackend, chosen: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the queues to serve, in order; empty for any.

    Raises ValueError for a queue that the alias does not have.
    """
    declared = tuple(settings.TASKS[backend.alias].get("QUEUES", ["default"]))
    if chosen is None:
        return declared
    names = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    unknown = [name for name in names if declared and name not in declared]
    if unknown or not names:
        raise ValueError(
            f"TASKS[{backend.alias!r}] has no queue {', '.join(map(repr, unknown)) or 'in an empty list'}; "
            f"it has {', '.join(map(repr, declared)) or 'any other name'}."
        )
    return names
