"""What django-tasks-monitor recorded, which it knows from signals alone, against what the queue stored."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.tasks import TaskResult, TaskResultStatus
from django.test import Client
from django.utils import timezone
from tasks_monitor import stats
from tasks_monitor.models import TaskRecord
from tasks_monitor.retry import retry

from ..conftest import Processes
from . import tasks

TO_COME = timedelta(seconds=0.5)


@pytest.fixture(autouse=True)
def nothing_before(delete_jobs: None) -> Iterator[None]:
    yield
    TaskRecord.objects.all().delete()


def test_a_record_is_made_at_enqueue() -> None:
    moment = timezone.now() + timedelta(hours=1)
    result = tasks.give.using(run_after=moment, priority=-3).enqueue("x", twice=True)
    record = record_of(result)
    assert (record.status, record.attempts, record.worker_ids) == (TaskResultStatus.READY, 0, [])
    assert (record.priority, record.queue_name, record.run_after) == (-3, "emails", moment)
    assert stats.dashboard()["scheduled"] == 1


def test_the_records_are_what_happened(processes: Processes, tmp_path: Path) -> None:
    results = [
        tasks.give.enqueue({"a": [1, None]}, twice=True),
        tasks.give.using(run_after=timezone.now() + TO_COME).enqueue("later"),
        tasks.fail_twice.enqueue(),
        tasks.fail_until_repaired.enqueue(str(tmp_path / "repaired")),
    ]
    processes.finish()
    results.append(tasks.die_once.enqueue())  # by itself: what runs beside it in the process dies with it
    processes.finish()
    for result in results:
        result.refresh()
        assert_equal(record_of(result), result)
    assert [(result.status, result.attempts) for result in results] == [
        (TaskResultStatus.SUCCESSFUL, 1),
        (TaskResultStatus.SUCCESSFUL, 1),
        (TaskResultStatus.SUCCESSFUL, 3),
        (TaskResultStatus.FAILED, 2),
        (TaskResultStatus.SUCCESSFUL, 2),
    ]
    first, second = record_of(results[4]).worker_ids
    assert first != second, "the process that died and the one after it are two workers"
    dashboard = stats.dashboard()
    assert (dashboard["total"], dashboard["succeeded"], dashboard["failed"]) == (5, 4, 1)


def test_its_retry_enqueues_a_new_job(processes: Processes, tmp_path: Path) -> None:
    repaired = tmp_path / "repaired"
    result = tasks.fail_until_repaired.using(priority=5, queue_name="other").enqueue(str(repaired))
    processes.finish()
    repaired.touch()
    get_user_model().objects.create_superuser("admin")
    client = Client()
    client.force_login(get_user_model().objects.get())
    action = {"action": "retry_tasks", "_selected_action": [record_of(result).pk]}
    page = client.post("/admin/tasks_monitor/taskrecord/", action, follow=True)
    assert "Retried 1 task(s)." in page.content.decode()
    processes.finish()
    record = TaskRecord.objects.get(retry_of=record_of(result))
    assert record.status == TaskResultStatus.SUCCESSFUL
    again = tasks.fail_until_repaired.get_result(record.result_id)
    assert again.return_value == "repaired"
    assert (again.task.priority, again.task.queue_name) == (5, "other")
    assert_equal(record, again)
    assert client.get("/admin/tasks_monitor/taskrecord/dashboard/").status_code == 200
    assert retry(record).retry_of == record
    processes.finish()


def test_a_job_whose_last_process_died_counts_as_stuck(processes: Processes) -> None:
    """The one thing that signals cannot tell: nobody is left to send the last one."""
    result = tasks.die.enqueue()
    processes.finish()
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert record_of(result).status == TaskResultStatus.RUNNING
    assert list(stats.stuck()) == [record_of(result)]


def record_of(result: TaskResult) -> TaskRecord:
    return TaskRecord.objects.get(backend=result.backend, result_id=result.id)


def assert_equal(record: TaskRecord, result: TaskResult) -> None:
    """Compare a record with the result that the queue stores; times within what a clock rounds."""
    assert record.status == result.status
    assert (record.attempts, record.worker_ids) == (result.attempts, result.worker_ids)
    assert (record.args, record.kwargs) == (result.args, result.kwargs)
    assert (record.priority, record.queue_name) == (result.task.priority, result.task.queue_name)
    assert record.run_after == result.task.run_after
    assert record.enqueued_at == result.enqueued_at
    for name in ("started_at", "finished_at"):
        apart = abs(getattr(record, name) - getattr(result, name))
        assert apart < timedelta(seconds=0.25), f"{name} is {apart} apart"
    if result.status == TaskResultStatus.FAILED:
        assert record.exception_class == result.errors[-1].exception_class_path
        assert record.traceback == result.errors[-1].traceback
