"""The driver of Celery with Redis."""

import os

from celery import Celery

from benchmarks.contenders.drivers import common
from benchmarks.marks import marks

URL = os.environ.get("REDIS_URL", "")
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")

app = Celery("benchmarks", broker=URL)
app.conf.task_ignore_result = True
if common.BEST:
    app.conf.worker_prefetch_multiplier = 128
    app.conf.worker_send_task_events = False


@app.task(name="nothing")
def nothing(job: int) -> None:
    """Do nothing."""
    marks().run(job)


@app.task(name="probe")
def waited(job: int, since: float) -> None:
    """Tell how long the job waited."""
    marks().wait(job, since)


def preload(jobs: int) -> dict[str, float]:
    """Enqueue in a loop on one producer: there is no bulk API."""
    with app.producer_pool.acquire() as producer:
        return common.timed(lambda job: nothing.apply_async((job,), producer=producer), jobs)


def work(number: int, of: int) -> None:
    """Run jobs in two processes, or in one where there are two workers."""
    options = ["worker", "--loglevel", "WARNING", "--hostname", f"worker{number}@benchmarks"]
    options += ["--concurrency", "2" if of == 1 else "1", *(QUIET if common.BEST else ())]
    app.worker_main(options)


if __name__ == "__main__":
    common.main(
        {
            "preload": preload,
            "enqueue": lambda jobs: common.timed(nothing.delay, jobs),
            "enqueue-many": preload,
            "probe": lambda jobs, interval: common.probe(waited.delay, jobs, interval),
            "work": work,
            "versions": lambda: common.versions("celery", "redis", "kombu"),
        }
    )
