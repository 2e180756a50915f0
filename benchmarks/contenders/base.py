"""What every contender can do, whatever queue it is.

A contender is described here, in the harness's own process, and does its work in a driver: a program that
runs in the contender's environment with one of these commands. Each prints JSON on its last line, or nothing.

    setup                       make the tables
    preload JOBS                enqueue no-op jobs 0..JOBS-1, as quickly as the queue can
    enqueue JOBS                one by one, each durable on its own; {"seconds": ...} of the loop
    enqueue-many JOBS           by the bulk API; {"seconds": ...}
    probe JOBS SECONDS          one job every so many seconds, that tells how long it waited
    work NUMBER OF              be worker NUMBER of so many, until SIGTERM
    versions                    {"package": "version", ...}
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import marks
from benchmarks.core.databases import Databases
from benchmarks.core.lanes import CannotRun
from benchmarks.core.processes import Workers, answer_of
from devtools.environments import ROOT

BEST, DEFAULTS = "best", "defaults"


@dataclass(slots=True)
class Place:
    """Where one run happens: a contender's jobs, and marks for their tasks."""

    contender: "Contender"
    configuration: str
    environ: dict[str, str]
    marks: marks.Marks
    connection: psycopg.Connection[Any] | None
    database: str = ""
    postmaster: int | None = None

    def work(self, processes: int = 1) -> Workers:
        """Start workers."""
        commands = self.contender.work(self.configuration, processes)
        return Workers(commands, self.environ)

    def ask(self, *arguments: object) -> dict[str, Any]:
        """Run a command of the driver."""
        return answer_of(self.contender.driver(*arguments), self.environ)

    def left(self) -> int:
        """Return how many jobs have not ended for good, by what is stored."""
        return self.contender.left(self)

    @property
    def url(self) -> str:
        """The address of the run's database; raises CannotRun when the jobs are kept elsewhere."""
        if self.connection is None:
            raise CannotRun(f"{self.contender.name} keeps its jobs outside PostgreSQL")
        return self.environ["DATABASE_URL"]

    def run(self, statement: str) -> psycopg.Cursor[Any]:
        """Run a statement on the run's database; raises CannotRun when the jobs are kept elsewhere."""
        if self.connection is None:
            raise CannotRun(f"{self.contender.name} keeps its jobs outside PostgreSQL")
        return self.connection.execute(statement)

    def one(self, query: str) -> Any:
        """Return the first column of the first row of a query; see run()."""
        row = self.run(query).fetchone()
        return row[0] if row else None


class Contender:
    """A queue that keeps its jobs in PostgreSQL; see the module. Subclasses say the rest."""

    name = ""
    pending = ""
    """SQL: how many jobs have not ended."""
    table = ""
    """The table that a snapshot reads to hold the xmin horizon."""
    warm_up = 3.0
    """Seconds after which a worker that was started is surely idle."""

    def prepare(self) -> None:
        """Make the environment; raises CannotRun."""
        raise NotImplementedError

    def driver(self, *arguments: object) -> list[str]:
        """Return the command line of the driver."""
        raise NotImplementedError

    def work(self, configuration: str, processes: int) -> list[Sequence[str]]:
        """Return the command lines of workers that use so many processes to run tasks."""
        return [self.driver("work", number, processes) for number in range(processes)]

    def versions(self) -> dict[str, str]:
        """Return what it runs on."""
        return {
            name: str(version) for name, version in answer_of(self.driver("versions"), os.environ).items()
        }

    def left(self, place: Place) -> int:
        """Return how many jobs of a place have not ended."""
        return int(place.one(self.pending))

    def kept(self, place: Place) -> dict[str, Any]:
        """Return facts about what is kept of ended jobs; raises Failed when that is not as promised."""
        return {}

    @contextmanager
    def place(
        self,
        databases: Databases,
        jobs: int,
        configuration: str = BEST,
        *,
        more: int = 0,
        options: Mapping[str, Any] | None = None,
        fill: tuple[str, str] = ("", ""),
    ) -> Iterator[Place]:
        """Make a fresh database with no-op jobs that wait, and marks for them and for ``more``.

        ``fill`` is a name and SQL that puts further rows into the template.
        """
        with marked(jobs + more) as seen:
            environ = self.environ(configuration, seen, options or {})
            run = f"{self._prefix}_run"
            environ["DATABASE_URL"] = databases.copy(self.template(databases, jobs, environ, fill), run)
            connection = databases.connect(run)
            try:
                made = marks.Marks(seen)
                yield Place(self, configuration, environ, made, connection, run, databases.postmaster)
            finally:
                connection.close()
                databases.drop(run)

    def template(
        self, databases: Databases, jobs: int, environ: Mapping[str, str], fill: tuple[str, str] = ("", "")
    ) -> str:
        """Return the name of the database that runs begin with copies of; it is made when first asked for."""

        def make(url: str) -> None:
            surroundings = {**environ, "DATABASE_URL": url}
            answer_of(self.driver("setup"), surroundings)
            if jobs:
                answer_of(self.driver("preload", jobs), surroundings)
            if fill[1]:
                with psycopg.connect(url) as connection:
                    connection.execute(fill[1])

        return databases.template(f"{self._prefix}_{jobs}{fill[0]}", make)

    @property
    def _prefix(self) -> str:
        return self.name.replace("-", "_")

    def environ(self, configuration: str, seen: Path, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the environment of the driver, without the database."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "BENCHMARK_CONFIGURATION": configuration,
            marks.VARIABLE: str(seen),
        }


@contextmanager
def marked(jobs: int) -> Iterator[Path]:
    """Make a file of marks, in memory where the system has a place for that."""
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="pgqueue-bench-", dir=where) as directory:
        path = Path(directory) / "marks"
        marks.Marks.make(path, max(jobs, 1))
        yield path
