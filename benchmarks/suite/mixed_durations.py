"""mixed-durations: do the few long jobs make the many short ones wait?

One job in a hundred takes 2 s, the others 1 ms, for 2 processes of 8 threads. For comparison all jobs take
the same time, chosen so that there is as much work as before.
"""

import time
from functools import partial
from typing import Any

from benchmarks.contenders.base import DEFAULTS
from benchmarks.contenders.ours import OURS
from benchmarks.core.benchmark import Benchmark, Setting
from benchmarks.core.lanes import Lane, Race, Sample
from benchmarks.core.processes import Failed, Workers, wait_for
from benchmarks.core.statistics import percentile, ratio_of_pairs

FLAGS = ("--processes", "2", "--threads", "8")
SHORT, LONG, EVERY = 0.001, 2.0, 100
EQUAL = SHORT + (LONG - SHORT) / EVERY
INTERVAL = 1 / 300
PATIENCE = 60.0
WITHOUT = "ours, without long ones"


def lanes(setting: Setting) -> list[Lane]:
    """Return the mixture, and equal jobs."""
    return [
        Lane("ours", partial(mixed, setting, SHORT, EVERY)),
        Lane(WITHOUT, partial(mixed, setting, EQUAL, 0)),
    ]


def mixed(setting: Setting, short: float, every: int) -> Sample:
    """Enqueue jobs at a steady rate; the value is the 99th percentile of the short ones' waits, in ms."""
    with OURS.place(setting.databases, 0, DEFAULTS, more=setting.size) as place:
        with Workers([OURS.runworkers(*FLAGS)], place.environ) as workers:
            time.sleep(OURS.warm_up)
            workers.alive()
            place.ask("mixed", setting.size, INTERVAL, short, LONG, every)
            if not wait_for(lambda: place.marks.count() == setting.size, PATIENCE):
                raise Failed(f"{place.marks.count()} of {setting.size} jobs have run: {workers.said()}")
        waits = place.marks.waits()
    counted = [seconds * 1000 for job, seconds in waits.items() if not every or job % every]
    p99 = percentile(counted, 99)
    return Sample(
        p99, {"p50_wait_ms": percentile(counted, 50), "p99_wait_ms": p99, "max_wait_ms": max(counted)}
    )


def finish(race: Race) -> dict[str, Any]:
    """Return how many times longer the short ones wait among long ones."""
    if not race.values(WITHOUT):
        return {}
    return {"over_without_long": ratio_of_pairs(race.values("ours"), race.values(WITHOUT))}


BENCHMARK = Benchmark(
    name="mixed-durations",
    unit="ms",
    about="99th percentile of the wait of 1 ms jobs among 1 % of 2 s; 2 processes of 8 threads, 300 jobs/s",
    sized="jobs",
    size=6_000,
    short=900,
    lanes=lanes,
    better="lower",
    finish=finish,
    takes_peers=False,
)
