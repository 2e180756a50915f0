"""retention: how quickly jobs past their retention are deleted, and what that costs the jobs that run."""

import time
from functools import partial
from typing import Any

from benchmarks.contenders.base import BEST, Place
from benchmarks.contenders.ours import OURS
from benchmarks.core import filling
from benchmarks.core.benchmark import Benchmark, Setting
from benchmarks.core.lanes import Lane, Race, Sample
from benchmarks.core.processes import Failed, Workers
from benchmarks.core.statistics import ratio_of_pairs

PATIENCE = 900.0
PAUSE = 0.1
BUSY = "ours, while draining"
Look = tuple[float, int, int]
"""Time, old jobs left, new jobs started."""


def lanes(setting: Setting) -> list[Lane]:
    """Return ours when idle, and ours that drains as many new jobs meanwhile."""
    return [Lane("ours", partial(prune, setting, 0)), Lane(BUSY, partial(prune, setting, setting.size))]


def prune(setting: Setting, jobs: int) -> Sample:
    """Watch a worker delete ``size`` old jobs; the value is deleted jobs per second."""
    fill = (f"_old_{setting.size}", filling.succeeded(setting.size, "30 days"))
    with OURS.place(setting.databases, jobs, BEST, fill=fill) as place, place.work() as workers:
        looks = _watch(place, workers, jobs, setting.size)
    gone = [look for look in looks if look[1] < setting.size]
    began = looks[len(looks) - len(gone) - 1]
    facts: dict[str, Any] = {"began_after_s": began[0] - looks[0][0]}
    return Sample(setting.size / (gone[-1][0] - began[0]), facts | _drained(looks, began, gone[-1], jobs))


def _watch(place: Place, workers: Workers, jobs: int, old: int) -> list[Look]:
    """Look until no old job is left. Their ids come after those of the new jobs."""
    query = f"SELECT count(*) FROM {OURS.table} WHERE job_id > {jobs}"
    looks: list[Look] = [(time.time(), old, 0)]
    while looks[-1][1]:
        if time.time() - looks[0][0] > PATIENCE:
            raise Failed(f"{looks[-1][1]} of {old} old jobs are still there: {workers.said()}")
        time.sleep(PAUSE)
        workers.alive()
        looks.append((time.time(), int(place.one(query)), place.marks.count() if jobs else 0))
    return looks


def _drained(looks: list[Look], began: Look, ended: Look, jobs: int) -> dict[str, float]:
    """Return the rates of new jobs before and during the deletion, where it began while there were any."""
    started = [look for look in looks if look[2]]
    if not started or began[0] - started[0][0] < 2 * PAUSE or began[2] >= jobs:
        return {}
    last = next((look for look in looks if look[2] >= jobs or look[0] >= ended[0]), ended)
    before = (began[2] - started[0][2]) / (began[0] - started[0][0])
    during = (last[2] - began[2]) / max(last[0] - began[0], PAUSE)
    return {"before_jobs_per_s": before, "during_jobs_per_s": during, "during_over_before": during / before}


def finish(race: Race) -> dict[str, Any]:
    """Return how the drain fared, and the deletion beside it."""
    if not race.values(BUSY):
        return {}
    shares = [
        sample.facts["during_over_before"]
        for sample in race.samples[BUSY]
        if "during_over_before" in sample.facts
    ]
    told = {"drain_while_pruning_over_before": sorted(shares)[len(shares) // 2]} if shares else {}
    return {**told, "while_draining_over_idle": ratio_of_pairs(race.values(BUSY), race.values("ours"))}


BENCHMARK = Benchmark(
    name="retention",
    unit="deleted jobs/s",
    about="jobs past their retention, each with its attempt, deleted by the worker's own maintenance",
    sized="old jobs",
    size=300_000,
    short=10_000,
    lanes=lanes,
    finish=finish,
    takes_peers=False,
)
