"""A database router for projects whose queues live on other aliases than ``default``.

    DATABASE_ROUTERS = ["django_pgqueue.routers.QueueRouter"]

It sends the app's models and the admin to ``OPTIONS["database"]`` of the first alias in TASKS that uses this
backend, for reading too: a replica may not have a job yet.  The tables belong in the database of each.
"""

from typing import Any

from django.conf import settings

from .conf import BACKEND_PATH

APP = "django_pgqueue"


def queue_databases() -> list[str]:
    """Return the database aliases of our aliases in TASKS, in their order."""
    found = [
        (params.get("OPTIONS") or {}).get("database", "default")
        for params in (getattr(settings, "TASKS", None) or {}).values()
        if params.get("BACKEND") == BACKEND_PATH
    ]
    return found or ["default"]


class QueueRouter:
    """Routes ``django_pgqueue`` and leaves every other app alone."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        """Return the queue's database for its models."""
        return queue_databases()[0] if model._meta.app_label == APP else None

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        """Return the queue's database for its models."""
        return self.db_for_read(model)

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """Allow the app's tables on the queues' databases only."""
        return db in queue_databases() if app_label == APP else None
