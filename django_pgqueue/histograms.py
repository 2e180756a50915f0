"""Histograms of times: buckets that double from a millisecond on, and percentiles read out of them.

A percentile is interpolated inside its bucket, so it is right to within that bucket: never off by more than a
factor of two, and mostly by far less.
"""

from collections.abc import Sequence

FIRST_THRESHOLD = 0.001
THRESHOLDS: tuple[float, ...] = tuple(FIRST_THRESHOLD * 2.0**step for step in range(27))
"""Seconds at which one bucket ends and the next begins: a millisecond, doubling, to 18 hours."""
BUCKETS = len(THRESHOLDS) + 1


def empty() -> list[int]:
    """Return a histogram that has counted nothing."""
    return [0] * BUCKETS


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return the seconds below which ``share`` (0 to 1) of what was counted lies; None when nothing was."""
    total = sum(counts)
    if not total:
        return None
    wanted, seen = share * total, 0.0
    for bucket, count in enumerate(counts):
        if count and seen + count >= wanted:
            low = THRESHOLDS[bucket - 1] if bucket else 0.0
            high = THRESHOLDS[bucket] if bucket < len(THRESHOLDS) else THRESHOLDS[-1]
            return low + (high - low) * max(wanted - seen, 0.0) / count
        seen += count
    return THRESHOLDS[-1]
