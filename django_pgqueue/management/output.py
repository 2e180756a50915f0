"""What commands write: tables with aligned columns, JSON, and a bar while something long goes on.

The bar goes to stderr, and only to a terminal: what a program reads from stdout stays clean.
"""

import json
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

WIDTH = 30
REDRAW_EVERY = 0.1


def dumped(value: Any) -> str:
    """Return JSON for programs: indented, with times in ISO format."""
    return json.dumps(value, indent=2, default=str, ensure_ascii=False)


def table(rows: Sequence[Sequence[str]], *, numbers: frozenset[int] = frozenset()) -> list[str]:
    """Return lines with aligned columns; ``numbers`` are the columns that are aligned to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    return [
        "  ".join(
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


class Bar:
    """``with Bar("retried", 5000) as bar: bar.add(1000)``; without a total it shows numbers only."""

    def __init__(self, label: str, total: int | None, stream: TextIO | None = None) -> None:
        self._label = label
        self._total = total
        self._stream = stream or sys.stderr
        self._done = 0
        self._began = time.monotonic()
        self._drawn_at = float("-inf")

    def __enter__(self) -> "Bar":
        self._draw(now=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._draw(now=True)
        if self._stream.isatty():
            self._stream.write("\n")

    def add(self, count: int) -> None:
        """Say that so many more are done."""
        self._done += count
        self._draw()

    def _draw(self, *, now: bool = False) -> None:
        moment = time.monotonic()
        if not self._stream.isatty() or (not now and moment - self._drawn_at < REDRAW_EVERY):
            return
        self._drawn_at = moment
        rate = self._done / max(moment - self._began, 0.001)
        numbers = f"{self._done:,}" if self._total is None else f"{self._done:,} of {self._total:,}"
        full = WIDTH if not self._total else min(WIDTH * self._done // self._total, WIDTH)
        bar = "" if self._total is None else f"[{'#' * full}{'.' * (WIDTH - full)}] "
        self._stream.write(f"\r{bar}{numbers} {self._label}, {rate:,.0f}/s \033[K")
        self._stream.flush()
