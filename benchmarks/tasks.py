"""The tasks that benchmarks run."""

from django_pgqueue import task


@task
def nothing(number: int) -> None:
    """Do nothing: what is left is the queue's own work."""
