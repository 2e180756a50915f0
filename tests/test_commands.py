"""The commands of operators: retry, cancel, prune, park, health; for people and for programs."""

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from django_pgqueue.management.output import Bar
from django_pgqueue.operating import QueuePause, Worker
from django_pgqueue.registry import Registration
from django_pgqueue.testing import forward_time

from . import support
from .admin.jobs import dead
from .support import fetch, make, status_of

pytestmark = pytest.mark.django_db


def run(name: str, *arguments: Any) -> str:
    out = StringIO()
    call_command(f"pgqueue_{name}", *map(str, arguments), stdout=out)
    return out.getvalue()


def told(name: str, *arguments: Any) -> dict[str, Any]:
    return json.loads(run(name, *arguments, "--json"))


# --- retry and cancel


def test_jobs_are_retried_by_number() -> None:
    first, second, other = dead(3)
    running = support.running(1)[0].job_id
    assert told("retry", first, second, running) == {
        "meant": 3,
        "meant_is_exact": True,
        "dry_run": False,
        "retried": 2,
        "skipped": 1,
    }
    assert [status_of(job) for job in (first, second, other, running)] == [
        "ready",
        "ready",
        "dead",
        "running",
    ]


def test_jobs_are_retried_by_filter() -> None:
    (other,) = dead(1, queue="other")
    emails = dead(2, queue="emails", task_path="tests.tasks.mail")
    (cancelled,) = [make("cancelled", queue="emails").job_id]
    assert told("retry", "--queue", "emails", "--task", "tests.tasks.mail")["retried"] == 2
    assert [status_of(job) for job in (*emails, other, cancelled)] == ["ready", "ready", "dead", "cancelled"]
    assert told("retry", "--status", "cancelled")["retried"] == 1
    assert "1 retried" in run("retry", "--all")


def test_a_time_narrows_what_is_retried() -> None:
    (old,) = dead(1)
    forward_time(7200)
    (new,) = dead(1)
    hour_ago = (timezone.now() - timedelta(hours=1)).isoformat()
    assert told("retry", "--ended-since", hour_ago)["retried"] == 1
    assert (status_of(old), status_of(new)) == ("dead", "ready")
    assert told("retry", "--ended-before", hour_ago)["retried"] == 1


def test_a_dry_run_counts_and_changes_nothing() -> None:
    (job,) = dead(1)
    assert run("retry", "--all", "--dry-run") == "1 jobs would be retried.\n"
    assert status_of(job) == "dead"


def test_thousands_are_retried_in_batches() -> None:
    jobs = dead(2300)
    assert told("retry", "--queue", "default")["retried"] == 2300
    assert {row["status"] for row in fetch("SELECT DISTINCT status FROM django_pgqueue_jobstate")} == {
        "ready"
    }
    assert len(jobs) == 2300


def test_jobs_in_conflict_are_told() -> None:
    first = make("dead", unique_key="k").job_id
    live = support.enqueue(unique_key="k")
    with pytest.raises(CommandError, match="None was retried"):
        run("retry", first)
    assert (status_of(first), status_of(live)) == ("dead", "ready")


def test_waiting_jobs_are_cancelled_and_running_ones_asked() -> None:
    waiting, later = support.enqueue(), support.enqueue(delay=60.0)
    running = support.running(1)[0].job_id
    found = told("cancel", "--all")
    assert (found["cancelled"], found["asked_to_stop"]) == (2, 1)
    assert [status_of(job) for job in (waiting, later, running)] == ["cancelled", "cancelled", "running"]
    assert told("cancel", waiting)["skipped"] == 1


@pytest.mark.parametrize("command", ["retry", "cancel"])
def test_nothing_is_meant_unless_it_is_said(command: str) -> None:
    (job,) = dead(1)
    with pytest.raises(CommandError, match="Which jobs"):
        run(command)
    with pytest.raises(CommandError, match="not both"):
        run(command, job, "--queue", "default")
    assert status_of(job) == "dead"


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(CommandError, match="invalid moment value"):
        run("retry", "--ended-since", "yesterday")


# --- prune


def test_retention_is_carried_out_now() -> None:
    old = make("succeeded").job_id
    forward_time(8 * 86400)
    new, other = make("succeeded").job_id, make("dead").job_id
    assert told("prune") == {"deleted": {"succeeded": 1, "cancelled": 0, "dead": 0}, "total": 1}
    assert [status_of(job) for job in (old, new, other)] == [None, "succeeded", "dead"]


def test_an_age_a_status_and_a_queue_narrow_what_is_pruned() -> None:
    jobs = {
        (status, queue): make(status, queue=queue).job_id
        for status in ("succeeded", "dead")
        for queue in ("default", "emails")
    }
    forward_time(7200)
    assert told("prune", "--older-than", "3h")["total"] == 0
    assert told("prune", "--older-than", "1h", "--queue", "emails", "--status", "dead")["total"] == 1
    assert status_of(jobs["dead", "emails"]) is None
    assert told("prune", "--older-than", "60m", "--limit", 2)["total"] == 2
    assert "Deleted: 1 " in run("prune", "--older-than", "3600")


def test_a_queue_needs_an_age() -> None:
    with pytest.raises(CommandError, match="--older-than"):
        run("prune", "--queue", "emails")


# --- park


def test_a_parked_copy_is_paused_and_can_be_emptied() -> None:
    waiting, running = support.enqueue(), support.running(1)[0].job_id
    assert told("park")["changed"] is True
    assert told("park")["changed"] is False
    assert QueuePause.objects.present()[""].by.endswith("(pgqueue_park)")
    assert status_of(waiting) == "ready"
    found = told("park", "--cancel")
    assert (found["cancelled"], found["asked_to_stop"]) == (1, 1)
    assert (status_of(waiting), status_of(running)) == ("cancelled", "running")
    assert "go on" in run("park", "--resume")
    assert QueuePause.objects.present() == {}


def test_resume_and_cancel_do_not_go_together() -> None:
    with pytest.raises(CommandError, match="do not go together"):
        run("park", "--resume", "--cancel")


# --- health


def healthy(*arguments: Any) -> bool:
    well: bool = True
    out = StringIO()
    try:
        call_command("pgqueue_health", *map(str, arguments), "--json", stdout=out)
    except CommandError as error:
        well = error.returncode != 1
    assert json.loads(out.getvalue())["well"] is well, "the text and the exit code agree"
    return well


def register(**changes: Any) -> None:
    line = Registration("w", "here", 1, 0.0, 60.0, ("default",), 1, 1, "0", "", None, False, ())
    Worker.objects.beat(line._replace(**changes), connection=connection)


def test_a_worker_of_this_host_is_alive_or_not() -> None:
    assert not healthy("liveness", "--host", "here")
    register()
    assert healthy("liveness", "--host", "here")
    assert not healthy("liveness", "--host", "elsewhere")
    fetch("UPDATE django_pgqueue_worker SET beat_at = beat_at - interval '1 hour' RETURNING 1")
    assert not healthy("liveness", "--host", "here")
    assert told("health", "readiness")["well"] is True


@pytest.mark.django_db(transaction=True)
def test_the_database_takes_writes_or_not(connect: Callable[[], psycopg.Connection]) -> None:
    assert healthy("readiness")
    session = connect()
    session.execute("ALTER TABLE django_pgqueue_jobstate RENAME TO away")
    try:
        assert not healthy("readiness")
    finally:
        session.execute("ALTER TABLE away RENAME TO django_pgqueue_jobstate")


def test_an_old_ready_job_is_told_by_the_exit_code() -> None:
    support.enqueue()
    support.enqueue(queue="emails")
    assert healthy("backlog", "--older-than", 100)
    forward_time(200)
    assert not healthy("backlog", "--older-than", 100)
    assert healthy("backlog", "--older-than", 300)
    QueuePause.objects.pause("default", by="boss")
    assert not healthy("backlog", "--older-than", 100)
    assert healthy("backlog", "--older-than", 100, "--queues", "default"), (
        "nobody expects a paused queue to move"
    )


def test_health_without_a_database(manage: Callable[..., Any]) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    live = manage("pgqueue_health", "liveness", url=nowhere)
    assert (live.returncode, "no fault of the worker" in live.stdout) == (0, True), live.stderr
    ready = manage("pgqueue_health", "readiness", url=nowhere)
    assert ready.returncode == 1
    assert "does not answer" in ready.stderr
    assert manage("pgqueue_health", "mood").returncode == 2


# --- the bar


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_a_bar_and_a_file_does_not() -> None:
    screen, file = Terminal(), StringIO()
    for stream in (screen, file):
        with Bar("retried", 4, stream) as bar:
            bar.add(2)
            bar.add(2)
    assert "4 of 4 retried" in screen.getvalue()
    assert "#" * 30 in screen.getvalue()
    assert file.getvalue() == ""
