"""latency: an idle worker gets one job now and then; from the call that enqueues to the task's first line."""

import time

from benchmarks.contenders.base import Contender
from benchmarks.contenders.drivers.common import WARM_UP
from benchmarks.contenders.ours import OURS
from benchmarks.core.benchmark import Benchmark, Setting, lanes_of
from benchmarks.core.lanes import Lane, Sample
from benchmarks.core.processes import Failed, wait_for
from benchmarks.core.statistics import percentile

INTERVAL = 0.05
ARRIVAL = 15.0
"""Seconds that the last probes may take."""


def lanes(setting: Setting) -> list[Lane]:
    """Return ours and each peer."""
    return lanes_of([OURS, *setting.peers], lambda contender: probe(setting, contender))


def probe(setting: Setting, contender: Contender) -> Sample:
    """Probe an idle worker; the value is the median wait in milliseconds."""
    with contender.place(setting.databases, 0, more=setting.size + WARM_UP) as place:
        with place.work() as workers:
            time.sleep(contender.warm_up)
            workers.alive()
            place.ask("probe", setting.size + WARM_UP, INTERVAL)
            wait_for(lambda: place.marks.count() == place.marks.jobs, ARRIVAL)
            waits = place.marks.waits()
    missing = place.marks.jobs - len(waits)
    if missing:
        raise Failed(f"{contender.name}: {missing} of {place.marks.jobs} probes did not run")
    counted = [seconds * 1000 for job, seconds in waits.items() if job >= WARM_UP]
    p50 = percentile(counted, 50)
    return Sample(p50, {"p50_ms": p50, "p99_ms": percentile(counted, 99), "max_ms": max(counted)})


BENCHMARK = Benchmark(
    name="latency",
    unit="ms",
    about="median wait of a job on an idle worker, one job every 50 ms",
    sized="probes",
    size=200,
    short=40,
    lanes=lanes,
    better="lower",
)
