"""Keeps the outside world's journal in a database of its own."""

from typing import Any

from django.db.models import Model

APP = DATABASE = "outside"


class OutsideRouter:
    """Sends the models of the app ``outside`` to the database ``outside`` and all others elsewhere."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        """Return the journal's database for the journal's models."""
        return DATABASE if model._meta.app_label == APP else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        """Allow the journal's tables in its database only, and nothing else there."""
        return (db == DATABASE) == (app_label == APP)
