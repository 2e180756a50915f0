"""drain: how many no-op jobs a second one child process runs, every attempt kept.

Jobs are enqueued first; the clock runs from the first attempt's start to the last one's durable end, as
the table of attempts has them.
"""

from benchmarks import bench

UNIT = "jobs/s"


def run(jobs: int, repeat: int) -> bench.Result:
    """Measure with so many jobs a run."""
    return bench.measure("drain", UNIT, lambda: once(jobs), repeat)


def once(jobs: int) -> float:
    """Drain once and return jobs per second."""
    from django.db.models import Count, Max, Min  # noqa: PLC0415 - after django.setup()

    from benchmarks.tasks import nothing  # noqa: PLC0415
    from django_pgqueue.models import Attempt  # noqa: PLC0415

    bench.clear_tables()
    nothing.enqueue_many((number,) for number in range(jobs))
    bench.run_worker("--drain", "--processes", "1")
    seen = Attempt.objects.filter(outcome="succeeded").aggregate(
        count=Count("job_id"), first=Min("started_at"), last=Max("finished_at")
    )
    if seen["count"] != jobs:
        raise SystemExit(f"drain: {seen['count']} of {jobs} jobs succeeded")
    return float(jobs / (seen["last"] - seen["first"]).total_seconds())
