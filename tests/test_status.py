"""manage.py pgqueue_status: what waits and runs, and the queues that nobody serves."""

import json
from collections.abc import Callable
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from django_pgqueue import sql
from django_pgqueue.models import Job
from django_pgqueue.operating import QueuePause, Rollup, Worker
from django_pgqueue.registry import Registration
from django_pgqueue.testing import forward_time

from . import support

pytestmark = pytest.mark.django_db


def status(*arguments: str) -> str:
    out = StringIO()
    call_command("pgqueue_status", *arguments, stdout=out)
    return out.getvalue()


def notes() -> dict[str, str]:
    return {queue["queue"]: queue["note"] for queue in json.loads(status("--json"))["queues"]}


def test_an_empty_queue() -> None:
    assert status() == "queue  ready  oldest  running  scheduled\n0 worker processes are connected.\n"
    found = json.loads(status("--json"))
    assert (found["worker_processes"], found["queues"], found["workers"], found["tasks"]) == (0, [], [], [])


def test_the_numbers() -> None:
    for _ in range(3):
        support.enqueue()
    support.running(2)
    support.enqueue(delay=60.0)
    support.enqueue(queue="emails")
    forward_time(3)
    default, emails = Job.objects.queues()
    assert (default.queue, default.ready, default.running, default.scheduled) == ("default", 3, 2, 1)
    assert (emails.queue, emails.ready, emails.running, emails.scheduled) == ("emails", 1, 0, 0)
    assert 3 <= (default.waited or 0) < 60
    lines = status().splitlines()
    assert lines[1].split()[:5] == ["default", "3", f"{default.waited:.0f}", "s", "2"]
    assert lines[2].startswith("emails ")


def test_a_queue_that_nobody_serves_is_named() -> None:
    support.enqueue(queue="emails")
    assert notes() == {"emails": ""}, "it has only just come"
    forward_time(6)
    assert notes() == {"emails": "waiting, no worker"}
    assert "waiting, no worker" in status()


def test_a_queue_that_is_served_is_not_named() -> None:
    support.enqueue()
    support.running(1)
    support.enqueue()
    forward_time(6)
    assert notes() == {"default": ""}


@pytest.mark.parametrize("name", ["emails", "*"])
@pytest.mark.django_db(transaction=True)
def test_a_worker_that_sleeps_serves_its_queue(connect: Callable[[], psycopg.Connection], name: str) -> None:
    support.enqueue(queue="emails")
    forward_time(6)
    connect().execute(sql.SLEEP, {"queue": name})
    assert notes() == {"emails": ""}


@pytest.mark.django_db(transaction=True)
def test_workers_that_are_connected_may_serve_others(connect: Callable[[], psycopg.Connection]) -> None:
    support.enqueue(queue="emails")
    forward_time(6)
    connect().execute("SET application_name = 'django_pgqueue child here.1.abc'")
    assert notes()["emails"].startswith("waiting, no worker seen")
    assert "1 worker processes" in status()


def test_a_queue_that_the_settings_do_not_have_is_named() -> None:
    support.enqueue(queue="removed")
    assert notes() == {"removed": "not in QUEUES"}


def test_only_an_alias_of_this_backend() -> None:
    with pytest.raises(CommandError, match="'nope'"):
        status("--backend", "nope")


@pytest.mark.django_db(transaction=True)
def test_the_last_hour_the_tasks_and_the_workers_are_shown() -> None:
    support.make("succeeded")
    support.make("dead", failures=1)
    for _ in range(2):
        Rollup.objects.count_attempts(limit=100, connection=connection)
    line = Registration("w", "web-1", 77, 5.0, 60.0, ("default",), 2, 4, "0", "spring", 90, False, ())
    Worker.objects.beat(line, connection=connection)
    found = json.loads(status("--json"))
    assert (found["last_hour"]["succeeded"], found["last_hour"]["failed"]) == (1, 2)
    assert 0.5 <= found["last_hour"]["run_half"] <= 2.1
    assert [(task["task_path"], task["failed"]) for task in found["tasks"]] == [("tests.tasks.ok", 2)]
    assert [(worker["host"], worker["state"], worker["slots"]) for worker in found["workers"]] == [
        ("web-1", "alive", 8)
    ]
    text = status()
    assert "The last hour: 3 attempts ended, 2 failed or were lost (66.7%)." in text
    assert "web-1    77  alive" in text


def test_a_paused_queue_says_who_paused_it() -> None:
    support.enqueue()
    QueuePause.objects.pause("default", by="anna")
    forward_time(10)
    assert notes() == {"default": "paused, by anna"}


def test_it_is_shown_anew_until_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("django_pgqueue.management.commands.pgqueue_status.time.sleep", nap)
    assert status("--watch", "0.5").count("worker processes are connected") == 3
    assert naps == [0.5] * 3
