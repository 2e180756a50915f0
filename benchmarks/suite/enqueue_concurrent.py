"""enqueue-concurrent: many sessions enqueue at once while workers are busy; do wake-ups slow them down?

The commits of transactions with a NOTIFY wait for each other on the whole server. A busy worker needs none:
the harness listens too and counts.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from benchmarks.contenders.base import DEFAULTS
from benchmarks.contenders.ours import OURS
from benchmarks.core.benchmark import Benchmark, Setting
from benchmarks.core.lanes import Lane, Race, Sample
from benchmarks.core.processes import Failed, wait_for
from benchmarks.core.statistics import ratio_of_pairs
from django_pgqueue.sql import CHANNEL

PROCESSES, SESSIONS = 4, 4
"""Of each process; one process alone would be held up by its interpreter's lock."""
BUSY = 1_000
"""Jobs that wait before the first is enqueued."""
SECONDS = 0.05
"""Of each job: the worker must not run dry."""
OFF = "ours, wake-ups off"


def lanes(setting: Setting) -> list[Lane]:
    """Return ours with wake-ups, and without."""
    return [
        Lane("ours", partial(enqueue, setting, True)),
        Lane(OFF, partial(enqueue, setting, False)),
    ]


def enqueue(setting: Setting, notify: bool) -> Sample:
    """Enqueue from all sessions beside a busy worker; the value is jobs per second of all together."""
    each = max(setting.size // (PROCESSES * SESSIONS), 1)
    jobs = each * PROCESSES * SESSIONS
    options = {"notify": notify}
    with OURS.place(setting.databases, 0, DEFAULTS, more=jobs + BUSY, options=options) as place:
        place.ask("busy", BUSY, jobs, SECONDS)
        with place.work() as workers, setting.databases.connect(place.database) as listener:
            if not wait_for(lambda: place.marks.first, 60.0):
                raise Failed(f"no job started: {workers.said()}")
            listener.execute(f"LISTEN {CHANNEL}")
            with ThreadPoolExecutor() as pool:
                asked = [
                    pool.submit(place.ask, "concurrent", SESSIONS, each, SECONDS, number * SESSIONS * each)
                    for number in range(PROCESSES)
                ]
                rates = [SESSIONS * each / answer.result()["seconds"] for answer in asked]
            heard = len(list(listener.notifies(timeout=0.5)))
            if place.left() == 0:
                raise Failed("the worker ran dry: the figures would be of an idle one")
    return Sample(sum(rates), {"notifies": heard, "sessions": PROCESSES * SESSIONS})


def finish(race: Race) -> dict[str, Any]:
    """Return the rate with wake-ups over that without."""
    if not race.values(OFF):
        return {}
    return {"on_over_off": ratio_of_pairs(race.values("ours"), race.values(OFF))}


BENCHMARK = Benchmark(
    name="enqueue-concurrent",
    unit="jobs/s",
    about=f"{PROCESSES * SESSIONS} sessions, one job a transaction, beside a busy worker",
    sized="jobs",
    size=16_000,
    short=1_600,
    lanes=lanes,
    finish=finish,
    takes_peers=False,
)
