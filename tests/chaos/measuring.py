"""Figures of a run: how soon after each fault the work goes on as before, and how much of it."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

WINDOW = 0.5
"""Seconds over which throughput is counted when looking for the moment of recovery."""
AFTER = 5.0
"""Seconds after a fault's end within which throughput has to be back."""
SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault as it happened; ``error`` says why it could not be done as planned."""

    name: str
    began: float
    ended: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Recovery:
    """After one fault: seconds until throughput was back (None: not within AFTER), and the best second of it
    as a share of the throughput before all faults."""

    name: str
    seconds: float | None
    share: float
    slowest: float


@dataclass(frozen=True, slots=True)
class Line:
    """All faults of one name."""

    name: str
    count: int
    median: float
    worst: float | None
    share: float
    worst_share: float


def rate(ends: Sequence[float], began: float, ended: float) -> float:
    """Return the median of the jobs that ended in each whole second from ``began`` to ``ended``."""
    counts = [_count(ends, began + n, began + n + 1.0) for n in range(int(ended - began))]
    return median(counts) if counts else 0.0


def recoveries(ends: Sequence[float], faults: Iterable[Injected], before: float) -> list[Recovery]:
    """Measure each fault; ``ends`` are the times of returns, in order; ``before`` is per second."""
    return [_recovery(ends, fault, before) for fault in faults if not fault.error]


def lines(found: Iterable[Recovery]) -> list[Line]:
    """Return one line for each name, in alphabetical order."""
    by_name = defaultdict(list)
    for recovery in found:
        by_name[recovery.name].append(recovery)
    return [_line(name, group) for name, group in sorted(by_name.items())]


def _recovery(ends: Sequence[float], fault: Injected, before: float) -> Recovery:
    step, wanted = 0.05, before * WINDOW * SHARE
    seconds = next(
        (
            n * step
            for n in range(int(AFTER / step) + 1)
            if _count(ends, fault.ended + n * step, fault.ended + n * step + WINDOW) >= wanted
        ),
        None,
    )
    shares = [
        _count(ends, fault.ended + n * step, fault.ended + n * step + 1.0)
        for n in range(int((AFTER - 1) / step))
    ]
    return Recovery(fault.name, seconds, max(shares) / before, min(shares) / before)


def _line(name: str, group: list[Recovery]) -> Line:
    known = [r.seconds if r.seconds is not None else float("inf") for r in group]
    worst = max(known)
    shares = [r.share for r in group]
    return Line(
        name, len(group), median(known), None if worst == float("inf") else worst, median(shares), min(shares)
    )


def _count(ends: Sequence[float], began: float, ended: float) -> int:
    return bisect_left(ends, ended) - bisect_left(ends, began)
