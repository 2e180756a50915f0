"""What a command's ``--backend`` names."""

from django.conf import settings
from django.core.management.base import CommandError

from ..backend import PgQueueBackend
from ..compat import task_backends


def our_backend(alias: str) -> PgQueueBackend:
    """Return the backend of an alias; raises CommandError when it is not ours."""
    backend = task_backends[alias] if alias in (getattr(settings, "TASKS", None) or {}) else None
    if not isinstance(backend, PgQueueBackend):
        raise CommandError(f"--backend {alias!r} is not an alias of TASKS that uses PgQueueBackend.")
    return backend
