"""The queue's own connections: private to a process, persistent, prepared, READ COMMITTED.

The queue's SQL never runs on the connection of a task, which the task may close, break or leave in
a transaction.  A private connection is made from Django's parameters (the role too), ends
no worker when it breaks, and cannot hang for ever: a watchdog shuts its socket down.
"""

import logging
import os
import random
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg
import psycopg.sql
from django.db import connections
from psycopg import errors

from . import sql
from .events import log

STATEMENT_TIMEOUT = 10.0
"""Seconds: no statement of the queue may take longer."""
LOCK_TIMEOUT = 2.0
IDLE_TIMEOUT = 5.0
"""Seconds for which a worker that froze, or whose machine died, in a transaction may hold its locks."""
STUCK_AFTER = 15.0
"""Seconds without any answer after which the watchdog gives a connection up (lost packets)."""
_TIMEOUTS = {
    "statement_timeout": f"{STATEMENT_TIMEOUT:g}s",
    "lock_timeout": f"{LOCK_TIMEOUT:g}s",
    "idle_timeout": f"{IDLE_TIMEOUT:g}s",
}
FIRST_DELAY, LAST_DELAY = 0.1, 2.0
"""Seconds between tries to connect: doubling, with jitter."""
SAID_EVERY = 60.0
"""Seconds between two log lines about the same outage."""

# Half-open TCP is noticed by the kernel; what a proxy acknowledges and never answers, by the watchdog.
_NETWORK = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

# The server says that what is in a row cannot be stored; neither time nor a new connection will help.
ROW_ERRORS = (psycopg.DataError, psycopg.IntegrityError)
MIGRATE = "the tables are missing or old: run manage.py migrate"
_POOLER_ERRORS = (
    errors.InvalidSqlStatementName,
    errors.DuplicatePreparedStatement,
    errors.ProtocolViolation,  # another client's statement of that name has another number of parameters
)


class PrivateConnection:
    """A psycopg connection that comes back after every loss; used by one thread at a time."""

    def __init__(self, alias: str, name: str, *, prepared: bool = True) -> None:
        self.alias = alias
        self.name = name
        self._prepared = prepared
        self._is_tuned = False
        self._connection: psycopg.Connection[Any] | None = None
        self._busy_since: float | None = None
        self._not_before = 0.0
        self._delay = FIRST_DELAY
        self.down_since: float | None = None
        self.last_error: Exception | None = None
        self._said_at = float("-inf")
        self.generation = 0

    @contextmanager
    def hot(self) -> Generator[psycopg.Connection[Any]]:
        """A transaction in which the hot statements get their plans.

        Raises psycopg.Error; after any error but ``ROW_ERRORS`` the connection has been closed and
        the next use makes a new one, not before a jittered pause.
        """
        with self.guarded() as connection, connection.transaction():
            if not self._is_tuned:
                connection.execute(sql.WORKER_HOT_PATH, _TIMEOUTS)
            yield connection

    @contextmanager
    def guarded(self) -> Generator[psycopg.Connection[Any]]:
        """The connection, outside any transaction, with the watchdog on."""
        self._busy_since = time.monotonic()
        try:
            yield self._open()
        except ROW_ERRORS:
            raise
        except (psycopg.Error, OSError) as error:
            # A missing table or privilege is nobody's row's fault: to be tried again, later, like an outage.
            self._note_failure(error)
            if isinstance(error, OSError):
                raise psycopg.OperationalError(str(error)) from error
            raise
        else:
            self._delay = FIRST_DELAY
            self.down_since = None
        finally:
            self._busy_since = None

    @property
    def pause(self) -> float:
        """Seconds to wait before the next use makes sense; 0 when there is no need."""
        return max(self._not_before - time.monotonic(), 0.0)

    def give_up_if_stuck(self) -> None:
        """Shut the socket down when a call has had no answer for too long; called by another thread."""
        since, connection = self._busy_since, self._connection
        if since is None or connection is None or time.monotonic() - since < STUCK_AFTER:
            return
        log("connection_stuck", logging.ERROR, connection=self.name, seconds=time.monotonic() - since)
        self._busy_since = None
        try:
            with socket.socket(fileno=os.dup(connection.fileno())) as duplicate:
                duplicate.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error) as error:
            log("connection_shutdown_failed", logging.WARNING, connection=self.name, error=error)

    def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except (OSError, psycopg.Error):
                log("connection_close_failed", logging.DEBUG, connection=self.name)

    @property
    def open_now(self) -> psycopg.Connection[Any]:
        """The connection as it is; raises OperationalError when there is none."""
        if self._connection is None:
            raise psycopg.OperationalError("not connected")
        return self._connection

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self.alias, self.name, prepared=self._prepared)
            self.generation += 1
            if self._prepared and self._connection.prepare_threshold is None:
                self._stop_preparing()
            self._is_tuned = self._prepared
            if self._is_tuned:
                self._connection.execute(sql.WORKER_SESSION, _TIMEOUTS)
            if self.generation > 1:
                log("reconnected", connection=self.name, alias=self.alias)
        return self._connection

    def _stop_preparing(self) -> None:
        self._prepared = False
        reason = "a pooler is in between"
        log("prepared_statements_off", logging.WARNING, connection=self.name, reason=reason)

    def _note_failure(self, error: Exception) -> None:
        now = time.monotonic()
        if isinstance(error, _POOLER_ERRORS) and self._prepared:
            self._stop_preparing()
        self.close()
        self._not_before = now + self._delay * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        self._delay = min(self._delay * 2, LAST_DELAY)
        self.last_error = error
        if self.down_since is None or now - self._said_at > SAID_EVERY:
            self._said_at = now
            hint = MIGRATE if self.tables_missing else None
            log(
                "connection_lost",
                logging.WARNING,
                connection=self.name,
                alias=self.alias,
                error=error,
                hint=hint,
            )
        self.down_since = self.down_since or now

    @property
    def tables_missing(self) -> bool:
        """True when the latest failure was that the queue's tables do not exist, or not as they should be."""
        return isinstance(self.last_error, errors.UndefinedTable | errors.UndefinedColumn)


class _BinaryCursor(psycopg.Cursor[Any]):
    """Gets rows as the server has them: as text, times and numbers cost both sides more."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.format = psycopg.pq.Format.BINARY


def connect(alias: str, name: str, *, prepared: bool = True) -> psycopg.Connection[Any]:
    """Return a new autocommit psycopg connection made from Django's settings for ``alias``.

    ``prepared``: prepare every statement, unless a pooler is in between (then ``prepare_threshold`` is None).
    """
    wrapper = connections[alias]
    params: dict[str, Any] = dict(wrapper.get_connection_params())
    for key in ("cursor_factory", "context", "prepare_threshold"):
        params.pop(key, None)
    params = {**_NETWORK, "application_name": f"django_pgqueue {name}", **params}
    connection = psycopg.connect(**params, autocommit=True, prepare_threshold=None)
    if prepared and not _is_pooled(connection):
        connection.prepare_threshold = 0
    connection.cursor_factory = _BinaryCursor
    # Explicit in every BEGIN: the project's or the role's default isolation may be stricter.
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    role = wrapper.settings_dict["OPTIONS"].get("assume_role")
    if role:
        connection.execute(psycopg.sql.SQL("SET ROLE {}").format(psycopg.sql.Identifier(role)))
    return connection


def _is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """True when the server process that answers is not the one that the connection was told of.

    A pooler that hands server connections out per transaction makes that number up.  To wait for an error is
    not enough: under that name another client may have prepared another statement with as many parameters.
    """
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is None or row[0] != connection.info.backend_pid
