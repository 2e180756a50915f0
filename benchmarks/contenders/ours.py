"""This project, as its users run it: ``runworkers`` with defaults, or with the flags that suit no-op jobs."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import DEFAULTS, Contender, Place
from benchmarks.core.processes import Failed
from django_pgqueue import sql

UNKEPT = "nothing kept"
BEST_FLAGS = ("--threads", "1")
"""What suits jobs that take no time: no second thread that would wait for the interpreter."""


class Ours(Contender):
    """django_pgqueue."""

    name = "ours"
    table = sql.STATE
    pending = f"""
        SELECT count(*) FROM (SELECT FROM {sql.STATE} WHERE status = 'ready'
                              UNION ALL SELECT FROM {sql.STATE} WHERE status = 'running') AS waiting
    """
    warm_up = 2.0

    def prepare(self) -> None:
        """There is nothing to make: the harness runs in the project's own environment."""

    def driver(self, *arguments: object) -> list[str]:
        """Return the command line of the driver."""
        return [sys.executable, "-m", "benchmarks.contenders.drivers.ours", *map(str, arguments)]

    def work(self, configuration: str, processes: int) -> list[Sequence[str]]:
        """Return one command: a supervisor with so many children."""
        flags = () if configuration == DEFAULTS else BEST_FLAGS
        return [self.runworkers("--processes", str(processes), *flags)]

    def runworkers(self, *flags: str) -> list[str]:
        """Return the command line of a worker."""
        return [sys.executable, "-m", "django", "runworkers", "-v0", *flags]

    def left(self, place: Place) -> int:
        """Return how many jobs have not ended; where nothing is kept, how many are there at all."""
        if place.configuration == UNKEPT:
            return int(place.one(f"SELECT count(*) FROM {sql.STATE}"))
        return super().left(place)

    def kept(self, place: Place) -> dict[str, Any]:
        """Return how many attempts are kept: one for each job, or none where nothing is kept."""
        attempts = int(place.one(f"SELECT count(*) FROM {sql.ATTEMPT} WHERE outcome = 'succeeded'"))
        started = place.marks.count()
        if attempts != (0 if place.configuration == UNKEPT else started) and place.left() == 0:
            raise Failed(f"{attempts} attempts are kept of {started} jobs")
        return {"attempts_kept": attempts}

    def environ(self, configuration: str, seen: Path, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the driver's environment, with Django's settings and the queue's options."""
        kept = {"retention": {"succeeded": 0}} if configuration == UNKEPT else {}
        return {
            **super().environ(configuration, seen, options),
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
            "BENCHMARK_OPTIONS": json.dumps({**kept, **options}),
        }


OURS = Ours()
