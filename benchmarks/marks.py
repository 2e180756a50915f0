"""What the body of every benchmark's task does: it marks its own byte in a file that the harness watches.

So all queues are counted alike and from outside: that a job ran, that it did not run twice, when the first
one started, how long one waited. Needs nothing but the standard library, as it runs in every peer's
environment; ``drivers/graphile_worker.js`` does the same in JavaScript.

The file: bytes 0-7 the time of the first start, 8-15 the process that started to run jobs last, 16-23 the
number of jobs N, from 64 on a byte for each job, and behind them, at a multiple of 8, a double for each job:
the seconds that it waited.
"""

import mmap
import os
import struct
import time
from pathlib import Path

VARIABLE = "BENCHMARK_MARKS"
HEADER = 64
FIRST, PROCESS, JOBS = 0, 8, 16


class Marks:
    """The marks of a number of jobs, in a file that processes share."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self.jobs: int = struct.unpack_from("q", self._memory, JOBS)[0]
        self._waits = waits_at(self.jobs)
        self._known = 0

    @classmethod
    def make(cls, path: Path, jobs: int) -> "Marks":
        """Make the file anew, for so many jobs."""
        with path.open("wb") as file:
            file.truncate(waits_at(jobs) + 8 * jobs)
            file.seek(JOBS)
            file.write(struct.pack("q", jobs))
        return cls(path)

    # --- what a task does

    def run(self, job: int) -> None:
        """Mark that a job runs."""
        if self._known != os.getpid():
            self._introduce()
        place = HEADER + job
        self._memory[place] = min(self._memory[place] + 1, 255)

    def wait(self, job: int, since: float) -> None:
        """Mark that a job runs, and how long it waited since a moment of ``time.time()``."""
        seconds = time.time() - since
        struct.pack_into("d", self._memory, self._waits + 8 * job, seconds)
        self.run(job)

    def _introduce(self) -> None:
        self._known = os.getpid()
        if not self.first:
            struct.pack_into("d", self._memory, FIRST, time.time())
        struct.pack_into("q", self._memory, PROCESS, self._known)

    # --- what the harness reads

    @property
    def first(self) -> float:
        """When the first job started, 0.0 before that."""
        return float(struct.unpack_from("d", self._memory, FIRST)[0])

    @property
    def process(self) -> int:
        """The process that began to run jobs last, 0 before that."""
        return int(struct.unpack_from("q", self._memory, PROCESS)[0])

    def count(self) -> int:
        """Return how many jobs have started."""
        return self.jobs - self._bytes().count(0)

    def doubles(self) -> int:
        """Return how many jobs started more than once."""
        seen = self._bytes()
        return self.jobs - seen.count(0) - seen.count(1)

    def waits(self) -> dict[int, float]:
        """Return how many seconds each job waited, of those that said so."""
        seen = self._bytes()
        every = struct.unpack_from(f"{self.jobs}d", self._memory, self._waits)
        return {job: seconds for job, seconds in enumerate(every) if seen[job] and seconds}

    def _bytes(self) -> bytes:
        return self._memory[HEADER : HEADER + self.jobs]


def waits_at(jobs: int) -> int:
    """Return where the doubles begin."""
    return (HEADER + jobs + 7) // 8 * 8


_marks: Marks | None = None


def marks() -> Marks:
    """Return the marks that the environment names, opened once in a process and its children."""
    global _marks
    if _marks is None:
        _marks = Marks(os.environ[VARIABLE])
    return _marks
