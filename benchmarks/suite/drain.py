"""drain: no-op jobs a second through one worker process, every attempt kept."""

from benchmarks.contenders.base import Contender
from benchmarks.contenders.ours import OURS
from benchmarks.core import draining
from benchmarks.core.benchmark import Benchmark, Setting, both_configurations, pairs_of_both
from benchmarks.core.lanes import Lane, Sample
from benchmarks.core.limit import limit
from benchmarks.core.results import Pairs

LIMIT = "limit"


def lanes(setting: Setting) -> list[Lane]:
    """Return ours and each peer, at their best and with defaults, and the limit."""

    def once(contender: Contender, configuration: str) -> Sample:
        return drain(setting, contender, configuration)

    return [
        *both_configurations([OURS, *setting.peers], once),
        Lane(LIMIT, lambda: limit(setting.databases, setting.size)),
    ]


def drain(setting: Setting, contender: Contender, configuration: str, processes: int = 1) -> Sample:
    """Drain once."""
    with contender.place(setting.databases, setting.size, configuration) as place:
        drained = draining.drain(place, processes=processes)
        return drained.sample(**contender.kept(place))


def pairs(setting: Setting) -> Pairs:
    """Return the ratios, the share of the limit among them."""
    return [*pairs_of_both(setting), (LIMIT, "ours", LIMIT)]


BENCHMARK = Benchmark(
    name="drain",
    unit="jobs/s",
    about="no-op jobs through one worker process, from the first start to the last end in the tables",
    sized="jobs",
    size=20_000,
    short=5_000,
    lanes=lanes,
    pairs=pairs,
)
