"""Old code meets new jobs and new code old ones."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from django_pgqueue.execution import UNKNOWN_TASK

from .. import support
from ..waiting import wait_until
from . import tasks
from .conftest import Workers
from .queue import Queue
from .worker import Worker

pytestmark = pytest.mark.process


def test_an_unknown_task_is_met_ever_less_often(queue: Queue, worker: Worker) -> None:
    """Five seconds, ten, twenty: three claims in the first twenty seconds, each uncharged."""
    job = queue.enqueue("next_release.tasks.f", max_attempts=1)
    for meetings, pause in enumerate((5, 10, 20, 40, 60, 60), start=1):
        wait_until(lambda: len(queue.attempts(job)) == meetings)  # noqa: B023 - called at once
        state = queue.state(job)
        assert (state.status, state.lease_version) == ("scheduled", meetings)
        waits = (state.run_at - queue.attempts(job)[-1].finished_at).total_seconds()
        assert waits == pytest.approx(pause, abs=0.5)
        assert state.attempts_allowed - state.attempts == 1
        queue.promote(job)


def test_arguments_that_no_longer_fit_are_a_plain_failure(queue: Queue, worker: Worker) -> None:
    job = queue.enqueue(tasks.ok, kwargs={"colour": "red"}, max_attempts=2)
    queue.wait(job, "dead")
    assert queue.outcomes(job) == ["failed", "failed"]
    assert queue.attempts(job)[0].exception_class == "builtins.TypeError"
    assert "colour" in queue.attempts(job)[0].message


def test_a_worker_with_the_code_runs_what_others_put_back(
    queue: Queue, start: Workers, tmp_path: Path
) -> None:
    old = start("--poll", 0.05)
    job = queue.enqueue("next_release.double", 21, max_attempts=1)
    queue.wait(job, "scheduled")
    (tmp_path / "next_release.py").write_text(
        "from django_pgqueue import task\n\n\n@task\ndef double(n):\n    return 2 * n\n"
    )
    start("--poll", 0.05, env={"PYTHONPATH": str(tmp_path)})

    def ran() -> bool:
        queue.promote(job)
        return queue.status(job) == "succeeded"

    wait_until(ran, 20.0)
    assert queue.attempts(job)[-1].return_value == 42
    assert set(queue.outcomes(job)[:-1]) == {"snoozed"}
    assert old.events("unknown_task", job=job)


def test_an_unknown_task_is_dead_when_patience_ends(queue: Queue, start: Workers) -> None:
    start("--poll", 0.05, TASKS={"default": {"OPTIONS": {"unknown_task_patience": 1.0}}})
    job = queue.enqueue("tests.processes.tasks.renamed", max_attempts=5)

    def dead() -> bool:
        queue.promote(job)
        return queue.status(job) == "dead"

    wait_until(dead, 10.0)
    last = queue.attempts(job)[-1]
    assert (last.outcome, last.exception_class) == ("failed", UNKNOWN_TASK)
    assert "no worker knew it for" in last.message


def test_a_restored_copy_runs_nothing_of_its_origin(
    queue: Queue, start: Workers, django_database: None
) -> None:
    """What the page about operations says is done before the first worker starts. (C42)"""
    waiting = queue.enqueue_many(tasks.mark, [()] * 10)
    overdue = queue.enqueue_many(tasks.mark, [()] * 5, delay=0.01)
    running = queue.enqueue_many(tasks.mark, [()] * 2, priority=1)
    for job in running:
        support.claim(job, lease=1.5, connection=queue.session)
    call_command("pgqueue_park", "--cancel", stdout=StringIO())
    call_command("pgqueue_park", "--resume", stdout=StringIO())
    start("--poll", 0.05, "--lease", 1.5, "--heartbeat", 0.5)
    new = queue.enqueue(tasks.mark)
    queue.wait(new, "succeeded")
    queue.wait([*waiting, *overdue, *running], "cancelled", timeout=20.0)
    assert [execution.job_id for execution in queue.executions()] == [new]
