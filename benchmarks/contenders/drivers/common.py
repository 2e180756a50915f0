"""What all Python drivers share: the command line, the clock around a loop, the versions.

Needs the standard library only: it runs in every peer's environment.
"""

import asyncio
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

URL = os.environ.get("DATABASE_URL", "")
BEST = os.environ.get("BENCHMARK_CONFIGURATION", "best") == "best"
CHUNK = 5000
"""Jobs that one call of a bulk API gets."""
WARM_UP = 10
"""Probes before those that count."""


def main(commands: Mapping[str, Callable[..., Any]], best: Callable[[Any], Any] = asyncio.run) -> None:
    """Run the command that the arguments name; at its best a coroutine is run by ``best``."""
    name, *arguments = sys.argv[1:]
    answer = commands[name](*(float(text) if "." in text else int(text) for text in arguments))
    if inspect.iscoroutine(answer):
        answer = (best if BEST else asyncio.run)(answer)
    if answer is not None:
        print(json.dumps(answer), flush=True)


def chunks(jobs: int) -> Iterator[range]:
    """Cut the numbers of jobs into parts for a bulk API."""
    for first in range(0, jobs, CHUNK):
        yield range(first, min(first + CHUNK, jobs))


def timed(enqueue: Callable[[int], object], jobs: int) -> dict[str, float]:
    """Enqueue one by one; return the seconds that it took."""
    began = time.perf_counter()
    for job in range(jobs):
        enqueue(job)
    return {"seconds": time.perf_counter() - began}


def timed_many(enqueue: Callable[[range], object], jobs: int) -> dict[str, float]:
    """Enqueue in chunks; return the seconds that it took."""
    began = time.perf_counter()
    for numbers in chunks(jobs):
        enqueue(numbers)
    return {"seconds": time.perf_counter() - began}


def probe(enqueue: Callable[[int, float], object], jobs: int, interval: float) -> None:
    """Enqueue a job every so many seconds, with the time at which its enqueueing began."""
    for job in range(jobs):
        began = time.time()
        enqueue(job, began)
        time.sleep(max(0.0, interval - (time.time() - began)))


async def atimed(enqueue: Callable[[int], Any], jobs: int) -> dict[str, float]:
    """See timed()."""
    began = time.perf_counter()
    for job in range(jobs):
        await enqueue(job)
    return {"seconds": time.perf_counter() - began}


async def atimed_many(enqueue: Callable[[range], Any], jobs: int) -> dict[str, float]:
    """See timed_many()."""
    began = time.perf_counter()
    for numbers in chunks(jobs):
        await enqueue(numbers)
    return {"seconds": time.perf_counter() - began}


async def aprobe(enqueue: Callable[[int, float], Any], jobs: int, interval: float) -> None:
    """See probe()."""
    for job in range(jobs):
        began = time.time()
        await enqueue(job, began)
        await asyncio.sleep(max(0.0, interval - (time.time() - began)))


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of installed packages."""
    return {package: version(package) for package in packages}
