"""The tasks that benchmarks run. Each marks that it ran; nothing else tells the harness."""

import time

from benchmarks.marks import marks
from django_pgqueue import task


@task
def nothing(job: int) -> None:
    """Do nothing: what is left is the queue's own work."""
    marks().run(job)


@task
def probe(job: int, since: float) -> None:
    """Say how long the job waited."""
    marks().wait(job, since)


@task
def pause(job: int, since: float, seconds: float) -> None:
    """Say how long the job waited, then wait itself."""
    marks().wait(job, since)
    time.sleep(seconds)
