"""pinned-horizon: a transaction stays open, so that no dead row can be removed, while very many jobs pass."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from benchmarks.contenders.base import BEST, Contender, Place
from benchmarks.contenders.ours import OURS
from benchmarks.core import draining
from benchmarks.core.benchmark import Benchmark, Setting, lanes_of
from benchmarks.core.lanes import Lane, Sample
from benchmarks.core.processes import Workers
from benchmarks.core.statistics import percentile

CUT = 600.0
CLAIMS = "FROM pg_stat_statements WHERE query LIKE '%picked AS MATERIALIZED%'"
CALLS = f"SELECT coalesce(sum(calls), 0) {CLAIMS}"
SPENT = f"SELECT coalesce(sum(total_exec_time), 0) {CLAIMS}"


def lanes(setting: Setting) -> list[Lane]:
    """Return ours and each peer that keeps its jobs in PostgreSQL."""
    return lanes_of([OURS, *setting.peers], lambda contender: pinned(setting, contender))


def pinned(setting: Setting, contender: Contender) -> Sample:
    """Drain under an open snapshot; the value is the rate of the last tenth over that of the first."""
    with contender.place(setting.databases, setting.size, BEST) as place:
        claims = Claims(place, setting.size) if contender is OURS else None
        with snapshot(place):
            drained = draining.drain(place, cut=CUT, watch=claims.look if claims else None)
    first, last = draining.tenths(drained.samples)
    facts = {
        "last_tenth_over_first": last / first,
        "first_tenth_jobs_per_s": first,
        "last_tenth_jobs_per_s": last,
        "jobs": drained.jobs,
        "curve": draining.curve(drained.samples),
        **(claims.facts() if claims else {}),
    }
    return Sample(last / first, facts)


@contextmanager
def snapshot(place: Place) -> Iterator[None]:
    """Keep a REPEATABLE READ transaction open that has read the queue's table."""
    with psycopg.connect(place.url, application_name="benchmarks") as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute(f"SELECT count(*) FROM {place.contender.table}")
        yield


class Claims:
    """How long the server took for claims, as pg_stat_statements has it between one look and the next."""

    def __init__(self, place: Place, jobs: int) -> None:
        self._place, self._tenth, self._jobs = place, jobs / 10, jobs
        self._seen = (0.0, 0.0)
        self._times: list[tuple[int, float]] = []
        self._known = self._extension(place)

    def look(self, _: Workers, jobs: int) -> None:
        """Note the mean time of the claims since the last look."""
        if not self._known:
            return
        now = (float(self._place.one(CALLS)), float(self._place.one(SPENT)))
        calls, spent = now[0] - self._seen[0], now[1] - self._seen[1]
        if calls:
            self._times.append((jobs, spent / calls))
        self._seen = now

    def facts(self) -> dict[str, float]:
        """Return the 99th percentiles of the first and of the last tenth, in milliseconds."""
        first = [spent for jobs, spent in self._times if jobs <= self._tenth]
        last = [spent for jobs, spent in self._times if jobs >= self._jobs - self._tenth]
        if not first or not last:
            return {}
        early, late = percentile(first, 99), percentile(last, 99)
        return {
            "claim_p99_first_ms": early,
            "claim_p99_last_ms": late,
            "claim_p99_last_over_first": late / early,
        }

    @staticmethod
    def _extension(place: Place) -> bool:
        try:
            place.run("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            place.run("SELECT pg_stat_statements_reset()")
        except psycopg.Error:
            return False  # the server was started without it, or this role may not
        return True


BENCHMARK = Benchmark(
    name="pinned-horizon",
    unit="x the first tenth's rate",
    about="the rate of the last tenth over that of the first, while a snapshot is held",
    sized="jobs",
    size=1_000_000,
    short=20_000,
    lanes=lanes,
)
