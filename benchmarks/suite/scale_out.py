"""scale-out: tasks that wait 5 ms, for 1, 2, 4 and 8 child processes with the default number of threads."""

from functools import partial
from typing import Any

from benchmarks.contenders.base import DEFAULTS
from benchmarks.contenders.ours import OURS
from benchmarks.core import draining
from benchmarks.core.benchmark import Benchmark, Setting
from benchmarks.core.lanes import Lane, Race, Sample
from benchmarks.core.statistics import ratio_of_pairs

CHILDREN = (1, 2, 4, 8)
SECONDS = 0.005


def lanes(setting: Setting) -> list[Lane]:
    """Return a lane for each number of children; one child is the main one."""
    return [Lane(name_of(children), partial(drain, setting, children)) for children in CHILDREN]


def name_of(children: int) -> str:
    """Return the lane's name."""
    return "ours" if children == 1 else f"ours, {children} children"


def drain(setting: Setting, children: int) -> Sample:
    """Drain ``size`` jobs for each child."""
    jobs = setting.size * children
    with OURS.place(setting.databases, 0, DEFAULTS, more=jobs) as place:
        place.ask("busy", jobs, 0, SECONDS)
        return draining.drain(place, processes=children).sample(children=children)


def finish(race: Race) -> dict[str, Any]:
    """Return each number's rate over so many times that of one child."""
    linear = {
        str(children): ratio_of_pairs(race.values(name_of(children)), race.values("ours")) / children
        for children in CHILDREN[1:]
        if race.values(name_of(children))
    }
    return {"linear": linear, "lowest_linear": min(linear.values(), default=0.0)}


BENCHMARK = Benchmark(
    name="scale-out",
    unit="jobs/s",
    about="tasks that wait 5 ms, by one child; other lanes by several",
    sized="jobs for each child",
    size=4_000,
    short=400,
    lanes=lanes,
    finish=finish,
    takes_peers=False,
)
