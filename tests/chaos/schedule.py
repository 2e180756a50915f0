"""Which fault comes next: every one once, then by weight; the same seed gives the same order."""

import random
from collections.abc import Iterator

from .faults import FAULTS, Fault


def drawn(seed: int, faults: list[Fault]) -> Iterator[Fault]:
    """Yield faults without end: first each once, then from a bag with as many of each as its weight says."""
    chance = random.Random(seed)
    first = sorted(faults, key=lambda fault: fault.name)
    chance.shuffle(first)
    yield from first
    while True:
        bag = [fault for fault in sorted(faults, key=lambda fault: fault.name) for _ in range(fault.weight)]
        chance.shuffle(bag)
        yield from bag


def chosen(names: list[str] | None) -> list[Fault]:
    """Return the faults of these names, or all; raises ValueError naming one that there is not."""
    if not names:
        return list(FAULTS.values())
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        raise ValueError(f"There is no fault {unknown[0]!r}: choose from {', '.join(sorted(FAULTS))}.")
    return [FAULTS[name] for name in names]
