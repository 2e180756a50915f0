"""Turns a database URL into Django's DATABASES entry, by libpq's own reading of the URL."""

from __future__ import annotations

from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo


def django_database(url: str) -> dict[str, Any]:
    """Return the DATABASES entry for a `postgresql://` URL; query parameters become OPTIONS.

    Raises psycopg.ProgrammingError when libpq could not read the URL either.
    """
    given = conninfo_to_dict(url)
    named = {
        "NAME": given.pop("dbname", "postgres"),
        "USER": given.pop("user", ""),
        "PASSWORD": given.pop("password", ""),
        "HOST": given.pop("host", ""),
        "PORT": str(given.pop("port", "")),
    }
    return {"ENGINE": "django.db.backends.postgresql", **named, "OPTIONS": given}


def database_url(database: dict[str, Any]) -> str:
    """Return a connection string, accepted wherever a URL is, for a DATABASES entry."""
    keys = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    named = {key: database[name] for name, key in keys.items() if database.get(name)}
    return make_conninfo("", **named)
