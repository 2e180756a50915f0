"""idle: what a worker with nothing to do asks of the server and of the processor."""

import time
from typing import Any

from benchmarks.contenders.base import Contender, Place
from benchmarks.contenders.ours import OURS
from benchmarks.core.benchmark import Benchmark, Setting, lanes_of
from benchmarks.core.lanes import Lane, Sample
from benchmarks.core.processes import Workers, count_of_sessions, cpu_of_sessions

# The harness asks too; only its own questions name the view.
STATEMENTS = """
SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND query NOT LIKE '%pg_stat_statements%'
"""
NO_BRACKETS = r" AND query !~* '^\s*(begin|commit|rollback|deallocate)\y'"


def lanes(setting: Setting) -> list[Lane]:
    """Return ours and each peer that keeps its jobs in PostgreSQL."""
    return lanes_of([OURS, *setting.peers], lambda contender: idle(setting, contender))


def idle(setting: Setting, contender: Contender) -> Sample:
    """Watch an idle worker for ``size`` seconds; the value is statements per second of all its processes."""
    with contender.place(setting.databases, 0) as place:
        place.run("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        with place.work() as workers:
            time.sleep(contender.warm_up + 2)
            workers.alive()
            before = _readings(place, workers)
            time.sleep(setting.size)
            after = _readings(place, workers)
            processes = count_of_sessions(workers.sessions()) or 1
    seconds = after["clock"] - before["clock"]
    per_second = (after["statements"] - before["statements"]) / seconds
    facts: dict[str, Any] = {
        "processes": processes,
        "statements_per_s": per_second,
        "statements_per_s_per_process": per_second / processes,
        "begins_and_commits_per_s": (after["calls"] - before["calls"]) / seconds - per_second,
    }
    if before["cpu"] is not None:
        facts["cpu_percent"] = (after["cpu"] - before["cpu"]) / seconds * 100
    return Sample(per_second, facts)


def _readings(place: Place, workers: Workers) -> dict[str, Any]:
    return {
        "clock": time.monotonic(),
        "calls": float(place.one(STATEMENTS)),
        "statements": float(place.one(STATEMENTS + NO_BRACKETS)),
        "cpu": cpu_of_sessions(workers.sessions()),
    }


BENCHMARK = Benchmark(
    name="idle",
    unit="statements/s",
    about="a worker with nothing to do, all its processes; BEGIN and COMMIT are counted apart",
    sized="seconds",
    size=20,
    short=4,
    lanes=lanes,
    better="lower",
)
