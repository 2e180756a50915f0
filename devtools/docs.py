"""Writes the generated parts of the documentation: the state diagram, the verbs, the worker's flags, the API.

Each part stands between two comments in a Markdown file, so that the text around it is edited by hand:

    <!-- generated: NAME -->
    <!-- end of NAME -->

`python -m devtools.docs` writes every part anew from the code; `python -m devtools.docs --check` writes
nothing and exits with 1 when a part is out of date.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields

import django
from django.core.management.base import BaseCommand

from devtools.environments import ROOT
from devtools.reference import api_reference
from django_pgqueue.conf import Options
from django_pgqueue.states import TRANSITIONS

DOCS = ROOT / "docs"
PART = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(<!-- end of (?P=name) -->)", re.DOTALL)
NOBODY = "[*]"
"""Mermaid's sign for "not there yet" and "gone"."""


def diagram() -> str:
    """Return the state machine in mermaid: an arrow for each pair of states, labelled with its verbs."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for arrow in TRANSITIONS:
        known = verbs.setdefault((arrow.source or NOBODY, arrow.target or NOBODY), [])
        if arrow.verb not in known:
            known.append(arrow.verb)
    lines = [f"    {source} --> {target} : {', '.join(names)}" for (source, target), names in verbs.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def verb_table() -> str:
    """Return every arrow of the state machine as a row: verb, from, to, when, attempt row."""
    return table(
        ("verb", "from", "to", "when", "attempt row"),
        (
            (
                f"`{t.verb}`",
                t.source or "–",
                t.target or "gone",
                t.when,
                f"`{t.outcome}`" if t.outcome else "",
            )
            for t in TRANSITIONS
        ),
    )


def flag_table() -> str:
    """Return the flags of `runworkers` that are not Django's own: flag, option that it overrides, meaning."""
    return table(
        ("flag", "overrides", "meaning"),
        ((f"`{flag}`", f"`{option}`" if option else "", text) for flag, option, text in flags()),
    )


def flags() -> list[tuple[str, str, str]]:
    """Return ``(flag with its value, option of OPTIONS or "", help)`` for each flag of `runworkers`."""
    # Needs the app registry, which main() or pytest-django has set up by now.
    from django_pgqueue.management.commands.runworkers import Command

    options = {field.name for field in fields(Options)} | {"no_notify"}
    mine = _actions(Command()).keys() - _actions(BaseCommand()).keys()
    return [
        (
            name if action.nargs == 0 else f"{name} {action.metavar or _placeholder(action)}",
            action.dest.removeprefix("no_") if action.dest in options else "",
            (action.help or "") % {"default": action.default},
        )
        for name, action in _actions(Command()).items()
        if name in mine
    ]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


PARTS: dict[str, Callable[[], str]] = {
    "state-diagram": diagram,
    "verb-table": verb_table,
    "flag-table": flag_table,
    "api-reference": api_reference,
}


def regenerated(text: str) -> str:
    """Return a document with its generated parts written anew; raises KeyError for a part nobody makes."""
    return PART.sub(lambda part: f"{part[1]}{PARTS[part['name']]()}\n{part[3]}", text)


def _actions(command: BaseCommand) -> dict[str, argparse.Action]:
    parser = command.create_parser("manage.py", "runworkers")
    return {action.option_strings[0]: action for action in parser._actions if action.option_strings}


def _placeholder(action: argparse.Action) -> str:
    for beginning, placeholder in (("seconds", "S"), ("comma-separated", "LIST"), ("alias", "ALIAS")):
        if (action.help or "").startswith(beginning):
            return placeholder
    return "N"


def main(arguments: Sequence[str]) -> int:
    """Write or check all documents; return the exit status."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    stale = []
    for path in sorted(DOCS.rglob("*.md")):
        old = path.read_text()
        new = regenerated(old)
        if new != old:
            stale.append(path.relative_to(ROOT))
            if "--check" not in arguments:
                path.write_text(new)
    for name in stale:
        print(f"{name}: {'out of date' if '--check' in arguments else 'written'}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
