"""Asks mypy and pyright about the users' code in tests/typing, and compares their answers with its comments.

``# error: CODE RULE`` stands on a line that both must refuse, mypy with this code and pyright with this
rule; all other lines must pass.  ``python -m devtools.snippets`` says what differs and then exits with 1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from devtools.environments import ROOT

SNIPPETS = ROOT / "tests" / "typing"
MARK = re.compile(r"# error: (?P<mypy>[a-z-]+) (?P<pyright>report\w+)$")


class Place(NamedTuple):
    """A line of a snippet."""

    file: str
    line: int


Errors = Mapping[Place, set[str]]


def main() -> int:
    """Compare both checkers with the comments; return the exit status."""
    differences = [
        f"{checker}: {difference}"
        for checker, ask in (("mypy", _ask_mypy), ("pyright", _ask_pyright))
        for difference in compare(expected(SNIPPETS, checker), ask())
    ]
    print("\n".join(differences) or "mypy and pyright say what the snippets expect")
    return int(bool(differences))


def expected(folder: Path, checker: str) -> dict[Place, str]:
    """Return the code or rule that each marked line asks for."""
    return {
        Place(path.name, number): mark[checker]
        for path in sorted(folder.glob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if (mark := MARK.search(line))
    }


def compare(wanted: Mapping[Place, str], found: Errors) -> Iterator[str]:
    """Yield what is refused without a mark, marked and not refused, or refused for another reason."""
    if not wanted:
        yield "no line is marked with an error: nothing has been tried"
    for place in sorted(wanted.keys() | found.keys()):
        said = ", ".join(sorted(found.get(place, ())))
        where = f"{place.file}:{place.line}"
        if place not in wanted:
            yield f"{where} is right, and refused: {said}"
        elif place not in found:
            yield f"{where} is wrong ({wanted[place]}), and passed"
        elif wanted[place] not in found[place]:
            yield f"{where} must be refused for {wanted[place]}, not for {said}"


def _ask_mypy() -> Errors:
    output = _run("mypy", "--output=json", str(SNIPPETS))
    messages = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return _gathered(
        (Place(Path(m["file"]).name, m["line"]), m["code"]) for m in messages if m["severity"] == "error"
    )


def _ask_pyright() -> Errors:
    output = _run("pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(SNIPPETS))
    messages = json.loads(output)["generalDiagnostics"]
    return _gathered(
        (Place(Path(m["file"]).name, m["range"]["start"]["line"] + 1), m.get("rule", "syntax"))
        for m in messages
        if m["severity"] == "error"
    )


def _run(checker: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", checker, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):  # 1 is what it should be: there are errors to be found
        sys.exit(f"{checker} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _gathered(errors: Iterable[tuple[Place, str]]) -> Errors:
    found: dict[Place, set[str]] = {}
    for place, code in errors:
        found.setdefault(place, set()).add(code)
    return found


if __name__ == "__main__":
    sys.exit(main())
