"""Writing what became of executions, and the second hand that does it while the engine claims.

The engine settles and claims in one commit.  When there is much of both, it hands what succeeded to a
second thread with a connection of its own and claims meanwhile: the server does both at once, and the
tasks go on.  The second hand only writes; what its answers mean is the engine's to decide.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple

import psycopg

from ..connections import PrivateConnection
from ..events import log
from ..execution import Complete, Execution, settlement
from ..models import Job
from ..noting import notes_of
from ..records import Answer, Consumed, Released, Settlement, WorkerIdentity
from ..retention import is_kept
from ..states import SUCCEEDED
from . import unknown
from .config import WorkerConfig

ENOUGH = 32
"""Outcomes that make a commit of their own worth while."""


def write_outcomes(
    batch: Sequence[Execution],
    connection: Any,
    *,
    worker: WorkerIdentity,
    config: WorkerConfig,
    refusals: Sequence[Released] = (),
) -> list[Answer]:
    """Settle executions, and jobs that were refused; return the answers for the executions, in order.

    Raises psycopg.Error.
    """
    unknown.decide(batch, patience=config.unknown_task_patience, connection=connection)
    now = time.monotonic()
    # Atomic tasks have completed their jobs themselves, and have their answers.
    unanswered = [execution for execution in batch if execution.answer is None]
    retention = config.retention
    settlements: list[Settlement] = [_settlement(execution, now, retention) for execution in unanswered]
    settlements += refusals
    answers = iter(Job.objects.settle(settlements, worker=worker, connection=connection))
    return [execution.answer or next(answers) for execution in batch]


def _settlement(execution: Execution, now: float, retention: Mapping[str, Any]) -> Settlement:
    if type(execution.decision) is Complete and not is_kept(retention, SUCCEEDED, execution.job.queue):
        return Consumed(execution.fence)
    if execution.decision is not None:
        return settlement(execution, now)
    if execution.started is None:
        return Released(execution.fence, None)
    reason = "interrupted: the worker was stopped"
    return Released(execution.fence, now - execution.started, reason, notes_of(execution))


class Settled(NamedTuple):
    """What the second hand puts on the tray; without answers the batch is still to be written."""

    batch: list[Execution]
    answers: list[Answer] | None


class SecondHand:
    """A thread that settles one batch at a time; it connects when it is first needed."""

    def __init__(
        self,
        config: WorkerConfig,
        identity: WorkerIdentity,
        settle: Callable[[Sequence[Execution], Any], list[Answer]],
        tray: "SimpleQueue[Any]",
    ) -> None:
        name = f"child {identity.worker_id} settling"
        self.connection = PrivateConnection(config.database, name, prepared=config.prepared_statements)
        self.is_busy = False
        self.has_failed = False
        self._settle = settle
        self._tray = tray
        self._work: SimpleQueue[list[Execution]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def wants(self, outcomes: Sequence[Execution]) -> bool:
        """Return whether these had better be written here: many, and all of a kind that never comes back."""
        return (
            len(outcomes) >= ENOUGH
            and not self.is_busy
            and not self.has_failed
            and not self.connection.pause
            and all(type(execution.decision) is Complete for execution in outcomes)
        )

    def take(self, outcomes: list[Execution]) -> None:
        """Write these, and put the answers on the tray; the engine forgets them until then."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pgqueue-settling", daemon=True)
            self._thread.start()
        self.is_busy = True
        self._work.put(outcomes)

    def _run(self) -> None:
        while True:
            batch = self._work.get()
            self._tray.put(Settled(batch, self._write(batch)))

    def _write(self, batch: list[Execution]) -> list[Answer] | None:
        try:
            with self.connection.hot() as connection:
                return self._settle(batch, connection)
        except psycopg.Error:
            return None  # said by the connection; the engine writes them itself, row by row if need be
        except Exception as error:  # noqa: BLE001 - a fault of ours: without an answer the child would wait for ever
            log("settling_error", logging.ERROR, exc_info=error, rows=len(batch))
            return None
