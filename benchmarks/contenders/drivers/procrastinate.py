"""The driver of Procrastinate."""

import uvloop
from procrastinate import App, PsycopgConnector

from benchmarks.contenders.drivers import common
from benchmarks.marks import marks

CONCURRENCY = 20
POOL = {"min_size": 4, "max_size": CONCURRENCY} if common.BEST else {}
app = App(connector=PsycopgConnector(conninfo=common.URL, **POOL))


@app.task(name="nothing")
async def nothing(job: int) -> None:
    """Do nothing."""
    marks().run(job)


@app.task(name="probe")
async def waited(job: int, since: float) -> None:
    """Tell how long the job waited."""
    marks().wait(job, since)


async def setup() -> None:
    """Make the tables."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def preload(jobs: int) -> dict[str, float]:
    """Enqueue in bulk."""
    async with app.open_async():
        deferrer = app.configure_task("nothing")
        return await common.atimed_many(
            lambda numbers: deferrer.batch_defer_async(*({"job": job} for job in numbers)), jobs
        )


async def enqueue(jobs: int) -> dict[str, float]:
    """Enqueue one by one."""
    async with app.open_async():
        return await common.atimed(lambda job: nothing.defer_async(job=job), jobs)


async def probe(jobs: int, interval: float) -> None:
    """Enqueue jobs that tell how long they waited."""
    async with app.open_async():
        await common.aprobe(lambda job, since: waited.defer_async(job=job, since=since), jobs, interval)


async def work(number: int, of: int) -> None:
    """Run jobs."""
    async with app.open_async():
        await app.run_worker_async(**({"concurrency": CONCURRENCY} if common.BEST else {}))


if __name__ == "__main__":
    commands = {
        "setup": setup,
        "preload": preload,
        "enqueue": enqueue,
        "enqueue-many": preload,
        "probe": probe,
        "work": work,
        "versions": lambda: common.versions("procrastinate", "psycopg", "uvloop"),
    }
    common.main(commands, uvloop.run)
