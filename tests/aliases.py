"""What tests of the backend and of its results share: an alias with other parameters, and counting jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.test import override_settings

from django_pgqueue.compat import task_backends
from django_pgqueue.models import Job

BACKEND = "django_pgqueue.backend.PgQueueBackend"


@contextmanager
def alias(**params: Any) -> Iterator[Any]:
    """Give ``default`` other parameters, and return its backend."""
    with override_settings(
        TASKS={"default": {"BACKEND": BACKEND, "QUEUES": ["default", "emails"], **params}}
    ):
        yield task_backends["default"]


def jobs() -> int:
    return Job.objects.count()
