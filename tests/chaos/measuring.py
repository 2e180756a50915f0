"""Figures of a run: how soon after each fault as much is done as is asked for, and how much that is.

What a machine shared with others can do differs from second to second, and hits asking and doing alike. So
throughput is compared with what was asked for in the same time, not with that of another time.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

WINDOW = 0.5
"""Seconds over which throughput is counted when looking for the moment of recovery."""
AFTER = 5.0
"""Seconds after a fault's end over which throughput is stated."""
SHARE = 0.95
PATIENCE = 60.0
STEP = 0.05
BLAMED = 0.5
"""Seconds after the end of a fault in which it still counts as the cause of what is lost."""
BRIEF = 0.3
"""Seconds: faults that are shorter do not stop the clock."""


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault as it happened; ``error`` says why it could not be done as planned."""

    name: str
    began: float
    ended: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Load:
    """When jobs were asked for that have to return, and when jobs returned; each in order."""

    asked: Sequence[float]
    done: Sequence[float]

    def share(self, began: float, ended: float) -> float | None:
        """Return what was done as a share of what was asked for in this time; None when nothing was."""
        asked = _count(self.asked, began, ended)
        return _count(self.done, began, ended) / asked if asked else None


@dataclass(frozen=True, slots=True)
class Recovery:
    """After one fault: seconds until as much was done as was asked for, and the share over AFTER seconds."""

    name: str
    seconds: float
    share: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """All faults of one name; ``share`` is done / asked over AFTER seconds.

    ``again`` are the calls that had returned, and whose outcome was lost: those jobs ran again.
    """

    name: str
    count: int
    median: float
    worst: float
    share: float
    worst_share: float
    again: int


def rate(ends: Sequence[float], began: float, ended: float) -> float:
    """Return the median of the jobs that ended in each whole second from ``began`` to ``ended``."""
    counts = [_count(ends, began + n, began + n + 1.0) for n in range(int(ended - began))]
    return median(counts) if counts else 0.0


def recoveries(load: Load, faults: Sequence[Injected]) -> list[Recovery]:
    """Measure each fault that was done."""
    return [_recovery(load, fault, faults) for fault in faults if not fault.error]


def lines(found: Iterable[Recovery], lost_ends: Iterable[float], faults: Sequence[Injected]) -> list[Line]:
    """Return one line for each name, in alphabetical order.

    ``lost_ends`` are the times at which calls returned whose outcome was lost; each is laid to the door of
    the first fault that was not long over.
    """
    again = Counter(
        next((fault.name for fault in faults if fault.ended >= end - BLAMED), "") for end in lost_ends
    )
    by_name = defaultdict(list)
    for recovery in found:
        by_name[recovery.name].append(recovery)
    return [_line(name, group, again[name]) for name, group in sorted(by_name.items())]


def _recovery(load: Load, fault: Injected, faults: Sequence[Injected]) -> Recovery:
    """Look for the first window in which as much was done as was asked for; other faults stop the clock."""
    others = [other for other in faults if other is not fault and other.ended - other.began > BRIEF]
    seconds, at = 0.0, fault.ended
    while seconds < PATIENCE:
        hit = next((o for o in others if o.began < at + WINDOW and o.ended > at), None)
        if hit:
            seconds, at = seconds + max(hit.began - at, 0.0), max(hit.ended, at + STEP)
            continue
        share = load.share(at, at + WINDOW)
        if share is not None and share >= SHARE:
            break
        seconds, at = seconds + STEP, at + STEP
    return Recovery(fault.name, seconds, load.share(fault.ended, fault.ended + AFTER))


def _line(name: str, group: list[Recovery], again: int) -> Line:
    seconds = [recovery.seconds for recovery in group]
    shares = [recovery.share for recovery in group if recovery.share is not None] or [0.0]
    return Line(name, len(group), median(seconds), max(seconds), median(shares), min(shares), again)


def _count(ends: Sequence[float], began: float, ended: float) -> int:
    return bisect_left(ends, ended) - bisect_left(ends, began)
