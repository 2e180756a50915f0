"""Lets workers drain what waits and counts from outside.

The clock runs from the first job's start, by the marks, until the last job's end is stored: the tables hold
none that waits or runs. Of a larger queue of which only a part is watched, until the last watched job starts.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.contenders.base import Place
from benchmarks.core import statistics
from benchmarks.core.lanes import Sample
from benchmarks.core.processes import Failed, Workers, cpu_of_server, cpu_of_sessions, wait_for

START = 60.0
"""Seconds within which the first job must start."""
CUT = 12.0
"""Seconds after which a slow run ends; its rate is of what it did until then."""
SETTLE = 60.0
"""Seconds that the last ends may take to be stored."""


@dataclass(slots=True)
class Drained:
    """How a drain went; ``samples`` are (time, jobs started)."""

    jobs: int
    seconds: float
    samples: list[tuple[float, int]]
    cut: bool
    cost: dict[str, float]

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.jobs / max(self.seconds, 1e-6)

    def sample(self, **facts: object) -> Sample:
        """Return the rate with what it cost."""
        return Sample(self.rate, {**facts, **self.cost, **({"cut": True} if self.cut else {})})


def drain(
    place: Place,
    *,
    processes: int = 1,
    target: int | None = None,
    cut: float = CUT,
    watch: Callable[[Workers, int], object] | None = None,
) -> Drained:
    """Start workers, wait until ``target`` jobs have run (default: all), stop the workers.

    ``watch`` is called with the count at each look. Raises Failed when no job starts, a worker ends, or a job
    ran twice.
    """
    wanted = place.marks.jobs if target is None else target
    before = _readings(place)
    with place.work(processes) as workers:
        samples, idle_cpu = _first(place, workers)
        _count(place, workers, samples, wanted, cut, watch)
        finished = samples[-1][1] >= wanted
        if finished and target is None:
            finished = wait_for(lambda: place.left() == 0, SETTLE)
            samples.append((time.time(), samples[-1][1]))
        spent = cpu_of_sessions(workers.sessions())
    seconds, jobs = samples[-1][0] - samples[0][0], samples[-1][1]
    cost = {name: (value - before[name]) / jobs for name, value in _readings(place).items()}
    if spent is not None and idle_cpu is not None:
        cost["worker_cpu_us_per_job"] = (spent - idle_cpu) / jobs * 1e6
    if place.marks.doubles():
        raise Failed(f"{place.contender.name}: {place.marks.doubles()} jobs ran more than once")
    return Drained(jobs, seconds, samples, not finished, cost)


def _first(place: Place, workers: Workers) -> tuple[list[tuple[float, int]], float | None]:
    """Wait for the first job; return when it started, and what the workers had cost by then."""
    if not wait_for(lambda: workers.alive() and place.marks.first, START, pause=0.002):
        raise Failed(f"{place.contender.name}: no job started within {START:g} s: {workers.said()}")
    return [(place.marks.first, 0)], cpu_of_sessions(workers.sessions())


def _count(
    place: Place,
    workers: Workers,
    samples: list[tuple[float, int]],
    wanted: int,
    cut: float,
    watch: Callable[[Workers, int], object] | None,
) -> None:
    """Look at the marks until enough jobs have started or the time is over; note each look."""
    pause = 0.005 if place.marks.jobs <= 50_000 else 0.02 if place.marks.jobs <= 200_000 else 0.1
    while samples[-1][1] < wanted and time.time() - samples[0][0] < cut:
        time.sleep(pause)
        workers.alive()
        samples.append((time.time(), place.marks.count()))
        if watch:
            watch(workers, samples[-1][1])


def _readings(place: Place) -> dict[str, float]:
    """Read what the server has done so far; the workers' sessions have told it all when they are over."""
    if place.connection is None:
        return {}
    spent = cpu_of_server(place.postmaster)
    return {
        "wal_bytes_per_job": float(place.one("SELECT pg_current_wal_insert_lsn() - '0/0'")),
        "commits_per_job": float(place.one(COMMITS)),
        **({} if spent is None else {"server_cpu_us_per_job": spent * 1e6}),
    }


COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


def curve(samples: Sequence[tuple[float, int]], parts: int = 20) -> list[list[float]]:
    """Return, for equal parts of the jobs, how many had started at the part's end and the rate in it."""
    jobs = samples[-1][1]
    ends = [jobs * part / parts for part in range(parts + 1)]
    return [
        [round(high), round(statistics.rate_between(samples, low, high), 1)] for low, high in pairwise(ends)
    ]


def tenths(samples: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Return the rates over the first and the last tenth of the jobs."""
    jobs = samples[-1][1]
    first = statistics.rate_between(samples, 0, jobs * 0.1)
    return first, statistics.rate_between(samples, jobs * 0.9, jobs)
