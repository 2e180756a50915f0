"""A task inside a test's transaction, as close as that comes to the autocommit that it has in a worker.

* What the task wrote stays, also when it raised; only a transaction that PostgreSQL has aborted is
  rolled back, to where the task began, so that it harms nothing but its own job.
* ``on_commit`` hooks that the task registered run when the task is over: a worker would have committed.
* ``connection.close()`` and its relatives do nothing, or they would end the test's own transaction.

Connections that are in no transaction keep their autocommit; one that the task left open is dropped.
"""

import unittest
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from django.db import connections, transaction
from psycopg.pq import TransactionStatus

from .. import running

Contained = tuple[Any, BaseException | None]
"""What a call returned, and what it raised."""

# The developer's Ctrl-C, and a test that ends itself inside a mock, are no failures of the task.
_FOR_THE_TEST = (KeyboardInterrupt, unittest.SkipTest)


def is_for_the_test(error: BaseException) -> bool:
    """True for what must go through to the test: Ctrl-C, skips, and ``pytest.fail()`` and its relatives."""
    if isinstance(error, _FOR_THE_TEST):
        return True
    return any(cls.__module__ == "_pytest.outcomes" for cls in type(error).__mro__)


def contained(function: Callable[[], Any]) -> Contained:
    """Call ``function`` and return what it returned or raised."""
    try:
        return function(), None
    except BaseException as error:
        if is_for_the_test(error):
            raise
        return None, error


def call_as_worker(function: Callable[[], Any], execution: running.Running) -> Contained:
    """Call ``function`` as a worker would and return what it returned or raised; see the module.

    Meanwhile ``execution`` is what runs here; the savepoints around it are not its own.
    """
    with ExitStack() as stack:
        held = [c for c in connections.all(initialized_only=True) if c.in_atomic_block]
        stack.callback(_leave_others_clean, held)
        hooks = [(connection, len(connection.run_on_commit)) for connection in held]
        for connection in held:
            stack.enter_context(_savepoint(connection))
        stack.enter_context(running.within(execution))
        value, error = contained(function)
        for connection, before in hooks:
            _, raised = contained(partial(_run_hooks, connection, before))
            error = error or raised
    return value, error


@contextmanager
def _savepoint(connection: Any) -> Generator[None]:
    block = transaction.atomic(using=connection.alias)
    block._from_testcase = True  # or the task could open no durable block
    with _kept_open(connection), block:
        savepoints, blocks = len(connection.savepoint_ids), len(connection.atomic_blocks)
        yield
        if len(connection.savepoint_ids) != savepoints:  # a block was entered and never left
            del connection.savepoint_ids[savepoints:], connection.atomic_blocks[blocks:]
            connection.needs_rollback = True
        if _is_aborted(connection):
            connection.needs_rollback = True


@contextmanager
def _kept_open(connection: Any) -> Generator[None]:
    connection.close = lambda: None
    try:
        yield
    finally:
        del connection.close


def _run_hooks(connection: Any, before: int) -> None:
    while not _is_aborted(connection) and len(connection.run_on_commit) > before:
        _, hook, robust = connection.run_on_commit.pop(before)
        _, error = contained(hook)
        if error is not None and not (robust and isinstance(error, Exception)):
            raise error


def _is_aborted(connection: Any) -> bool:
    status = connection.connection.info.transaction_status
    return bool(connection.needs_rollback) or status == TransactionStatus.INERROR


def _leave_others_clean(held: list[Any]) -> None:
    for connection in connections.all(initialized_only=True):
        if connection not in held:
            _leave_clean(connection)


def _leave_clean(connection: Any) -> None:
    raw = connection.connection
    if raw is None:
        return
    status = raw.info.transaction_status
    if connection.in_atomic_block or not connection.autocommit or status != TransactionStatus.IDLE:
        # close() alone would remember the blocks: forget them, the server rolls their work back.
        connection.in_atomic_block = False
        connection.savepoint_ids, connection.atomic_blocks, connection.run_on_commit = [], [], []
        connection.needs_rollback = False
        connection.close()
