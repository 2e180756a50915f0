"""Columns that Django has no field for: ``json``, and arrays of whole numbers.

The ``json`` column keeps JSON as it was written.

``jsonb`` turns 1e23 into an integer, -0.0 into 0.0 and reorders keys; a job's arguments must reach
the task as they were handed in, and nothing here searches inside them.
"""

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    _Field = models.Field[Any, Any]
else:  # not generic at run time
    _Field = models.Field


class JSONTextField(models.JSONField):
    """A JSONField stored in PostgreSQL's ``json`` type."""

    def db_type(self, connection: Any) -> str:
        """Return the column type."""
        return "json"

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the value as psycopg parsed it."""
        # psycopg has parsed a json column already; Django's own field expects jsonb, which comes as text.
        return value


class CountsField(_Field):
    """Whole numbers in one column, ``bigint[]``; written and read by statements of ``sql`` only."""

    def db_type(self, connection: Any) -> str:
        """Return the column type."""
        return "bigint[]"
