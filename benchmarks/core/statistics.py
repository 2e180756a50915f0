"""The arithmetic of results: medians, percentiles, ratios of pairs, a slope."""

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that so many percent of the values do not exceed (nearest rank)."""
    if not values:
        raise ValueError("percentile() needs at least one value")
    ordered = sorted(values)
    rank = -int(-len(ordered) * percent // 100)
    return ordered[max(rank, 1) - 1]


def ratio_of_pairs(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of runs side by side; runs without a partner are left out."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=False))


def spread(runs: Sequence[float]) -> dict[str, Any]:
    """Return the runs with their median, minimum and maximum."""
    return {"runs": list(runs), "median": statistics.median(runs), "min": min(runs), "max": max(runs)}


def medians(samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the median of each number that the samples name; of what is no number, the last."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for sample in samples for name in sample):
        values = [sample[name] for sample in samples if name in sample]
        numbers = all(isinstance(value, (int, float)) for value in values)
        found[name] = statistics.median(values) if numbers else values[-1]
    return found


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the straight line through points, by least squares; 0 when there is none."""
    if len({x for x, _ in points}) < 2:
        return 0.0
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope


def moment_of(samples: Sequence[tuple[float, int]], count: float) -> float:
    """Return when the count was reached, between the two samples around it (time, count); times ascend."""
    for (before, low), (after, high) in pairwise(samples):
        if low <= count <= high and high > low:
            return before + (after - before) * (count - low) / (high - low)
    raise ValueError(f"the samples never reach {count}")


def rate_between(samples: Sequence[tuple[float, int]], first: float, last: float) -> float:
    """Return the rate, per second, between two counts."""
    return (last - first) / max(moment_of(samples, last) - moment_of(samples, first), 1e-6)
