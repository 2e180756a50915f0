"""The driver of this project: what a Django project calls."""

import threading
import time
from typing import Any

import django
from django.core.management import call_command
from django.db import connection

from benchmarks.contenders.drivers import common

django.setup()

from benchmarks import tasks  # noqa: E402 - after django.setup()


def setup() -> None:
    """Make the tables."""
    call_command("migrate", verbosity=0)


def preload(jobs: int) -> None:
    """Enqueue no-op jobs quickly."""
    common.timed_many(_many, jobs)


def enqueue(jobs: int) -> dict[str, float]:
    """Enqueue one by one, each in a transaction of its own."""
    connection.ensure_connection()
    return common.timed(tasks.nothing.enqueue, jobs)


def enqueue_many(jobs: int) -> dict[str, float]:
    """Enqueue all in one call, which returns a result with its id for each."""
    connection.ensure_connection()
    began = time.perf_counter()
    results = tasks.nothing.enqueue_many((job,) for job in range(jobs))
    seconds = time.perf_counter() - began
    if len({result.id for result in results}) != jobs:
        raise SystemExit(f"enqueue_many returned too few ids for {jobs} jobs")
    return {"seconds": seconds}


def probe(jobs: int, interval: float) -> None:
    """Enqueue jobs that tell how long they waited."""
    connection.ensure_connection()
    common.probe(tasks.probe.enqueue, jobs, interval)


def concurrent(sessions: int, jobs: int, seconds: float, first: int) -> dict[str, float]:
    """Enqueue from so many threads, each with a connection of its own, ``jobs`` each; return the time of all.

    The jobs have numbers from ``first`` on and take so many seconds each, so that workers stay busy.
    """
    start = threading.Barrier(sessions + 1)

    def session(number: int) -> None:
        connection.ensure_connection()
        start.wait()
        for job in range(first + number * jobs, first + (number + 1) * jobs):
            tasks.pause.enqueue(job, time.time(), seconds)
        connection.close()

    threads = [threading.Thread(target=session, args=(number,)) for number in range(sessions)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return {"seconds": time.perf_counter() - began}


def busy(jobs: int, first: int, seconds: float) -> None:
    """Enqueue jobs that take so many seconds each."""
    tasks.pause.enqueue_many((first + job, time.time(), seconds) for job in range(jobs))


def mixed(jobs: int, interval: float, short: float, long: float, every: int) -> None:
    """Enqueue a job every ``interval`` seconds; each ``every``-th takes long, 0: none does."""
    connection.ensure_connection()
    due = time.time()
    for job in range(jobs):
        tasks.pause.enqueue(job, time.time(), long if every and job % every == 0 else short)
        due += interval
        time.sleep(max(0.0, due - time.time()))


def _many(numbers: range) -> Any:
    return tasks.nothing.enqueue_many((job,) for job in numbers)


if __name__ == "__main__":
    common.main(
        {
            "setup": setup,
            "preload": preload,
            "enqueue": enqueue,
            "enqueue-many": enqueue_many,
            "probe": probe,
            "concurrent": concurrent,
            "busy": busy,
            "mixed": mixed,
        }
    )
