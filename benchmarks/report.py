"""Writes docs/performance.md and its plots from results: ``python -m benchmarks.report [DIRECTORY]``.

DIRECTORY has one JSON file for each benchmark, as ``python -m benchmarks all --json DIRECTORY`` writes them;
without one it is docs/performance, where the results of the documentation lie.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import svg
from benchmarks.core import results
from benchmarks.core.lanes import shown
from benchmarks.suite.registry import BENCHMARKS
from devtools.docs import DOCS, table

PAGE = DOCS / "performance.md"
FOLDER = DOCS / "performance"
Results = Sequence[Mapping[str, Any]]
NAME = "django_pgqueue"

INTRODUCTION = """# Performance

<!-- Written by `python -m benchmarks.report`: change benchmarks/report.py or the results, not this page. -->

Figures of `python -m benchmarks`, on one machine, beside other queues on the same server in the same run.
Every figure is a median with the lowest and the highest of its runs; the runs of all contenders alternate.

- **Counted from outside.** Every task marks a byte in a shared file, whatever queue runs it: that gives the
  first start and shows a job that ran twice. The end is when the tables hold no job that waits or runs.
- **Durable.** `fsync`, `synchronous_commit` and `full_page_writes` are on; an enqueued job and a finished one
  have been written to disk. Redis, which Celery uses, runs with its package's defaults and is not durable.
- **Equal beginnings.** Each run gets a copy of the same database, vacuumed and analysed, after a checkpoint.
- **Best and defaults.** A peer's best configuration is what its documentation advises for short jobs, as far
  as it helped; "defaults" are what it does unasked. Newest versions, each in an environment of its own.

A ratio is this project's figure divided by the peer's: the median of the ratios of runs side by side.
"""

HOW = """## Measure it yourself

    make test                                      # makes .venv
    make bench                                     # small sizes, this project alone
    .venv/bin/python -m benchmarks drain --vs pgqueuer,graphile-worker --json drain.json
    .venv/bin/python -m benchmarks all --vs all --json docs/performance
    .venv/bin/python -m benchmarks.report          # writes this page and its plots

A private server is started; `DATABASE_URL` names another, on which each measurement makes a database of its
own and drops it. `--size` and `--runs` change what their names say. A peer that lacks something, such as
Node.js or a Redis server, is reported as one that cannot run here. The JSON has the runs of every contender.
"""


def page(found: Results) -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    if found:
        parts += [_surroundings(found), _overview(found)]
        parts += [_section(one) for one in found]
    else:
        parts.append("No results are stored yet.\n")
    return "\n".join([*parts, HOW])


def plots(found: Results) -> dict[str, str]:
    """Return the plots by file name."""
    made = {}
    for one in found:
        made[f"{one['name']}.svg"] = _bars(one)
        curves = _curves(one)
        if curves:
            made[f"{one['name']}-curve.svg"] = curves
    return made


# --- what the figures depend on


def _surroundings(found: Results) -> str:
    machine = dict.fromkeys(key for one in found for key in one["machine"] if key != "load")
    rows = [(key.replace("_", " "), _values(found, "machine", key)) for key in machine]
    loads = [one["machine"]["load"] for one in found if one["machine"].get("load") is not None]
    rows.append(("load after each benchmark", f"{min(loads)} to {max(loads)}" if loads else "unknown"))
    versions = dict.fromkeys(key for one in found for key in one["versions"])
    rows += [(key, _values(found, "versions", key)) for key in versions]
    return f"## Machine and versions\n\n{table(('what', 'is'), rows)}\n"


def _values(found: Results, part: str, key: str) -> str:
    return ", ".join(dict.fromkeys(str(one[part][key]) for one in found if key in one[part]))


# --- the figures


def _overview(found: Results) -> str:
    rows = [
        (
            f"[{one['name']}](#{one['name']})",
            f"{shown(one['median'])} {one['unit']}",
            f"{shown(one['min'])} – {shown(one['max'])}",
            one["better"],
            ", ".join(f"{peer} {shown(ratio)}" for peer, ratio in one["ratios"].items()) or "–",
        )
        for one in found
    ]
    header = ("benchmark", "median", "lowest – highest", "better is", f"{NAME} ÷ peer")
    return f"## In short\n\n{table(header, rows)}\n"


def _section(one: Mapping[str, Any]) -> str:
    rows = [
        (
            _named(lane),
            shown(values["median"]),
            f"{shown(values['min'])} – {shown(values['max'])}",
            _ratio(one, lane),
        )
        for lane, values in one["lanes"].items()
    ]
    runs = len(one["runs"])
    parts = [
        f"## {one['name']}",
        f"{one['about'][0].upper()}{one['about'][1:]}. {one['size']:,} {one['sized']}, {runs} runs;"
        f" {one['better']} is better.",
        f"![{one['name']}](performance/{one['name']}.svg)",
        table(("", f"median, {one['unit']}", "lowest – highest", "ratio"), rows),
    ]
    if _curves(one):
        parts.append(f"![{one['name']}, as it goes on](performance/{one['name']}-curve.svg)")
    parts += [f"- {_named(lane)}: {why}" for lane, why in one["failures"].items()]
    facts = [(key.replace("_", " "), value) for key, value in _facts(one)]
    if facts:
        parts.append(table((f"{NAME}", "median"), facts))
    for name, plan in one.get("plans", {}).items():
        parts.append(f"{_named(name).capitalize() if name != 'ours' else NAME}:\n\n```text\n{plan}\n```")
    return "\n\n".join(parts) + "\n"


def _named(lane: str) -> str:
    return lane.replace("ours", NAME, 1) if lane.startswith("ours") else lane


def _ratio(one: Mapping[str, Any], lane: str) -> str:
    return shown(one["ratios"][lane]) if lane in one["ratios"] else ""


KNOWN = ("size", "durable", "median", "min", "max")


def _facts(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the plain numbers of a result, and those of its mappings, as rows."""
    rows = []
    for key, value in one.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and key not in KNOWN:
            rows.append((key, shown(value)))
        elif isinstance(value, Mapping) and key not in ("ratios", "lanes", "versions", "machine", "failures"):
            rows += [(f"{key} {name}", shown(v)) for name, v in value.items() if isinstance(v, (int, float))]
    return rows


# --- plots


def _bars(one: Mapping[str, Any]) -> str:
    rows = [
        svg.Bar(
            _named(lane),
            values["median"],
            values["min"],
            values["max"],
            lane.startswith("ours"),
            f"{shown(values['median'])}",
        )
        for lane, values in one["lanes"].items()
    ]
    return svg.bars(f"{one['name']}: {one['unit']} ({one['better']} is better)", rows)


def _curves(one: Mapping[str, Any]) -> str:
    rows = [
        svg.Line(_named(lane), values["curve"])
        for lane, values in one["lanes"].items()
        if len(values.get("curve", ())) > 1
    ]
    if not rows:
        return ""
    unit = one["unit"] if one["name"] == "memory" else "jobs/s"
    return svg.lines(f"{one['name']}, as it goes on", "jobs", unit, rows)


# --- the command


def load(directory: Path) -> list[dict[str, Any]]:
    """Return the results in a directory, in the order of the benchmarks."""
    paths = [directory / f"{name}.json" for name in BENCHMARKS]
    return [results.read(path) for path in paths if path.exists()]


def write(found: Results, target: Path) -> None:
    """Write the page, and the plots into the folder of its name."""
    target.write_text(page(found))
    folder = target.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, plot in plots(found).items():
        (folder / name).write_text(plot)


def main(arguments: Sequence[str]) -> int:
    """Write the page; return the exit status."""
    directory = Path(arguments[0]) if arguments else FOLDER
    FOLDER.mkdir(exist_ok=True)
    if not directory.is_dir():
        print(f"{directory} is not a directory", file=sys.stderr)
        return 2
    found = load(directory)
    write(found, PAGE)
    print(f"{PAGE.name}: written from {len(found)} results in {directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
