"""What may not grow in a long run: memory of processes, connections, dead rows, tables, indexes, waits.

Each is sampled over the whole run. A series is flat when its robust slope (the median of all slopes between
two samples), over the time after the first quarter, comes to less than a tenth of its median, or less than
what is stated for the series where that is more.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median

import psycopg

from django_pgqueue import sql

from .history import COMMITTED, History
from .onlooker import Onlooker
from .worker import Seat

SETTLING_SHARE = 0.25
GROWTH_ALLOWED = 0.10
MOST_POINTS = 120
SAMPLE_EVERY = 5.0
MB = 1024 * 1024
ALLOWED = {
    "memory": 6.0,
    "connections": 2.0,
    "dead rows": 5_000.0,
    "size": 8.0,
    "wait": 20.0,
}
"""What a series may grow by in any case: MB, connections, rows, MB, ms; by the first word of its name."""

Series = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class Trend:
    """A series in short: its median, and what its slope comes to over the time that was looked at."""

    name: str
    median: float
    growth: float
    allowed: float

    @property
    def is_flat(self) -> bool:
        """True when it did not grow by more than is allowed; what shrinks is flat, too."""
        return self.growth <= self.allowed


class Samples(Onlooker):
    """Takes samples of the spared seat's processes and of the queue's tables."""

    def __init__(self, connect: Callable[[], psycopg.Connection], spared: Sequence[Seat]) -> None:
        super().__init__(connect)
        self.spared = spared
        self.series: Series = {}

    def __call__(self) -> None:
        """Sample once; what the database says is left out while it is away."""
        for seat in self.spared:
            children = [resident(pid) for pid in seat.worker.children]
            self._add("memory of a child, MB", max(children, default=0.0))
            self._add("memory of the keeper, MB", resident(seat.worker.keeper))
            self._add("memory of the supervisor, MB", resident(seat.worker.pid))
        self.look(self._ask)

    def _ask(self, session: psycopg.Connection) -> None:
        row = session.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'django_pgqueue %'"
        ).fetchone()
        self._add("connections of workers", float(row[0]) if row else 0.0)
        for table in (sql.JOB, sql.STATE, sql.ATTEMPT):
            row = session.execute(
                "SELECT n_dead_tup, pg_relation_size(relid), pg_indexes_size(relid)"
                " FROM pg_stat_user_tables WHERE relname = %s",
                [table],
            ).fetchone()
            if row:
                short = table.rpartition("_")[2]
                self._add(f"dead rows of {short}", float(row[0]))
                self._add(f"size of {short}, MB", row[1] / MB)
                self._add(f"size of the indexes of {short}, MB", row[2] / MB)

    def _add(self, name: str, value: float) -> None:
        if value or not name.startswith("memory"):
            self.series.setdefault(name, []).append((time.monotonic(), value))


def waits(history: History, bucket: float = 15.0) -> list[tuple[float, float]]:
    """Return the median milliseconds from commit to start, for each so many seconds."""
    began: dict[str, float] = {}
    for execution in history.executions:
        began[execution.tag] = min(began.get(execution.tag, execution.began), execution.began)
    buckets: dict[int, list[float]] = {}
    for asked in history.asked:
        if asked.outcome == COMMITTED and asked.tag in began:
            buckets.setdefault(int(asked.at / bucket), []).append(1000 * (began[asked.tag] - asked.at))
    return [(number * bucket, median(values)) for number, values in sorted(buckets.items())]


def trends(series: Series) -> list[Trend]:
    """Return how each series went, in the order of the names."""
    return [trend(name, points) for name, points in sorted(series.items()) if len(points) > 3]


def trend(name: str, points: Sequence[tuple[float, float]]) -> Trend:
    """Return how one series went after its first quarter."""
    late = points[int(len(points) * SETTLING_SHARE) :]
    thin = late[:: max(len(late) // MOST_POINTS, 1)]
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(thin, 2) if x2 > x1]
    middle = median(value for _, value in late)
    growth = median(slopes) * (late[-1][0] - late[0][0]) if slopes else 0.0
    return Trend(name, middle, growth, max(GROWTH_ALLOWED * abs(middle), ALLOWED[_kind(name)]))


def as_text(found: Sequence[Trend], minutes: float) -> str:
    """Return the table of trends."""
    head = f"{'over ' + format(minutes, '.0f') + ' minutes':<44}{'median':>12}{'growth':>12}{'allowed':>12}"
    rows = [
        f"{t.name:<44}{t.median:>12.1f}{t.growth:>+12.2f}{t.allowed:>12.1f}{'' if t.is_flat else '   GROWS'}"
        for t in found
    ]
    return "\n".join([head, *rows])


def resident(pid: int) -> float:
    """Return the resident memory of a process in MB, 0 when it is gone."""
    with suppress(OSError, IndexError, ValueError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) if pid else 0
        return pages * os.sysconf("SC_PAGE_SIZE") / MB
    return 0.0


def _kind(name: str) -> str:
    return next(kind for kind in ALLOWED if name.startswith(kind))
