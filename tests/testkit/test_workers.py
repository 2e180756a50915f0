"""run_worker: a real worker on the test's database, of which nothing is left afterwards."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connection, connections
from django.test import testcases

from devtools.databases import database_url
from django_pgqueue.compat import TaskResultStatus
from django_pgqueue.testing import WorkerFailed, WorkerProcess, forward_time, run_worker
from django_pgqueue.testing.environment import is_allowed, worker_environment

from ..waiting import wait_until
from . import tasks

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"


@pytest.fixture
def observer(transactional_db: None) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url(connection.settings_dict), autocommit=True) as session:
        yield session


def sessions_of(worker: WorkerProcess, observer: psycopg.Connection) -> int:
    return observer.execute(SESSIONS, [worker._session_name]).fetchone()[0]


def processes_of(worker: WorkerProcess) -> list[int]:
    """Return the living processes of a worker's session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == worker.pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def test_jobs_are_run_and_results_refreshed(observer: psycopg.Connection) -> None:
    results = [tasks.note.enqueue(1), tasks.mail.enqueue("ada@example.com"), tasks.coroutine.enqueue("async")]
    results.append(tasks.show_settings.enqueue("EMAIL_BACKEND", "MEDIA_ROOT", "USE_TZ"))
    with run_worker(settings={"MEDIA_ROOT": "here"}) as worker:
        worker.wait(*results)
        assert [result.return_value for result in results] == [
            *(1, "sent to ada@example.com", 1),
            ["django.core.mail.backends.locmem.EmailBackend", "here", True],
        ]
        later = tasks.add_group.enqueue("later")
        worker.wait()
        later.refresh()
        assert later.status == TaskResultStatus.SUCCESSFUL
        assert sessions_of(worker, observer) > 1
        assert connection.settings_dict["NAME"] in worker_environment("x", {})["PGQUEUE_TEST_CHANGES"]
    assert processes_of(worker) == []
    assert sessions_of(worker, observer) == 0
    assert not worker.alive


def test_a_killed_worker_leaves_no_session_behind(observer: psycopg.Connection) -> None:
    result = tasks.sleep.enqueue(60)
    with run_worker() as worker:
        wait_until(lambda: _is_running(result))
        wait_until(lambda: _sleeps(observer))
        worker.kill()
        assert processes_of(worker) == []
        assert (sessions_of(worker, observer), _sleeps(observer)) == (0, False)
    assert _is_running(result), "nobody has rescued it"
    forward_time(60)
    tasks.note.enqueue(1)
    with run_worker(queues=["other"]) as worker:
        wait_until(lambda: not _is_running(result), message="the keeper did not rescue it")


def test_a_worker_whose_task_never_ends_is_ended(observer: psycopg.Connection) -> None:
    result = tasks.sleep.enqueue(60)
    with run_worker(grace=0.2) as worker:
        wait_until(lambda: _sleeps(observer))
    assert processes_of(worker) == []
    assert (sessions_of(worker, observer), _sleeps(observer)) == (0, False)
    assert not _is_running(result)


def _is_running(result: Any) -> bool:
    result.refresh()
    return result.status == TaskResultStatus.RUNNING


def _sleeps(observer: psycopg.Connection) -> bool:
    statement = (
        "SELECT count(*) FROM pg_stat_activity "
        " WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep%' AND state = 'active'"
    )
    return bool(observer.execute(statement).fetchone()[0])


def test_the_tables_can_be_flushed_after_a_busy_worker() -> None:
    results = [tasks.write_and_wait.enqueue(f"group {n}", 0.2) for n in range(20)]
    with run_worker(threads=8, grace=0.1) as worker:
        worker.wait(*results[:4])
    call_command("flush", verbosity=0, interactive=False, allow_cascade=False)
    assert not Group.objects.exists()


def test_a_worker_that_does_not_come_up_says_why(settings: Any) -> None:
    with pytest.raises(WorkerFailed, match=r"the worker ended with [^0].*no such module|No module named"):
        with run_worker(settings={"INSTALLED_APPS": ["no_such_module"]}):
            pass


def test_a_worker_that_ends_by_itself_fails_the_test() -> None:
    with ExitStack() as stack:
        worker = stack.enter_context(run_worker())
        os.kill(worker.pid, signal.SIGTERM)
        wait_until(lambda: not worker.alive)
        with pytest.raises(WorkerFailed, match="the worker ended with"):
            stack.close()


def test_a_wait_in_vain_shows_the_log() -> None:
    with run_worker(queues="other") as worker:
        result = tasks.note.enqueue(1)
        with pytest.raises(
            WorkerFailed, match=r"(?s)waited 0.1 s in vain for the end of the jobs .*child_started"
        ):
            worker.wait(result, timeout=0.1)
        with pytest.raises(WorkerFailed, match="the end of all jobs that are due"):
            worker.wait(timeout=0.1)
        worker.stop()
        assert not worker.alive, "it may be stopped early"


def test_an_error_in_the_block_is_not_hidden(observer: psycopg.Connection) -> None:
    workers: list[WorkerProcess] = []

    def fail_beside_a_dead_worker() -> None:
        with run_worker() as worker:
            workers.append(worker)
            os.kill(worker.pid, signal.SIGKILL)
            raise tasks.Refused

    with pytest.raises(tasks.Refused):
        fail_beside_a_dead_worker()
    assert sessions_of(workers[0], observer) == 0


def test_tasks_may_be_overridden(settings: Any) -> None:
    settings.TASKS = {"kit": {**settings.TASKS["default"], "QUEUES": ["kit"]}}
    result = tasks.note.using(backend="kit", queue_name="kit").enqueue(1)
    with run_worker(backend="kit") as worker:
        worker.wait(result)
        assert "queues=kit" in worker.log
    settings.TASKS = {"default": {"BACKEND": "no.such.Backend", "OPTIONS": {"not": object()}}}
    assert "no.such" not in worker_environment("x", {})["PGQUEUE_TEST_CHANGES"]


@pytest.mark.django_db(transaction=False)
def test_a_worker_beside_a_transaction_is_refused(db: None) -> None:
    with pytest.raises(RuntimeError, match="sees only what has been committed"), run_worker():
        pass


def test_settings_without_a_module_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
    with pytest.raises(ImproperlyConfigured, match="must name their module"), run_worker():
        pass


def test_databases_that_the_test_may_not_use_are_not_given_to_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    default = connections["default"]
    assert is_allowed(default)
    monkeypatch.setattr(default, "connect", testcases._DatabaseFailure(default.connect, "forbidden"))
    assert not is_allowed(default)
    assert '"databases": {}' in worker_environment("x", {})["PGQUEUE_TEST_CHANGES"]


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems cannot tell a process of its parent's death"
)
def test_a_worker_dies_with_the_test_run(observer: psycopg.Connection, tmp_path: Path) -> None:
    name = "pgqueue test worker of the dead"
    script = (
        "import os, signal, subprocess, sys\n"
        "command = [sys.executable, '-m', 'django_pgqueue.testing.worker_process', str(os.getpid())]\n"
        "subprocess.Popen(command, start_new_session=True)\n"
        "sys.stdin.read()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = worker_environment(name, {})
    with subprocess.Popen([sys.executable, "-c", script], env=environment, stdin=subprocess.PIPE) as process:
        wait_until(lambda: observer.execute(SESSIONS, [name]).fetchone()[0], 30.0)
        assert process.stdin is not None
        process.stdin.close()
    assert process.returncode == -signal.SIGKILL
    wait_until(lambda: not observer.execute(SESSIONS, [name]).fetchone()[0], 15.0)


def test_a_frozen_clock_does_not_stop_the_waiting() -> None:
    freezegun = pytest.importorskip("freezegun")
    with freezegun.freeze_time("2020-01-01"), run_worker(queues="emails") as worker:
        result = tasks.mail.enqueue("ada@example.com")
        worker.wait(result)
        with pytest.raises(WorkerFailed, match="in vain"):
            worker.wait(tasks.note.enqueue(1), timeout=0.1)
    assert result.return_value == "sent to ada@example.com"
