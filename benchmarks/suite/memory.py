"""memory: the resident memory of the process that runs the tasks, while very many jobs pass through it."""

from benchmarks.contenders.base import Contender
from benchmarks.contenders.ours import OURS
from benchmarks.core import draining
from benchmarks.core.benchmark import Benchmark, Setting, lanes_of
from benchmarks.core.lanes import CannotRun, Lane, Sample
from benchmarks.core.processes import Workers, memory_of
from benchmarks.core.statistics import slope

SETTLED = 100_000
"""Jobs after which memory should grow no more; a tenth of all, if there are fewer."""
CUT = 1800.0


def lanes(setting: Setting) -> list[Lane]:
    """Return ours and each peer."""
    return lanes_of([OURS, *setting.peers], lambda contender: memory(setting, contender))


def memory(setting: Setting, contender: Contender) -> Sample:
    """Drain and watch; the value is the memory at the first job, in MB of 10^6 bytes."""
    points: list[tuple[float, float]] = []
    with contender.place(setting.databases, setting.size) as place:

        def watch(_: Workers, jobs: int) -> None:
            resident = memory_of(place.marks.process)
            if resident is not None:
                points.append((float(jobs), resident))

        drained = draining.drain(place, cut=CUT, watch=watch)
    if not points:
        raise CannotRun("the memory of a process cannot be read on this system: there is no /proc")
    settled = min(SETTLED, setting.size // 10)
    later = [(jobs / 100_000, resident) for jobs, resident in points if jobs >= settled]
    return Sample(
        points[0][1],
        {
            "rss_start_mb": points[0][1],
            "rss_end_mb": points[-1][1],
            "rss_slope_mb_per_100k": slope(later),
            "rate": drained.rate,
            "curve": [[jobs, round(resident, 2)] for jobs, resident in points[:: max(len(points) // 50, 1)]],
        },
    )


BENCHMARK = Benchmark(
    name="memory",
    unit="MB",
    about="resident memory of one task process at its first job, and how it grows",
    sized="jobs",
    size=1_000_000,
    short=10_000,
    lanes=lanes,
    better="lower",
)
