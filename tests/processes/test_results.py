"""Results of jobs that real workers run: waiting for them, reading them, and what a task is told."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from django_pgqueue import Backoff, waiting
from django_pgqueue.compat import TaskResultDoesNotExist, TaskResultMismatch
from tests.waiting import wait_until

from . import tasks
from .conftest import Workers, environ
from .queue import Queue

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("django_database")]


def test_a_waiter_is_woken_and_does_not_look(
    queue: Queue, start: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next look would be a minute away."""
    monkeypatch.setattr(waiting, "LOOK_EVERY", 60.0)
    start("--poll", 0.05)
    for _ in range(3):
        result = tasks.sleep_without_database.enqueue(0.5)
        began = time.monotonic()
        assert result.wait(30.0)
        assert 0.4 < time.monotonic() - began < 5.0
        late = queue.value(
            "SELECT extract(epoch FROM clock_timestamp() - finished_at)::float8"
            " FROM django_pgqueue_jobstate WHERE job_id = %s",
            [int(result.id)],
        )
        assert late < 2.0, f"woken {late} s after the end"


def test_a_dead_job_wakes_its_waiter_too(
    queue: Queue, start: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY", 60.0)
    start("--poll", 0.05)
    result = tasks.fail_once.using(max_attempts=1, run_after=None).enqueue()
    assert result.wait(30.0)
    assert result.status == "FAILED"


def test_a_task_is_told_everything(queue: Queue, start: Workers, tmp_path: Path) -> None:
    start("--poll", 0.05)
    path = tmp_path / "told"
    result = tasks.show_context.enqueue(str(path))
    assert result.wait(30.0)
    first, second = map(json.loads, path.read_text().splitlines())
    assert result.return_value == {name: second[name] for name in result.return_value}
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert first["job_id"] == second["job_id"] == int(result.id)
    assert first["result"] == second["result"] == result.id
    assert first["idempotency_key"] == second["idempotency_key"]
    assert result.id in first["idempotency_key"]
    assert first["fencing_token"] < second["fencing_token"]
    assert [first["worker_id"], second["worker_id"]] == result.worker_ids
    for told in (first, second):
        assert told["metadata"] == {"team": "shop"}
        assert (told["is_cancelled"], told["lease_lost"]) == (False, False)
        assert 50.0 < told["left"] < 60.0
    assert result.progress is not None
    assert result.progress._asdict() == {"done": 3, "total": 8, "message": "pages"}


NEW_NAME = """
from tests.processes.tasks import ok
result = ok.get_result(job)
assert result.task == ok, result.task
assert (result.status, result.return_value) == ("SUCCESSFUL", "kept"), result
"""


def test_a_renamed_task_runs_and_its_results_are_read(queue: Queue, start: Workers) -> None:
    renamed = {"TASKS": {"default": {"OPTIONS": {"task_aliases": {"shop.tasks.old": tasks.ok.module_path}}}}}
    job = queue.enqueue("shop.tasks.old", "kept", max_attempts=1)
    start("--poll", 0.05, **renamed)
    queue.wait(job, "succeeded")
    code = f"import django; django.setup(); job = '{job}'\n{NEW_NAME}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environ(queue.url, **renamed),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with pytest.raises(TaskResultMismatch):
        tasks.ok.get_result(str(job))  # this process knows nothing of the new name


def test_a_killed_holder_frees_its_key(queue: Queue, start: Workers) -> None:
    """A job that is dead holds no key, and until then whoever asks is told who holds it. (C10)"""
    worker = start("--poll", 0.05, "--lease", 1, "--heartbeat", 0.3)
    holder = tasks.sleep.using(unique_key="order 7", max_attempts=1).enqueue(60)
    queue.wait_started(int(holder.id))
    assert tasks.ok.using(unique_key="order 7").enqueue().id == holder.id
    worker.kill()
    start("--poll", 0.05)
    queue.wait(int(holder.id), "dead")
    again = tasks.ok.using(unique_key="order 7").enqueue()
    assert again.id != holder.id
    queue.wait(int(again.id), "succeeded")


def test_a_running_job_is_followed_and_never_overlapped(queue: Queue, start: Workers) -> None:
    """Two workers; whoever replaces while it runs gets the one job that runs after it. (C11)"""
    for _ in range(2):
        start("--poll", 0.05)
    task = tasks.sleep.using(unique_key="order 7", on_conflict="replace")
    running = task.enqueue(1.5)
    queue.wait_started(int(running.id))
    followers = {task.enqueue(0.1 * number).id for number in range(1, 4)}
    (follower,) = followers - {running.id}
    assert len(followers) == 1
    queue.wait([int(running.id), int(follower)], "succeeded")
    first, second = queue.executions()
    assert (first.job_id, second.job_id) == (int(running.id), int(follower))
    assert first.ended is not None
    assert second.began >= first.ended


def test_nothing_is_kept_of_what_succeeds_where_retention_is_nothing(queue: Queue, start: Workers) -> None:
    """The worker deletes it in the commit of its end, earlier attempts included; what is dead stays."""
    retention = {"succeeded": 0, "queues": {"other": {"succeeded": 3600}}}
    worker = start("--poll", 0.05, TASKS={"default": {"OPTIONS": {"retention": retention}}})
    many = tasks.ok.enqueue_many((n,) for n in range(200))
    again = tasks.fail_once.using(max_attempts=2, backoff=Backoff(0.1, 0.1)).enqueue()
    dead = tasks.fail_once.using(max_attempts=1).enqueue()
    kept = tasks.ok.using(queue_name="other").enqueue("kept")
    queue.wait([int(dead.id)], "dead")
    queue.wait([int(kept.id)], "succeeded")
    wait_until(lambda: queue.value("SELECT count(*) FROM django_pgqueue_job") == 2, 20.0)
    for table in ("django_pgqueue_jobstate", "django_pgqueue_attempt"):
        assert queue.value(f"SELECT count(*) FROM {table}") == 2
    for gone in (many[0], again):
        with pytest.raises(TaskResultDoesNotExist):
            gone.refresh()
    worker.stop()
    assert not worker.events("lease_lost")
