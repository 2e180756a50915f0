"""Charts as geometry: numbers in, rectangles and paths out; the templates draw them as SVG.

A chart is drawn in a box of ``WIDTH`` by ``HEIGHT`` that the page stretches to the room there is, so nothing
in it is text: the scale and the times stand beside it in HTML, and what a picture tells is also told in
words.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 120
GAP = 0.16
"""Part of a bin's width that stays free between two bars."""
LEAST = 1.5
"""Height of the smallest bar that is not nothing: a single failure among thousands must be seen."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar; ``kind`` chooses its colour."""

    kind: str
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True, slots=True)
class Bar:
    """What stands above one bin; ``told`` says it in words."""

    told: str
    x: str
    width: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line; where a value is missing it is broken."""

    kind: str
    label: str
    path: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture with its scale (``top`` in words), its times, and what it tells in a sentence."""

    name: str
    title: str
    covers: str
    summary: str
    top: str
    times: tuple[str, ...]
    middle: str = ""
    bars: tuple[Bar, ...] = ()
    lines: tuple[Line, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to draw."""
        return not any(bar.parts for bar in self.bars) and not any(line.path for line in self.lines)


def nice_top(highest: float) -> float:
    """Return the end of a scale for values up to ``highest``: 1, 2, 5 or 10 times a power of ten."""
    if highest <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= highest:
        power *= 10
    while power > highest:
        power /= 10
    return next(power * step for step in (1, 2, 5, 10) if power * step >= highest * 0.999999)


def stacked(
    columns: Sequence[tuple[str, Sequence[float]]], told: Callable[[int], str], top: float
) -> tuple[Bar, ...]:
    """Return a bar for each bin: the columns, ``(kind, values)``, stacked, the first at the bottom."""
    bins = len(columns[0][1]) if columns else 0
    step = WIDTH / max(bins, 1)
    bars = []
    for index in range(bins):
        x, width = index * step + step * GAP / 2, step * (1 - GAP)
        parts, at = [], float(HEIGHT)
        for kind, values in columns:
            if values[index] <= 0:
                continue
            height = max(values[index] / top * HEIGHT, LEAST)
            at = max(at - height, 0.0)
            parts.append(Part(kind, _number(x), _number(at), _number(width), _number(height)))
        bars.append(Bar(told(index), _number(index * step), _number(step), tuple(parts)))
    return tuple(bars)


def path(shares: Sequence[float | None]) -> str:
    """Return the ``d`` of a line through the middles of the bins; a value alone becomes a short dash.

    ``shares`` are parts of the scale, from 0 at the bottom to 1.
    """
    step = WIDTH / max(len(shares), 1)
    pieces: list[str] = []
    for index, share in enumerate(shares):
        if share is None:
            continue
        x, y = (index + 0.5) * step, HEIGHT - min(max(share, 0.0), 1.0) * (HEIGHT - 2) - 1
        goes_on = index > 0 and shares[index - 1] is not None
        alone = not goes_on and (index + 1 == len(shares) or shares[index + 1] is None)
        pieces.append(f"{'L' if goes_on else 'M'}{_number(x)} {_number(y)}")
        if alone:
            pieces.append(f"h{_number(step / 3)}")
    return "".join(pieces)


def on_log_scale(value: float, bottom: float, top: float) -> float:
    """Return where a value stands between ``bottom`` (0) and ``top`` (1) when each step multiplies."""
    return math.log(max(value, bottom) / bottom) / math.log(top / bottom)


def area(values: Sequence[float], top: float, width: float, height: float) -> str:
    """Return the ``d`` of a filled shape below the values, for small pictures in a table."""
    step = width / max(len(values), 1)
    tops = "".join(
        f"L{_number(index * step)} {_number(y)}L{_number((index + 1) * step)} {_number(y)}"
        for index, value in enumerate(values)
        for y in (height - min(value / top, 1.0) * height,)
    )
    return f"M0 {_number(height)}{tops}L{_number(width)} {_number(height)}Z" if any(values) else ""


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
