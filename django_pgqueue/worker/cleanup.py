"""Keeps a task's thread as clean as a web request does: what ``request_finished`` does, and more.

A project with ``CONN_MAX_AGE = 0`` gets a new connection for each request.  Connecting for each task
costs more than most tasks, so a worker keeps such connections and wipes their session state after
each task that used them (DISCARD ALL), which is as clean and some thirty times quicker.
"""

import logging
from typing import Any

from django.db import connections, reset_queries

from ..events import log

KEEP = 600
"""Seconds that a connection of a ``CONN_MAX_AGE = 0`` alias lives in a worker."""

_wiped: set[str] = set()


def keep_connections() -> None:
    """Let connections live over tasks in this process; before any thread connects."""
    for alias in connections:
        settings = connections.settings[alias]
        if settings.get("CONN_MAX_AGE") == 0 and not settings.get("OPTIONS", {}).get("pool"):
            settings["CONN_MAX_AGE"] = KEEP
            settings["CONN_HEALTH_CHECKS"] = True
            _wiped.add(alias)


def before_task() -> None:
    """Drop connections of this thread that are too old; ask the others for their health at first use."""
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


def after_task() -> None:
    """Leave no open transaction, no session state and no query log behind in this thread."""
    opened = connections.all(initialized_only=True)
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
        # Prepared (a project may set prepare_threshold), it would discard itself and fail the next time.
        connection.connection.execute("DISCARD ALL", prepare=False)
        connection.ensure_timezone()
        connection.ensure_role()
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
