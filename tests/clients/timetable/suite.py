"""The scheduler's process enqueues by the clock, the worker's processes run what it enqueued."""

import signal

import pytest
from crontask import scheduler
from crontask import tasks as heartbeat
from django.db.models import QuerySet
from django.tasks import TaskResultStatus, default_task_backend

from django_pgqueue import states
from django_pgqueue.models import JobState
from tests.processes.worker import Worker
from tests.waiting import wait_until

from ..conftest import Processes
from . import tasks

pytestmark = pytest.mark.usefixtures("delete_jobs")


class Scheduler(Worker):
    """A running ``manage.py crontask``."""

    COMMAND = "crontask"


def test_the_scheduler_enqueues_and_the_worker_runs(processes: Processes) -> None:
    clock = processes.start(kind=Scheduler)
    wait_until(lambda: jobs("tick").count() >= 3, 60.0, f"not ticking; see {clock.log}")
    assert jobs("sweep").count() == 1, "a unique task that waits is not enqueued again"
    processes.worker()
    wait_until(lambda: jobs("sweep", status=states.SUCCEEDED).count() >= 2, 30.0, "swept once only")
    clock.signal(signal.SIGTERM)
    clock.wait_end(0)
    processes.finish()
    assert set(JobState.objects.values_list("status", "attempts")) == {(states.SUCCEEDED, 1)}
    times = list(jobs("tick").order_by("job_id").values_list("job__enqueued_at", flat=True))
    assert len(times) <= (times[-1] - times[0]).total_seconds() + 2
    assert set(jobs("tick").values_list("queue", "priority")) == {("other", 9)}
    assert abs(jobs("tick").count() - jobs("tock").count()) <= 1


def test_what_is_scheduled_enqueues_and_its_results_are_read(processes: Processes) -> None:
    assert heartbeat.heartbeat  # its own task, on a crontab line, is scheduled by the import
    scheduled = {job.name: job for job in scheduler.get_jobs()}
    assert set(scheduled) == {"tick", "tock", "sweep", "heartbeat"}
    results = {name: job.func() for name, job in scheduled.items()}
    processes.finish()
    for name, result in results.items():
        again = default_task_backend.get_result(result.id)
        assert again.status == TaskResultStatus.SUCCESSFUL
        assert again.return_value == (None if name == "heartbeat" else name)


def jobs(name: str, **conditions: str) -> QuerySet[JobState]:
    """Return the jobs of one task."""
    return JobState.objects.filter(job__task_path=getattr(tasks, name).module_path, **conditions)
