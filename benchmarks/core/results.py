"""A benchmark's result: for people as a few lines, for programs as JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.core import statistics
from benchmarks.core.lanes import Race, shown

Pairs = Sequence[tuple[str, str, str]]
"""Ratios to give: name, lane above, lane below."""


def result(
    *,
    name: str,
    unit: str,
    about: str,
    race: Race,
    main: str,
    pairs: Pairs,
    versions: Mapping[str, str],
    machine: Mapping[str, Any],
    **more: Any,
) -> dict[str, Any]:
    """Return the result: the main lane's runs and facts at the top, every lane's below ``lanes``."""
    lanes = {
        lane: {**statistics.spread(race.values(lane)), **_facts(race, lane)}
        for lane, samples in race.samples.items()
        if samples
    }
    ratios = {
        pair: statistics.ratio_of_pairs(race.values(above), race.values(below))
        for pair, above, below in pairs
        if race.values(above) and race.values(below)
    }
    return {
        "name": name,
        "unit": unit,
        "about": about,
        **{key: lanes[main][key] for key in ("runs", "median", "min", "max")},
        "ratios": ratios,
        **_facts(race, main),
        **more,
        "main": main,
        "lanes": lanes,
        "failures": race.failures,
        "versions": dict(versions),
        "machine": dict(machine),
    }


def _facts(race: Race, lane: str) -> dict[str, Any]:
    return statistics.medians([sample.facts for sample in race.samples[lane]])


def lines_of(outcome: Mapping[str, Any]) -> list[str]:
    """Return what people read of a result."""
    lines = []
    for lane, values in outcome["lanes"].items():
        lines.append(
            f"{outcome['name']}, {lane}: median {shown(values['median'])} {outcome['unit']}"
            f" (min {shown(values['min'])}, max {shown(values['max'])}, {len(values['runs'])} runs)"
        )
    lines += [f"  {lane}: {why}" for lane, why in outcome["failures"].items()]
    lines += [f"  ours / {peer}: {ratio:.3g}" for peer, ratio in outcome["ratios"].items()]
    lines += [f"  {key}: {value}" for key, value in _plain(outcome)]
    lines.append("  versions: " + ", ".join(f"{k} {v}" for k, v in outcome["versions"].items()))
    lines.append("  machine: " + ", ".join(f"{k} {v}" for k, v in outcome["machine"].items()))
    return lines


KNOWN = (
    "name",
    "unit",
    "about",
    "runs",
    "median",
    "min",
    "max",
    "main",
    "better",
    "size",
    "sized",
    "durable",
)


def _plain(outcome: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (key, shown(value) if isinstance(value, (int, float)) else str(value))
        for key, value in outcome.items()
        if key not in KNOWN and isinstance(value, (int, float, str))
    ]


def write(outcome: Mapping[str, Any], path: Path) -> None:
    """Write the JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(outcome, indent=1) + "\n")


def read(path: Path) -> dict[str, Any]:
    """Read it back."""
    return dict(json.loads(path.read_text()))
