"""Keeps a task's thread as clean as a web request does: what ``request_finished`` does, and more.

A project with ``CONN_MAX_AGE = 0`` gets a new connection for each request.  Connecting for each task
costs more than most tasks, so a worker keeps such connections and wipes their session state after
each task that used them (DISCARD ALL, then what Django does with a new connection).  That is as clean
and far quicker.
"""

import logging
import threading
from typing import Any

from django.db import connections, reset_queries
from django.db.backends.signals import connection_created

from .. import running
from ..events import log

KEEP = 600
"""Seconds that a connection of a ``CONN_MAX_AGE = 0`` alias lives in a worker."""

_wiped: set[str] = set()


class _Thread(threading.local):
    has_connected = False


_thread = _Thread()


def keep_connections() -> None:
    """Let connections live over tasks in this process; before any thread connects."""
    for alias in connections:
        connection = connections[alias]
        if _can_be_kept(connection):
            connection.settings_dict["CONN_MAX_AGE"] = KEEP
            connection.settings_dict["CONN_HEALTH_CHECKS"] = True
            _wiped.add(alias)


def _can_be_kept(connection: Any) -> bool:
    settings = connection.settings_dict
    options = settings.get("OPTIONS", {})
    # A pool keeps connections by rules of its own.  psycopg may not notice that DISCARD ALL has taken away
    # the statements that it prepared, and would call for them in a later task.
    special = options.get("pool") or options.get("prepare_threshold") is not None
    return connection.vendor == "postgresql" and settings.get("CONN_MAX_AGE") == 0 and not special


def _note_connected(**kwargs: Any) -> None:
    _thread.has_connected = True


connection_created.connect(_note_connected, dispatch_uid="django_pgqueue.worker.cleanup")


def _opened() -> list[Any]:
    # Most tasks of a busy queue may never touch the database: they shall not pay for looking.
    if not _thread.has_connected:
        return []
    return list(connections.all(initialized_only=True))


def before_task() -> None:
    """Drop connections of this thread that are too old; ask the others for their health at first use."""
    for connection in _opened():
        connection.close_if_unusable_or_obsolete()


def after_task() -> None:
    """Leave no open transaction, no session state and no query log behind in this thread."""
    opened = _opened()
    if not opened:
        return
    reset_queries()
    for connection in opened:
        if connection.connection is None:
            continue
        try:
            _clean(connection)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the next task gets a new one
            log("connection_dropped", logging.DEBUG, alias=connection.alias, error=error)
            _drop(connection)


def _clean(connection: Any) -> None:
    broken = connection.in_atomic_block or not connection.get_autocommit() or _in_transaction(connection)
    if broken:
        log("transaction_left_open", logging.WARNING, alias=connection.alias)
        _drop(connection)
        return
    if connection.alias in _wiped and connection.health_check_done:
        connection.connection.execute("DISCARD ALL")
        connection.init_connection_state()
        # Projects set session state in receivers of this signal: tasks must find what a new connection has.
        with running.within(None):  # nor is what they ask the task's
            connection_created.send(sender=type(connection), connection=connection)
    connection.close_if_unusable_or_obsolete()


def _in_transaction(connection: Any) -> bool:
    info = getattr(connection.connection, "info", None)
    status = getattr(info, "transaction_status", None)
    return status is not None and status.name not in ("IDLE", "UNKNOWN")


def _drop(connection: Any) -> None:
    # close() refuses inside an atomic block: forget the blocks, the server rolls their work back.
    connection.in_atomic_block = False
    connection.savepoint_ids = []
    connection.needs_rollback = False
    connection.run_on_commit = []
    connection.close()
