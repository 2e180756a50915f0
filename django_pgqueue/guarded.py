"""Rows that Django's own ways cannot change: the models' base, and the query set of their managers.

A job is three rows without foreign keys between them, and workers hold fences on one of them: only the verbs
keep them together.  What must stay possible goes past these classes: a fixture is loaded by
``save_base(raw=True)``, a test's flush truncates the tables, and a migration sees models without managers.
"""

from typing import Any, NoReturn

from django.db import models

from .exceptions import DirectWrite

_ADVICE = {
    "insert": "task.enqueue(...) makes a job",
    "update": "Job.objects.cancel, retry and promote_now, with a list of job ids, change jobs",
    "delete": "Job.objects.prune(status, age=seconds, limit=number) deletes jobs that have ended, with all "
    "their rows; Job.objects.cancel([ids]) ends others first",
}


def refuse(model: type[models.Model], attempted: str, kind: str) -> NoReturn:
    """Raise DirectWrite; ``kind`` is insert, update or delete."""
    raise DirectWrite(
        f"{model.__name__}: {attempted} would leave the rows of a job inconsistent. {_ADVICE[kind]}."
    )


class GuardedQuerySet(models.QuerySet[Any]):
    """Reads only; every method that writes raises DirectWrite.  The async ones call these."""

    def create(self, **kwargs: Any) -> NoReturn:
        """Raise DirectWrite."""
        refuse(self.model, "create()", "insert")

    def get_or_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise DirectWrite."""
        refuse(self.model, "get_or_create()", "insert")

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise DirectWrite."""
        refuse(self.model, "bulk_create()", "insert")

    def update_or_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise DirectWrite."""
        refuse(self.model, "update_or_create()", "update")

    def update(self, **kwargs: Any) -> NoReturn:
        """Raise DirectWrite."""
        refuse(self.model, "update()", "update")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise DirectWrite."""
        refuse(self.model, "bulk_update()", "update")

    def delete(self) -> NoReturn:
        """Raise DirectWrite."""
        refuse(self.model, "delete()", "delete")

    # As Django's own: never to be called by a template; delete() neither through a manager.
    update.alters_data = delete.alters_data = True  # type: ignore[attr-defined]  # of a function
    delete.queryset_only = True  # type: ignore[attr-defined]  # of a function


class GuardedManager(models.Manager[Any]):
    """The manager of the models that have no verbs of their own."""

    _queryset_class = GuardedQuerySet  # what from_queryset() sets, in a form that has a type


class GuardedModel(models.Model):
    """The base of the queue's models."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise DirectWrite."""
        refuse(type(self), "save()", "insert" if self._state.adding else "update")

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise DirectWrite."""
        refuse(type(self), "delete()", "delete")

    save.alters_data = delete.alters_data = True  # type: ignore[attr-defined]  # of a function
