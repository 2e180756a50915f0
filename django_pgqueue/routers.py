"""A database router for projects whose queue lives on another alias than ``default``.

    DATABASE_ROUTERS = ["django_pgqueue.routers.QueueRouter"]

It sends the app's models, their migrations and the admin to ``OPTIONS["database"]`` of the first alias
in TASKS that uses this backend, for reading too: a replica may not have a job yet.
"""

from typing import Any

from django.conf import settings

from .conf import BACKEND_PATH

APP = "django_pgqueue"


def queue_database() -> str:
    """Return the database alias of the first of our aliases in TASKS."""
    for params in (getattr(settings, "TASKS", None) or {}).values():
        if params.get("BACKEND") == BACKEND_PATH:
            database: str = (params.get("OPTIONS") or {}).get("database", "default")
            return database
    return "default"


class QueueRouter:
    """Routes ``django_pgqueue`` and leaves every other app alone."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        """Return the queue's database for its models."""
        return queue_database() if model._meta.app_label == APP else None

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        """Return the queue's database for its models."""
        return self.db_for_read(model)

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """Allow the app's tables on the queue's database only."""
        return db == queue_database() if app_label == APP else None
