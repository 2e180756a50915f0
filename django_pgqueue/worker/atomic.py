"""Atomic tasks: what the task writes, its result and its completion commit together, behind the fence.

The task runs inside a transaction on the queue's own database, on its thread's own connection.  At its end
the job is completed in that very transaction; where the fence does not hold any more, all is rolled back.
What does not end in success is rolled back first, and settled by the engine like any other outcome.

Under READ COMMITTED the state row is locked at the end only, so that heartbeats go on meanwhile.  Under
stricter levels a heartbeat after the snapshot would make the completion fail for ever: there the row is
locked at the start, and that lock is the lease.
"""

import logging
import os
import random
import time
from collections.abc import Callable
from typing import Any

import psycopg
from django.db import DatabaseError, connections, transaction

from .. import execution as pipeline
from .. import running
from ..events import log
from ..exceptions import LeaseLost
from ..execution import Complete, Decision, Execution
from ..models import Job
from ..noting import notes_of
from ..records import DONE, Answer, Completed, WorkerIdentity
from ..stepping import private_store
from ..task_options import atomic_problem
from .config import host_name
from .outcomes import fields_of
from .session_limits import explain

MOST_CONFLICTS = 20
"""How often a transaction that the server broke off for another one's sake is begun again, uncharged."""
FIRST_PAUSE, LAST_PAUSE = 0.01, 1.0
"""Seconds between two tries: doubling, with jitter."""
CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)


class _NoSuccess(Exception):
    """The task did not end in success: its transaction is rolled back, the engine settles the decision."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision


def run(execution: Execution, before_commit: Callable[[], None]) -> Decision:
    """Run an atomic task and complete its job; raises what the task raises, and LeaseLost.

    ``before_commit`` is called when the task is over and only the commit is left.  When the job was completed
    the database's answer stands in ``execution.answer``.
    """
    task: Any = execution.task
    problem = atomic_problem(task.atomic, task.func, task.get_backend().settings.database)
    if problem:
        raise ValueError(f"{task.module_path}: {problem}")
    pause = FIRST_PAUSE
    for tries in range(MOST_CONFLICTS + 1):
        began = time.monotonic()
        try:
            return _try(execution, before_commit)
        except _NoSuccess as end:
            return end.decision
        except DatabaseError as error:
            last = tries == MOST_CONFLICTS or execution.lease_lost or execution.cancel_requested
            if last or not isinstance(error.__cause__, CONFLICTS):
                explain(error, time.monotonic() - began)
                raise
            log("conflict", **fields_of(execution), error=error)
        time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
        pause = min(pause * 2, LAST_PAUSE)
    raise AssertionError("the last try returns or raises")


def _try(execution: Execution, before_commit: Callable[[], None]) -> Decision:
    connection = connections[_database_of(execution)]
    committed: list[bool] = []
    completed: Answer | None = None
    decision: Decision = pipeline.NOTHING
    try:
        with transaction.atomic(using=connection.alias, durable=True):
            # The first callback of all: when it was called, the commit is certain, whatever comes after it.
            transaction.on_commit(lambda: committed.append(True), using=connection.alias)
            with running.within(None):
                _begin(execution, connection)
            decision = pipeline.decide_return(execution, pipeline.call(execution))
            before_commit()
            with running.within(None):
                completed = _complete(execution, decision, connection)
    except BaseException as error:
        if completed is None:
            raise
        completed = _after_all(execution, error, completed, bool(committed))
        if completed is None:
            raise
    finally:
        execution.row_locked = False
    execution.answer = completed
    return decision


def _begin(execution: Execution, connection: Any) -> None:
    strict, held = Job.objects.lock_if_strict(execution.fence, connection=connection)
    if strict and not held:
        raise _lost(execution)
    execution.row_locked = strict


def _complete(execution: Execution, decision: Decision, connection: Any) -> Answer:
    if not isinstance(decision, Complete):
        raise _NoSuccess(decision)
    # Waited for: a heartbeat may hold the row for a moment, and the settle itself does not wait.
    fence = execution.fence
    if not execution.row_locked and not Job.objects.lock_held(fence, connection=connection):
        raise _lost(execution)
    started_ago = time.monotonic() - (execution.started or execution.claimed)
    settled = Completed(fence, started_ago, 0.0, decision.return_value, notes_of(execution))
    worker = WorkerIdentity(execution.worker_id, host_name(), os.getpid())
    answer = Job.objects.complete([settled], worker=worker, connection=connection)[fence]
    if answer.result != DONE:
        raise _lost(execution)
    return answer


def _lost(execution: Execution) -> LeaseLost:
    return LeaseLost(f"the lease of job {execution.job.job_id} is lost: what its task wrote is rolled back")


def _after_all(execution: Execution, error: BaseException, answer: Answer, committed: bool) -> Answer | None:
    """Return the answer if the transaction was committed in spite of an error; None if it was rolled back."""
    if committed:
        log("on_commit_failed", logging.ERROR, exc_info=error, **fields_of(execution))
        return answer
    cause = error.__cause__
    if isinstance(cause, CONFLICTS) or not isinstance(
        cause, (psycopg.OperationalError, psycopg.InterfaceError)
    ):
        return None
    # The connection broke while it committed: only the tables know.
    options = execution.task.get_backend().settings  # type: ignore[union-attr]  # prepared
    store = private_store(options.database, options.prepared_statements)
    known = store.whereabouts(execution.fence, lambda: execution.lease_lost)
    return known if known is not None and known.result == DONE else None


def _database_of(execution: Execution) -> str:
    database: str = execution.task.get_backend().settings.database  # type: ignore[union-attr]  # prepared
    return database
