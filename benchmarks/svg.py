"""Plots as SVG, by hand: bars with their spread, and lines. No library is needed to make or to show them."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, LABELS, NUMBERS, ROW = 760, 230, 150, 28
OURS, OTHERS, INK, PALE = "#2563a8", "#9aa4ae", "#222222", "#dddddd"
COLOURS = (OURS, "#c2571a", "#3c8d4f", "#8a4fa3", "#6b6b6b", "#b03a48")
FONT = 'font-family="sans-serif" font-size="13"'


class Bar(NamedTuple):
    """One bar; ``ours`` gives it the project's colour."""

    label: str
    median: float
    low: float
    high: float
    ours: bool
    written: str


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return a plot with a horizontal bar for each row and a line from its lowest to its highest run."""
    most = max(row.high for row in rows) or 1.0
    room = WIDTH - LABELS - NUMBERS
    parts = [_text(10, 20, title, weight="bold")]
    for number, row in enumerate(rows):
        top = 36 + number * ROW
        middle = top + 10
        length, low, high = (value / most * room for value in (row.median, row.low, row.high))
        parts += [
            _text(LABELS - 8, top + 14, row.label, anchor="end"),
            f'<rect x="{LABELS}" y="{top}" width="{max(length, 1):.1f}" height="20" '
            f'fill="{OURS if row.ours else OTHERS}"/>',
            f'<path d="M{LABELS + low:.1f} {middle}H{LABELS + high:.1f}" stroke="{INK}" stroke-width="1.5"/>',
            _text(LABELS + high + 8, top + 14, row.written),
        ]
    return _page(36 + len(rows) * ROW + 10, parts)


class Line(NamedTuple):
    """One line through points (x, y)."""

    label: str
    points: Sequence[Sequence[float]]


def lines(title: str, across: str, up: str, rows: Sequence[Line]) -> str:
    """Return a plot of lines; both axes begin at 0 and say their greatest value."""
    left, top, width, height = 70, 40, WIDTH - 100, 220
    most_x = max(x for row in rows for x, _ in row.points) or 1
    most_y = max(y for row in rows for _, y in row.points) or 1
    parts = [
        _text(10, 20, title, weight="bold"),
        f'<path d="M{left} {top}V{top + height}H{left + width}" fill="none" stroke="{INK}"/>',
        f'<path d="M{left} {top}H{left + width}" stroke="{PALE}"/>',
        _text(left - 6, top + 5, f"{most_y:,.0f}", anchor="end"),
        _text(left - 6, top + height, "0", anchor="end"),
        _text(left + width, top + height + 18, f"{most_x:,.0f} {across}", anchor="end"),
        _text(left, top - 6, up),
    ]
    for number, row in enumerate(rows):
        colour = COLOURS[number % len(COLOURS)]
        placed = [
            f"{left + x / most_x * width:.1f},{top + height - y / most_y * height:.1f}" for x, y in row.points
        ]
        line = " ".join(placed)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(left + 10, top + height + 40 + 18 * number, row.label, colour=colour))
    return _page(top + height + 50 + 18 * len(rows), parts)


def _text(
    x: float, y: float, text: str, anchor: str = "start", weight: str = "normal", colour: str = INK
) -> str:
    how = f'text-anchor="{anchor}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {FONT} {how}>{escape(text)}</text>'


def _page(height: float, parts: Sequence[str]) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    background = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', background, *parts, "</svg>", ""])
