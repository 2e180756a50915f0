"""enqueue-many: jobs a second through the bulk API, ids returned."""

from benchmarks.contenders.ours import OURS
from benchmarks.core.benchmark import Benchmark, Setting, lanes_of
from benchmarks.core.lanes import Lane
from benchmarks.suite.enqueue import enqueue


def lanes(setting: Setting) -> list[Lane]:
    """Return ours and each peer; those without a bulk API enqueue in a loop."""
    return lanes_of([OURS, *setting.peers], lambda contender: enqueue(setting, contender, "enqueue-many"))


BENCHMARK = Benchmark(
    name="enqueue-many",
    unit="jobs/s",
    about="the bulk API, one session, no worker",
    sized="jobs",
    size=100_000,
    short=10_000,
    lanes=lanes,
)
