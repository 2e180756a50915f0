"""manage.py pgqueue_status: what waits and runs, and the queues that nobody serves."""

import json
from collections.abc import Callable
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command

from django_pgqueue import sql
from django_pgqueue.models import Job
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
    assert json.loads(status("--json")) == {"worker_processes": 0, "queues": []}


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
