"""The server, and a database of its own for every measurement: nothing else's tables are ever touched.

A database full of jobs is made once, as a template, and copied for each run, so that all runs of a contender
begin with the same files, vacuumed and analysed, and right after a checkpoint.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from devtools.postgres import server

PREFIX = "pgqueue_bench_"
BIG = 64 * 1024**2
"""Bytes from which on copying files is quicker than writing the copy through the log."""


class Databases:
    """Makes, copies and drops databases on one server. ``postmaster`` is its process, if it is our own."""

    def __init__(self, url: str, postmaster: int | None = None) -> None:
        self._url = url
        self.postmaster = postmaster
        self._admin = psycopg.connect(url, autocommit=True)
        self._made: set[str] = set()
        # The names are fixed, so that what a killed run left behind is dropped by the next.
        if not self._one("SELECT pg_try_advisory_lock(hashtext(%s))", PREFIX):
            raise SystemExit("Other benchmarks run on this server: two at a time would measure each other.")

    @property
    def admin(self) -> psycopg.Connection[Any]:
        """A session on the server's own database."""
        return self._admin

    def url(self, name: str) -> str:
        """Return the address of a database."""
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{PREFIX}{name}"))

    def connect(self, name: str) -> psycopg.Connection[Any]:
        """Open a session, in autocommit."""
        return psycopg.connect(self.url(name), autocommit=True, application_name="benchmarks")

    def template(self, name: str, fill: Callable[[str], None]) -> str:
        """Return a template, made when first asked for: ``fill`` gets the address of the empty database."""
        if name not in self._made:
            self._create(name)
            fill(self.url(name))
            with self.connect(name) as connection:
                connection.execute("VACUUM ANALYZE")
        return name

    def copy(self, template: str, name: str) -> str:
        """Make a database anew from a template; return its address."""
        self._disconnect(template)
        strategy = "FILE_COPY" if self._size(template) > BIG else "WAL_LOG"
        self._create(name, f"TEMPLATE {PREFIX}{template} STRATEGY {strategy}")
        self._admin.execute("CHECKPOINT")
        return self.url(name)

    def drop(self, name: str) -> None:
        """Drop a database, whoever is connected."""
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        self._admin.execute(statement.format(sql.Identifier(PREFIX + name)))
        self._made.discard(name)

    def close(self) -> None:
        """Drop everything that was made here."""
        for name in sorted(self._made):
            self.drop(name)
        self._admin.close()

    def _create(self, name: str, how: str = "") -> None:
        self.drop(name)
        statement = sql.SQL("CREATE DATABASE {} {}")
        self._admin.execute(statement.format(sql.Identifier(PREFIX + name), sql.SQL(how)))
        self._made.add(name)

    def _disconnect(self, name: str) -> None:
        query = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"
        self._admin.execute(query, [PREFIX + name])

    def _size(self, name: str) -> int:
        return int(self._one("SELECT pg_database_size(%s)", PREFIX + name))

    def _one(self, query: str, parameter: str) -> Any:
        row = self._admin.execute(query, [parameter]).fetchone()
        return row[0] if row else None


@contextmanager
def databases() -> Iterator[Databases]:
    """Use the server that DATABASE_URL names, or a durable embedded one that ends with this."""
    given = os.environ.get("DATABASE_URL")
    if given:
        yield from _on(given, None)
        return
    with server({"max_connections": 200, "shared_buffers": "1GB", "max_wal_size": "4GB"}) as embedded:
        yield from _on(embedded.url, embedded.pid)


def _on(url: str, postmaster: int | None) -> Iterator[Databases]:
    made = Databases(url, postmaster)
    try:
        yield made
    finally:
        made.close()
