"""From django-tasks-db to this queue: nothing that waits is lost, run twice, or changed."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from django_tasks_db.models import DBTaskResult, get_date_max

from devtools.databases import database_url
from django_pgqueue.compat import TaskResultStatus, task_backends
from django_pgqueue.models import Job
from tests.processes.worker import ROOT, Worker
from tests.waiting import wait_until

from ..conftest import Processes
from . import tasks

READY, RUNNING = TaskResultStatus.READY, TaskResultStatus.RUNNING
GIVE = tasks.give.module_path
BEFORE = """
from datetime import timedelta
from django.utils import timezone
from tests.clients.migration import tasks
for _ in range(2):
    tasks.give.enqueue(1, "zwei", [3, None], key={"a": [True, 1.5]})
    tasks.send.using(priority=-7).enqueue("a@example.com")
    tasks.wait.enqueue()
tasks.send.enqueue("b@example.com")
tasks.give.using(run_after=timezone.now() + timedelta(hours=1)).enqueue("later")
tasks.give.using(run_after=timezone.now() - timedelta(hours=1)).enqueue("overdue")
tasks.fail.enqueue()
"""
BOTH_SIDES = """
SELECT (SELECT count(*) FROM django_pgqueue_job), (SELECT count(*) FROM django_tasks_database_dbtaskresult)
"""


class Import(Worker):
    """A running ``manage.py pgqueue_import``."""

    COMMAND = "pgqueue_import"


@pytest.fixture(autouse=True)
def nothing_before(delete_jobs: None) -> Iterator[None]:
    yield
    DBTaskResult.objects.all().delete()


def run_before(script: str) -> None:
    """Run a script in a process of the project as it was."""
    environ = {
        **os.environ,
        "DATABASE_URL": database_url(connection.settings_dict),
        "DJANGO_SETTINGS_MODULE": "tests.clients.migration.settings_before",
    }
    command = [sys.executable, "-m", "django", "shell", "--no-imports", "-c", script]
    subprocess.run(command, env=environ, cwd=ROOT, check=True, timeout=60)


def old(count: int = 1, **values: object) -> list[DBTaskResult]:
    """Make rows as django-tasks-db stores them."""
    given = {
        "task_path": GIVE,
        "args_kwargs": {"args": [], "kwargs": {}},
        "backend_name": "default",
        "run_after": get_date_max(),
    } | values
    return DBTaskResult.objects.bulk_create(DBTaskResult(**given) for _ in range(count))


def test_a_project_changes_its_settings_and_works(processes: Processes) -> None:
    run_before(BEFORE)
    waiting = {str(row.pk): row for row in DBTaskResult.objects.all()}
    assert len(waiting) == 10
    call_command("pgqueue_import", verbosity=0)
    assert not DBTaskResult.objects.exists()
    jobs = list(Job.objects.order_by("pk"))
    assert [job.metadata["django_tasks_db"]["id"] for job in jobs] == [
        str(row.pk) for row in sorted(waiting.values(), key=lambda row: (row.enqueued_at, row.pk))
    ]
    for job in jobs:
        row = waiting[job.metadata["django_tasks_db"]["id"]]
        assert (job.task_path, job.args, job.kwargs) == (
            row.task_path,
            row.args_kwargs["args"],
            row.args_kwargs["kwargs"],
        )
        assert (job.queue, job.priority) == (row.queue_name, row.priority)
        assert job.run_after == (None if row.run_after == get_date_max() else row.run_after)
        assert datetime.fromisoformat(job.metadata["django_tasks_db"]["enqueued_at"]) == row.enqueued_at
    later = next(job for job in jobs if job.args == ["later"]).state
    assert timedelta(minutes=59) < later.run_at - timezone.now() < timedelta(minutes=60)
    Job.objects.promote_now([later.pk])
    new = tasks.give.enqueue("new")  # what the project does from now on
    processes.drain()
    results = [task_backends["default"].get_result(str(job.pk)) for job in jobs]
    assert Counter(result.status for result in results) == {"SUCCESSFUL": 9, "FAILED": 1}
    values = Counter(str(result.return_value) for result in results if result.status == "SUCCESSFUL")
    assert values == {
        "[[1, 'zwei', [3, None]], {'key': {'a': [True, 1.5]}}]": 2,
        "a@example.com 1": 2,
        "waited": 2,
        "b@example.com 1": 1,
        "[['later'], {}]": 1,
        "[['overdue'], {}]": 1,
    }
    new.refresh()
    assert new.return_value == [["new"], {}]


def test_a_killed_import_is_gone_on_with(processes: Processes) -> None:
    ids = {str(row.pk) for row in old(6000)}
    command = processes.start(kind=Import)
    wait_until(lambda: Job.objects.exists(), 30.0, "nothing was taken over")
    command.kill()
    assert command.process.returncode == -9
    with connection.cursor() as cursor:
        cursor.execute(BOTH_SIDES)
        taken, left = cursor.fetchone()
    assert 0 < taken < 6000, "it was not killed in the middle"
    assert taken + left == 6000
    assert taken % 1000 == 0
    call_command("pgqueue_import", verbosity=0)
    call_command("pgqueue_import", verbosity=0)
    assert not DBTaskResult.objects.exists()
    origins = [job.metadata["django_tasks_db"]["id"] for job in Job.objects.all()]
    assert len(origins) == 6000
    assert set(origins) == ids


def test_a_dry_run_checks_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    old(2500)
    call_command("pgqueue_import", "--dry-run", no_color=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        *(f"{count} of 2500 can be taken over" for count in (1000, 2000, 2500)),
        "2500 rows can be taken over.",
    ]
    assert DBTaskResult.objects.count() == 2500
    assert not Job.objects.exists()


def test_running_rows_are_refused_or_left() -> None:
    old(2)
    (running,) = old(status=RUNNING)
    with pytest.raises(CommandError, match="1 rows of 'default' are RUNNING: a db_worker has them"):
        call_command("pgqueue_import")
    assert not Job.objects.exists()
    call_command("pgqueue_import", "--leave-running", verbosity=0)
    assert list(DBTaskResult.objects.all()) == [running]
    assert Job.objects.count() == 2


def test_rows_that_cannot_be_jobs_stay_and_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    good = old(3)
    bad = [
        *old(task_path="shop.tasks.gone"),
        *old(queue_name="elsewhere"),
        *old(args_kwargs={"args": []}),
        *old(args_kwargs={"args": ["\\u0000" * 2_000_000], "kwargs": {}}),
    ]
    with pytest.raises(CommandError, match="3 rows taken over, 4 left where they are"):
        call_command("pgqueue_import")
    assert set(DBTaskResult.objects.all()) == set(bad)
    assert Job.objects.count() == len(good)
    said = capsys.readouterr().err
    reasons = ("No module named 'shop'", "'elsewhere' is not valid", "has no 'kwargs'", "bytes")
    for row, reason in zip(bad, reasons, strict=True):
        (line,) = [line for line in said.splitlines() if line.startswith(str(row.pk))]
        assert reason in line


def test_ended_rows_and_those_of_other_aliases_are_not_touched() -> None:
    ended = old(status=TaskResultStatus.SUCCESSFUL) + old(status=TaskResultStatus.FAILED)
    other = old(2, backend_name="second")
    call_command("pgqueue_import", verbosity=0)
    assert set(DBTaskResult.objects.all()) == {*ended, *other}
    call_command("pgqueue_import", "--from-backend", "second", verbosity=0)
    assert set(DBTaskResult.objects.all()) == set(ended)
    assert set(Job.objects.values_list("backend", flat=True)) == {"default"}


def test_a_row_that_a_worker_has_locked_is_left_to_it() -> None:
    old(3)
    held = DBTaskResult.objects.first()
    with psycopg.connect(database_url(connection.settings_dict)) as session:
        session.execute("SELECT FROM django_tasks_database_dbtaskresult WHERE id = %s FOR UPDATE", [held.pk])
        with pytest.raises(CommandError, match="2 rows taken over; others were locked or came meanwhile"):
            call_command("pgqueue_import")
    assert list(DBTaskResult.objects.all()) == [held]
    call_command("pgqueue_import", verbosity=0)
    assert Job.objects.count() == 3


def test_an_alias_of_another_backend_is_refused() -> None:
    with pytest.raises(CommandError, match="'second' is not an alias of TASKS that uses PgQueueBackend"):
        call_command("pgqueue_import", "--backend", "second")
