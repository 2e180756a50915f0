"""The driver of PgQueuer."""

import json
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from benchmarks.contenders.drivers import common
from benchmarks.marks import marks

BATCH = 1000


async def _queries() -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(common.URL)))


def _payload(**values: Any) -> bytes:
    return json.dumps(values).encode()


async def setup() -> None:
    """Make the tables."""
    await (await _queries()).install()


async def preload(jobs: int) -> dict[str, float]:
    """Enqueue in bulk."""
    queries = await _queries()

    async def many(numbers: range) -> None:
        payloads = [_payload(job=job) for job in numbers]
        await queries.enqueue(["nothing"] * len(payloads), payloads, [0] * len(payloads))

    return await common.atimed_many(many, jobs)


async def enqueue(jobs: int) -> dict[str, float]:
    """Enqueue one by one."""
    queries = await _queries()
    return await common.atimed(lambda job: queries.enqueue("nothing", _payload(job=job)), jobs)


async def probe(jobs: int, interval: float) -> None:
    """Enqueue jobs that tell how long they waited."""
    queries = await _queries()
    await common.aprobe(
        lambda job, since: queries.enqueue("probe", _payload(job=job, since=since)), jobs, interval
    )


async def work(number: int, of: int) -> None:
    """Run jobs."""
    manager = PgQueuer(AsyncpgDriver(await asyncpg.connect(common.URL)))

    @manager.entrypoint("nothing")
    async def nothing(job: Any) -> None:
        marks().run(json.loads(job.payload)["job"])

    @manager.entrypoint("probe")
    async def probe(job: Any) -> None:
        given = json.loads(job.payload)
        marks().wait(given["job"], given["since"])

    await manager.run(**({"batch_size": BATCH} if common.BEST else {}))


if __name__ == "__main__":
    commands = {
        "setup": setup,
        "preload": preload,
        "enqueue": enqueue,
        "enqueue-many": preload,
        "probe": probe,
        "work": work,
        "versions": lambda: common.versions("pgqueuer", "asyncpg", "uvloop"),
    }
    common.main(commands, uvloop.run)
