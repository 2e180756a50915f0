"""The pages of the documentation as tests read them: tables, and blocks of code with what is said of them."""

import ast
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from devtools.docs import DOCS
from devtools.environments import ROOT

PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])
FENCE = re.compile(r"(?:^<!-- (?P<mark>[^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """A fenced block of code and the comment right before it, such as "run" or "module: shop.tasks"."""

    page: Path
    line: int
    language: str
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def kind(self) -> str:
        """The first word of the comment."""
        return self.mark.partition(":")[0]

    def compiled(self) -> types.CodeType:
        """Return the block's code, with the page's own line numbers."""
        padded = "\n" * self.line + self.text
        return compile(padded, str(self.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        line = text[: found.start("text")].count("\n")
        yield Block(page, line, found["language"], found["mark"] or "", found["text"])


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def blocks(kind: str | None = None, language: str = "python") -> list[Block]:
    """Return the blocks of a language, those of one kind or all."""
    return [block for block in BLOCKS if block.language == language and kind in (None, block.kind)]


def read(name: str) -> str:
    """Return the text of a page of docs/."""
    return (DOCS / name).read_text()


def rows_of_tables(text: str) -> list[list[str]]:
    """Return the cells of every row of every table, the headers too."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def without_code(page: Path) -> str:
    """Return a page's text without its blocks."""
    return FENCE.sub("", page.read_text())
