"""drain-processes: no-op jobs a second through two worker processes; also without keeping what succeeded."""

from benchmarks.contenders.base import BEST, Contender
from benchmarks.contenders.ours import OURS, UNKEPT
from benchmarks.core.benchmark import Benchmark, Setting, lanes_of
from benchmarks.core.lanes import Lane, Sample
from benchmarks.core.results import Pairs
from benchmarks.suite.drain import drain

PROCESSES = 2
OURS_UNKEPT = f"ours, {UNKEPT}"
"""Jobs are deleted once they have succeeded, as graphile-worker does; the clock ends when all are gone."""


def lanes(setting: Setting) -> list[Lane]:
    """Return ours, ours that keeps nothing, and each peer at its best."""

    def once(contender: Contender) -> Sample:
        return drain(setting, contender, BEST, PROCESSES)

    unkept = Lane(OURS_UNKEPT, lambda: drain(setting, OURS, UNKEPT, PROCESSES))
    return [*lanes_of([OURS], once), unkept, *lanes_of(setting.peers, once)]


def pairs(setting: Setting) -> Pairs:
    """Return the ratios, both of ours against each peer."""
    kept = [(peer.name, "ours", peer.name) for peer in setting.peers]
    unkept = [(f"{peer.name}, {UNKEPT}", OURS_UNKEPT, peer.name) for peer in setting.peers]
    return [*kept, *unkept]


BENCHMARK = Benchmark(
    name="drain-processes",
    unit="jobs/s",
    about="no-op jobs through two worker processes",
    sized="jobs",
    size=100_000,
    short=10_000,
    lanes=lanes,
    pairs=pairs,
)
