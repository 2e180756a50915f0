"""Where the queue may live: enqueueing, a real worker, results and the admin in other projects.

(C46, C47, C48, C50)
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from devtools.postgres import server

from .conftest import Workers, environ, prepared
from .nursery import Nursery
from .queue import Queue

pytestmark = pytest.mark.process

ENQUEUE = """
from datetime import timedelta
from django.db import router, transaction
from django.utils import timezone
from django_pgqueue import Backoff
from django_pgqueue.models import Job
from tests.processes.tasks import fail_once, ok

alias = router.db_for_write(Job)
with transaction.atomic(using=alias):
    made = {
        "now": ok.enqueue("now"),
        "at": ok.using(run_after=timezone.now() + timedelta(seconds=1)).enqueue("at"),
        "in": ok.using(run_after=timedelta(seconds=1)).enqueue("in"),
        "again": fail_once.using(max_attempts=2, backoff=Backoff(0.5, 0.5)).enqueue(),
        "dead": fail_once.using(max_attempts=1).enqueue(),
    }
    keyed = ok.using(unique_key=lambda n: f"key {n}", on_conflict="replace", run_after=timedelta(seconds=0.2))
    many = keyed.enqueue_many((n,) for n in range(3))
    assert [result.id for result in keyed.enqueue_many((n,) for n in range(3))] == [one.id for one in many]
    made["keyed"] = many[0]
try:
    with transaction.atomic(using=alias):
        ok.enqueue("rolled back")
        raise LookupError
except LookupError:
    pass
print(json.dumps({name: int(ok.get_backend().get_result(result.id).id) for name, result in made.items()}))
"""

READ = """
from django.contrib.auth.models import User
from django_pgqueue.compat import task_backends
from django.conf import settings
from tests.admin.site import LIST, button_of, page_of, text_of, visitor

def seconds(result):
    due = result.task.run_after or result.enqueued_at
    assert (due.tzinfo is not None) == settings.USE_TZ
    return (result.started_at - due).total_seconds()

results = {name: task_backends["default"].get_result(str(job)) for name, job in ids.items()}
print(json.dumps({
    name: [result.status, result.attempts, seconds(result), result.finished_at >= result.started_at]
    for name, result in results.items()
}))
settings.ALLOWED_HOSTS = ["*"]
client = visitor(is_superuser=True)
page = text_of(client.get(LIST + "?enqueued_at__range__gte_0=2020-01-01&q=" + str(ids["dead"])))
assert "fail_once" in page
text_of(client.get(LIST))
assert "attempt 1" in text_of(client.get(page_of(ids["dead"])))
assert client.post(button_of(ids["dead"], "retry")).status_code == 302
User.objects.all().delete()
"""


class Place:
    """A project with settings of its own: its queue, workers and processes."""

    def __init__(self, queue: Queue, start: Workers, url: str, **settings: Any) -> None:
        self.queue = queue
        self.url = url
        self.settings = settings
        self.start = start

    def run(self, code: str, **given: Any) -> Any:
        """Run code in a process of the project and return what it printed last."""
        head = f"import django, json\ndjango.setup()\nids = json.loads({json.dumps(json.dumps(given))})\n"
        return json.loads(self.command("-c", head + code).splitlines()[-1])

    def command(self, *arguments: str) -> str:
        """Run Python with these arguments in the project; return all it wrote."""
        done = subprocess.run(
            [sys.executable, *arguments],
            env=environ(self.url, **self.settings),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr + done.stdout


@pytest.fixture
def databases(nursery: Nursery, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Make a database with the tables, where the connection's parameters say; it goes with the test."""
    server = os.environ["DATABASE_URL"]
    with psycopg.connect(server, autocommit=True) as session, ExitStack() as stack:

        def make(first: str = "", **parameters: Any) -> str:
            name = f"test_place_{os.getpid()}"
            session.execute(f"CREATE DATABASE {name}")
            stack.callback(session.execute, f"DROP DATABASE {name} WITH (FORCE)")
            if first:
                with psycopg.connect(make_conninfo(server, dbname=name), autocommit=True) as inside:
                    inside.execute(first)
            return prepared(make_conninfo(server, dbname=name, **parameters), nursery, tmp_path)

        yield make


def live_there(place: Place) -> None:
    """Enqueue, have a worker run it, read the results, look at the admin, and retry from there."""
    place.start("--poll", 0.05, url=place.url, **place.settings)
    ids = place.run(ENQUEUE)
    place.queue.wait(ids.values(), timeout=20.0)
    assert place.queue.value("SELECT count(*) FROM django_pgqueue_job") == 8, "no job of what was rolled back"
    read = place.run(READ, **ids)
    for name, (status, attempts, late, ordered) in read.items():
        assert status == ("FAILED" if name == "dead" else "SUCCESSFUL"), name
        assert attempts == (2 if name == "again" else 1), name
        assert -0.01 < late < 2.0, f"{name} began {late} s after it was due"
        assert ordered, name
    place.queue.wait(ids["dead"], "succeeded")


NAIVE = {"USE_TZ": False, "TIME_ZONE": "Asia/Shanghai"}
ISOLATED = {"DATABASES": {"default": {"OPTIONS": {"isolation_level": 3}}}}  # REPEATABLE READ
SHOW = """
from django.db import connections, transaction
shown = {}
for alias in connections:
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        for name in ("transaction_isolation", "transaction_read_only"):
            cursor.execute(f"SHOW {name}")
            shown[f"{alias} {name}"] = cursor.fetchone()[0]
print(json.dumps(shown))
"""
SERIALIZABLE = {"DATABASES": {"default": {"OPTIONS": {"isolation_level": 4}}}}
REPLICA = {
    "DATABASES": {"replica": {"OPTIONS": {"options": "-c default_transaction_read_only=on"}}},
    "DATABASE_ROUTERS": ["tests.processes.project.ReplicaRouter"],
}


@pytest.mark.parametrize(
    ("settings", "zone", "shown"),
    [
        pytest.param(NAIVE, None, {}, id="without time zones"),
        pytest.param(NAIVE, "America/New_York", {}, id="without time zones, server elsewhere"),
        pytest.param({}, "Asia/Kathmandu", {}, id="server elsewhere"),
        pytest.param(
            ISOLATED, None, {"default transaction_isolation": "repeatable read"}, id="repeatable read"
        ),
        pytest.param(
            SERIALIZABLE, None, {"default transaction_isolation": "serializable"}, id="serializable"
        ),
        pytest.param(REPLICA, None, {"replica transaction_read_only": "on"}, id="reads go to a replica"),
    ],
)
def test_a_project_of_other_settings(
    queue: Queue, start: Workers, settings: dict[str, Any], zone: str | None, shown: dict[str, str]
) -> None:
    database = queue.session.info.dbname
    if zone:
        queue.session.execute(f"ALTER DATABASE {database} SET timezone = '{zone}'")
    try:
        place = Place(queue, start, queue.url, **settings)
        assert place.run(SHOW).items() >= shown.items()
        live_there(place)
    finally:
        queue.session.execute(f"ALTER DATABASE {database} RESET timezone")


def test_a_schema_of_its_own(databases: Callable[..., str], nursery: Nursery, tmp_path: Path) -> None:
    url = databases(
        "CREATE SCHEMA jobs; REVOKE ALL ON SCHEMA public FROM PUBLIC", options="-c search_path=jobs"
    )
    with Queue(url) as queue, ExitStack() as stack:
        workers = Workers(queue, tmp_path, nursery)
        stack.callback(workers.close)
        live_there(Place(queue, workers, url))
        assert queue.value("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
        workers.assert_fit()
        workers.stop()


ACROSS = """
from django.db import transaction
from tests.processes.tasks import ok
try:
    with transaction.atomic():
        result = ok.enqueue("stays")
        raise LookupError
except LookupError:
    pass
with transaction.atomic():
    transaction.on_commit(lambda: print(json.dumps([int(result.id), int(ok.enqueue("after").id)])))
"""


def test_a_database_of_its_own(queue: Queue, start: Workers, databases: Callable[..., str]) -> None:
    """The queue's tables are in one database, everything else in another."""
    settings = {
        "DATABASES": {"queue": {"NAME": queue.session.info.dbname}},
        "DATABASE_ROUTERS": ["django_pgqueue.routers.QueueRouter"],
        "TASKS": {"default": {"OPTIONS": {"database": "queue"}}},
    }
    url = databases()
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("DROP TABLE django_pgqueue_attempt, django_pgqueue_jobstate, django_pgqueue_job")
    place = Place(queue, start, url, **settings)
    said = place.command("-m", "django", "check", "--database", "queue")
    assert "django_pgqueue.W001" in said
    assert "stays when that one is rolled back" in said
    live_there(place)
    queue.wait(place.run(ACROSS), "succeeded")


ON_TWO_SERVERS = """
from django.db import transaction
from django_pgqueue import task
from django_pgqueue.models import Job
from tests.processes.tasks import ok

there = ok.using(backend="events")
mine, theirs = ok.enqueue("here"), there.enqueue("there")
many = there.enqueue_many((n,) for n in range(20))
try:
    with transaction.atomic(using="events"):
        there.enqueue("rolled back")
        raise LookupError
except LookupError:
    pass
assert Job.objects.count() == 1
assert Job.objects.db_manager("events").count() == 21
assert all(result.wait(20) for result in (mine, theirs, *many))
again = there.get_result(theirs.id)
print(json.dumps([mine.status, theirs.status, again.return_value, len(again.worker_ids)]))
"""


def test_a_queue_on_another_server(queue: Queue, start: Workers, nursery: Nursery, tmp_path: Path) -> None:
    """One line of TASKS puts a queue on a server of its own, with workers of its own."""
    with server() as other:
        prepared(other.url, nursery, tmp_path)
        there = conninfo_to_dict(other.url)
        settings = {
            "DATABASES": {
                "events": {
                    "NAME": there["dbname"],
                    "HOST": there["host"],
                    "PORT": there["port"],
                    "USER": there["user"],
                    "PASSWORD": there.get("password", ""),
                    "OPTIONS": {},
                }
            },
            "DATABASE_ROUTERS": ["django_pgqueue.routers.QueueRouter"],
            "TASKS": {
                "default": {},
                "events": {
                    "BACKEND": "django_pgqueue.backend.PgQueueBackend",
                    "OPTIONS": {"database": "events"},
                },
            },
        }
        place = Place(queue, start, queue.url, **settings)
        assert "django_pgqueue.W001" in place.command("-m", "django", "check", "--database", "events")
        start("--poll", 0.05, **settings)
        start("--backend", "events", "--poll", 0.05, **settings)
        assert place.run(ON_TWO_SERVERS) == ["SUCCESSFUL", "SUCCESSFUL", "there", 1]
