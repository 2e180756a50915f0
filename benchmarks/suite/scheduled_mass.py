"""scheduled-mass: very many jobs are due at one and the same moment; how soon have all of them run?

An idle worker waits for the moment. The clock runs from there until the last end is in the tables.
"""

import time
from functools import partial
from typing import Any

from benchmarks.contenders.base import BEST
from benchmarks.contenders.ours import OURS
from benchmarks.core import draining, filling
from benchmarks.core.benchmark import Benchmark, Setting
from benchmarks.core.lanes import Lane, Race, Sample
from benchmarks.core.processes import Failed, wait_for
from benchmarks.core.statistics import ratio_of_pairs

LEAD = 3.0
ROWS_PER_SECOND = 20_000
"""The moment lies ahead by ``LEAD`` seconds and the time that so slow an insert would take."""
PATIENCE = 600.0
READY = "ours, ready"


def lanes(setting: Setting) -> list[Lane]:
    """Return ours, and for comparison a drain of as many ready jobs."""
    return [Lane("ours", partial(scheduled, setting)), Lane(READY, partial(ready, setting))]


def scheduled(setting: Setting) -> Sample:
    """Let all become due at once; the value is jobs per second from that moment on."""
    with OURS.place(setting.databases, 0, BEST, more=setting.size) as place, place.work() as workers:
        time.sleep(OURS.warm_up)
        due = time.time() + LEAD + setting.size / ROWS_PER_SECOND
        place.run(filling.due_at(setting.size, due))
        if time.time() > due:
            raise Failed("the jobs were due before the last was inserted")
        if not wait_for(lambda: workers.alive() and place.marks.count() == setting.size, PATIENCE, 0.02):
            raise Failed(f"{place.marks.count()} of {setting.size} jobs have run: {workers.said()}")
        wait_for(lambda: place.left() == 0, draining.SETTLE)
        seconds = time.time() - due
        first = place.marks.first - due
    return Sample(setting.size / seconds, {"first_start_ms": first * 1000, "all_ended_s": seconds})


def ready(setting: Setting) -> Sample:
    """Drain as many that are ready."""
    with OURS.place(setting.databases, setting.size, BEST) as place:
        return draining.drain(place, cut=PATIENCE).sample()


def finish(race: Race) -> dict[str, Any]:
    """Return the rate over that of a drain of ready jobs."""
    if not race.values(READY):
        return {}
    return {"over_drain": ratio_of_pairs(race.values("ours"), race.values(READY))}


BENCHMARK = Benchmark(
    name="scheduled-mass",
    unit="jobs/s",
    about="no-op jobs that are all due at one moment, from that moment to the last end in the tables",
    sized="jobs",
    size=100_000,
    short=5_000,
    lanes=lanes,
    finish=finish,
    takes_peers=False,
)
