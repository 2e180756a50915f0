"""Tracebacks for people: the error and the project's own frames first, the whole text behind them.

What is parsed is Python's text of a traceback, as the queue stored it: the code that raised may be another
version than the one that shows it, or not be there at all.
"""

import re
from dataclasses import dataclass

_FRAME = re.compile(r'^ +File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)
_BEGINS = "Traceback (most recent call last):"
_LIBRARY = re.compile(
    r"[/\\](?:site-packages|dist-packages)[/\\]|[/\\][Ll]ib(?:64)?[/\\]python\d[^/\\]*[/\\]|^<frozen "
)
MOST_FRAMES = 8


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of the stack: where, and the source line that stood there."""

    file: str
    line: int
    function: str
    source: str

    @property
    def place(self) -> str:
        """The file's last parts, the line and the function: ``shop/tasks.py:210 in ship``."""
        return f"{short_file(self.file)}:{self.line} in {self.function}"


def own_frames(text: str) -> list[Frame]:
    """Return the project's own frames of the last error in a traceback, the innermost first."""
    start = text.rfind(_BEGINS)
    last = text[start:] if start >= 0 else text
    frames = [_frame(found, last) for found in _FRAME.finditer(last)]
    return [frame for frame in reversed(frames) if not is_library(frame.file)][:MOST_FRAMES]


def is_library(file: str) -> bool:
    """Return whether a file belongs to Python or to an installed package."""
    return bool(_LIBRARY.search(file))


def short_file(file: str) -> str:
    """Return the last two parts of a path."""
    return "/".join(re.split(r"[/\\]", file)[-2:])


def _frame(found: re.Match[str], text: str) -> Frame:
    following = text[found.end() + 1 :].split("\n", 1)[0]
    source = following.strip() if following.startswith("    ") and not _FRAME.match(following) else ""
    return Frame(found["file"], int(found["line"]), found["function"], source)
