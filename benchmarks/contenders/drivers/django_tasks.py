"""Tasks of Django's own API, for backends of others."""

from django.tasks import task

from benchmarks.marks import marks


@task
def nothing(job: int) -> None:
    """Do nothing."""
    marks().run(job)


@task
def probe(job: int, since: float) -> None:
    """Tell how long the job waited."""
    marks().wait(job, since)
