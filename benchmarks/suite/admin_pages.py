"""admin-pages: how long the operator's pages take over a month of jobs, and a retry of many by a filter.

One database is filled and opened again and again: looking changes nothing. Each page goes through the whole
of Django, as a browser asks for it; what the browser then does is not in the figures.
"""

import os
import sys
from functools import partial
from typing import Any

from benchmarks.core import history
from benchmarks.core.benchmark import Benchmark, Setting
from benchmarks.core.lanes import Lane, Race, Sample
from benchmarks.core.processes import answer_of
from devtools.environments import ROOT

TIMES = 5
RETRIED = 10_000
RETRY = "retry by a filter"


def lanes(setting: Setting) -> list[Lane]:
    """Return the pages, and the retry, which works on the same database."""
    return [Lane("ours", partial(pages, setting)), Lane(RETRY, partial(retry, setting))]


def pages(setting: Setting) -> Sample:
    """Open every page; the value is the slowest page's milliseconds."""
    answer = answer_of(_driver("pages", TIMES), _environ(setting))
    found: dict[str, dict[str, Any]] = answer["pages"]
    slowest = max(found, key=lambda name: found[name]["ms"])
    return Sample(
        found[slowest]["ms"],
        {
            "rows": setting.size,
            "slowest_ms": found[slowest]["ms"],
            "slowest": slowest,
            "most_queries": max(page["queries"] for page in found.values()),
            "pages": found,
        },
    )


def retry(setting: Setting) -> Sample:
    """Retry many dead jobs; the value is the milliseconds from the press of the button to the last job."""
    jobs = min(RETRIED, setting.size // history.DEAD_EVERY // 6)
    answer = answer_of(_driver("retry", jobs), _environ(setting))
    return Sample(answer["retry_s"] * 1000, answer)


def _driver(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "benchmarks.contenders.drivers.pages", *map(str, arguments)]


def _environ(setting: Setting) -> dict[str, str]:
    name = f"pages_{setting.size}"
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "benchmarks.pages_settings"}

    def fill(url: str) -> None:
        answer_of(_driver("setup"), {**environ, "DATABASE_URL": url})
        history.fill(url, setting.size)

    setting.databases.template(name, fill)
    return {**environ, "DATABASE_URL": setting.databases.url(name)}


def finish(race: Race) -> dict[str, Any]:
    """Return what the retry did beside how long it took."""
    samples = race.samples.get(RETRY, [])
    if not samples:
        return {}
    facts = samples[-1].facts
    return {f"retry_{name}": value for name, value in facts.items()}


BENCHMARK = Benchmark(
    name="admin-pages",
    unit="ms",
    about="the slowest of the operator's pages, warm",
    sized="jobs",
    size=10_000_000,
    short=20_000,
    lanes=lanes,
    finish=finish,
    better="lower",
    takes_peers=False,
)
