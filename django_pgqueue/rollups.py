"""``Rollup.objects``: counting attempts into rollups, and reading what they came to.

Counting is for the keeper: ``count_attempts`` takes one bounded batch, in the transaction that it is given.
The rest are readings for the overview; each covers a window of whole spans that ends with the present one.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import router

from . import histograms, sql
from .guarded import GuardedManager
from .querying import Connection, queue_connection, run

MOST_TASKS = 50
"""Tasks that the overview lists."""
MOST_TOTALS = 200
"""Pairs of a task and a queue whose totals metrics show."""


class Counted(NamedTuple):
    """What one batch came to; ``is_behind``: more attempts wait to be counted."""

    attempts: int
    is_behind: bool
    passed_over: bool


class Sums(NamedTuple):
    """Attempts by outcome, and the seconds that they ran in all."""

    succeeded: float = 0.0
    failed: float = 0.0
    lost: float = 0.0
    snoozed: float = 0.0
    released: float = 0.0
    cancelled: float = 0.0
    run_seconds: float = 0.0

    @property
    def bad(self) -> float:
        """Attempts that failed or were lost."""
        return self.failed + self.lost

    @property
    def ended(self) -> float:
        """Attempts of any outcome."""
        return sum(self[:-1])


class TaskSums(NamedTuple):
    """What one task did in one queue."""

    queue: str
    task_path: str
    sums: Sums


class Times(NamedTuple):
    """Two histograms: how long attempts ran, and how long first attempts had waited since they were due."""

    runs: list[int]
    waits: list[int]


class TimesOf(NamedTuple):
    """Histograms by the beginning of the span in seconds of the epoch, and by (queue, task path)."""

    spans: dict[int, Times]
    tasks: dict[tuple[str, str], Times]


class Total(NamedTuple):
    """What one task ever did in one queue, since attempts are counted; histograms as in ``Times``."""

    queue: str
    task_path: str
    sums: Sums
    times: Times


class Totals(NamedTuple):
    """The busiest tasks; ``left_out``: pairs of a task and a queue that there are beside them."""

    found: list[Total]
    left_out: int


class RollupManager(GuardedManager):
    """See the module."""

    def count_attempts(self, *, limit: int, connection: Connection) -> Counted:
        """Count up to ``limit`` attempts that nobody has counted; nothing while another keeper does."""
        found = run(connection, sql.LOCK_MARK, {})
        if not found:
            with connection.cursor() as cursor:
                cursor.execute(sql.MAKE_MARK)
            return Counted(0, False, False)
        next_xid, pending, counted_from, is_ahead = found[0]
        if is_ahead:
            next_xid, pending, counted_from = run(connection, sql.RESTART_MARK, {})[0]
        params = {"next_xid": next_xid, "pending": pending, "counted_from": counted_from, "limit": limit}
        rows = run(connection, sql.COUNT_ATTEMPTS, params)
        until, still_pending, passed_over, is_behind, *_ = rows[0]
        groups = [row[4:] for row in rows if row[4] is not None]
        if groups:
            run(connection, sql.ADD_ROLLUPS, {"rollups": json.dumps(_rollups(groups))})
        if groups or is_behind or _worth_a_move(next_xid, until, pending, still_pending):
            run(connection, sql.MOVE_MARK, {"next_xid": until, "pending": sorted(still_pending)})
        return Counted(sum(group[6] for group in groups), is_behind, passed_over)

    def prune(self, span: int, *, age: float, limit: int, connection: Connection) -> int:
        """Delete up to ``limit`` rollups of this span that began more than ``age`` seconds ago."""
        return len(run(connection, sql.PRUNE_ROLLUPS, {"span": span, "age": age, "limit": limit}))

    # --- readings

    def series(self, span: int, window: float) -> dict[int, Sums]:
        """Return the sums of each span in the last ``window`` seconds, by the epoch's second it began at."""
        return {row[0]: Sums(*row[1:]) for row in self._read(sql.SERIES, span, window)}

    def tasks(self, span: int, window: float, limit: int = MOST_TASKS) -> list[TaskSums]:
        """Return what each task did: those with most failures first, then those that ran longest."""
        rows = self._read(sql.TASKS, span, window, limit=limit)
        return [TaskSums(row[0], row[1], Sums(*row[2:])) for row in rows]

    def times(self, span: int, window: float) -> TimesOf:
        """Return the histograms of each span and of each task."""
        found = TimesOf({}, {})
        for starts_at, queue, task_path, place, runs, waits in self._read(sql.HISTOGRAMS, span, window):
            key = found.spans.setdefault(starts_at, _no_times()) if starts_at else None
            times = key or found.tasks.setdefault((queue, task_path), _no_times())
            times.runs[place - 1], times.waits[place - 1] = int(runs), int(waits)
        return found

    def totals(self, limit: int = MOST_TOTALS) -> Totals:
        """Return what was ever counted of up to ``limit`` tasks in their queues, the busiest first.

        Pruning takes nothing from it, nor does a restart of anything.
        """
        rows = self._read(sql.TOTALS, sql.EVER, 0.0, limit=limit)
        found = [Total(row[0], row[1], Sums(*row[2:9]), Times(row[9], row[10])) for row in rows]
        return Totals(found, rows[0][11] - len(rows) if rows else 0)

    def _read(self, statement: str, span: int, window: float, **params: Any) -> list[tuple[Any, ...]]:
        connection = queue_connection(self._db or router.db_for_write(self.model))
        return run(connection, statement, {"span": span, "window": window, **params})


# A database in which nothing is queued still hands out transaction ids: the mark need not follow each.
MARK_MAY_LAG = 10_000


def _worth_a_move(next_xid: int, until: int, pending: Sequence[int], still: Sequence[int]) -> bool:
    return until - next_xid > MARK_MAY_LAG or sorted(pending) != sorted(still)


def _no_times() -> Times:
    return Times(histograms.empty(), histograms.empty())


def _rollups(groups: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of all spans that these groups belong to, each once."""
    rollups: dict[tuple[int, datetime, str, str], dict[str, Any]] = {}
    for minute, queue, task_path, outcome, ran, waited, attempts, seconds in groups:
        for span in sql.SPANS:
            starts_at = _start(minute, span)
            key = (span, starts_at, queue, task_path)
            row = rollups.setdefault(key, _new_rollup(*key))
            row[outcome] += attempts
            row["run_seconds"] += seconds
            row["runs"][ran] += attempts
            if waited is not None:
                row["waits"][waited] += attempts
    return list(rollups.values())


def _start(minute: datetime, span: int) -> datetime:
    seconds = 0 if span == sql.EVER else minute.timestamp() // span * span
    return datetime.fromtimestamp(seconds, minute.tzinfo)


def _new_rollup(span: int, starts_at: datetime, queue: str, task_path: str) -> dict[str, Any]:
    sums = dict.fromkeys(Sums._fields, 0)
    names = {"span": span, "starts_at": starts_at.isoformat(), "queue": queue, "task_path": task_path}
    return {**names, **sums, "runs": histograms.empty(), "waits": histograms.empty()}
