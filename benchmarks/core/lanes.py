"""Runs lanes side by side: one run of each in turn, so that what the machine does meanwhile hits all alike.

A lane is one thing to measure: this project, a peer, the same with other settings. Its first failure ends it:
the others go on, and the result says why it is missing.
"""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from benchmarks.core.processes import Failed


class CannotRun(RuntimeError):
    """Something that a contender needs is not here; the message says what."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run gave: the value, and facts about it by name."""

    value: float
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lane:
    """A thing to measure, by name."""

    name: str
    measure: Callable[[], Sample]


@dataclass(slots=True)
class Race:
    """What came out: samples by lane, and the reasons of those that have none."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def values(self, lane: str) -> list[float]:
        """Return the values of a lane, in the order of the runs."""
        return [sample.value for sample in self.samples.get(lane, [])]


def race(lanes: Sequence[Lane], runs: int, unit: str, say: Callable[[str], None] = print) -> Race:
    """Run every lane so many times, alternating, every other round backwards.

    A failure of the first lane is raised: without it there is no result.
    """
    outcome = Race()
    for number in range(runs):
        for lane in lanes if number % 2 == 0 else reversed(lanes):
            if lane.name in outcome.failures:
                continue
            try:
                sample = lane.measure()
            except (CannotRun, Failed, psycopg.Error, subprocess.TimeoutExpired) as error:
                if lane is lanes[0]:
                    raise
                outcome.failures[lane.name] = f"cannot run here: {error}"
                outcome.samples.pop(lane.name, None)
                say(f"  {lane.name}: cannot run here: {error}")
                continue
            outcome.samples.setdefault(lane.name, []).append(sample)
            say(f"  run {number + 1} of {runs}, {lane.name}: {shown(sample.value)} {unit}{_noted(sample)}")
    return outcome


def shown(value: float) -> str:
    """Return a number as people read it: three figures or more."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _noted(sample: Sample) -> str:
    told = [
        f"{name} {shown(fact)}"
        for name, fact in sample.facts.items()
        if isinstance(fact, (int, float)) and not isinstance(fact, bool)
    ]
    return f"   ({', '.join(told[:4])})" if told else ""
