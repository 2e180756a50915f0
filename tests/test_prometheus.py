"""The metrics endpoint: what it exports, that counters only grow, who may see it, and what it costs."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import path
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from devtools.environments import ROOT
from django_pgqueue import prometheus
from django_pgqueue.models import Job
from django_pgqueue.operating import QueuePause, Rollup, Worker
from django_pgqueue.registry import Registration
from django_pgqueue.rollups import Sums

from . import support
from .pages import read, rows_of_tables
from .support import WORKER, completed, failed, fetch

TOKEN = "a token of this test"
urlpatterns = [path("metrics", prometheus.metrics)]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


@pytest.fixture(autouse=True)
def _nothing_kept(settings: Any) -> Iterator[None]:
    """Each test looks anew, and the token is set."""
    settings.PGQUEUE_METRICS_TOKEN = TOKEN
    forget()
    count()  # the first pass makes the mark and counts nothing
    yield
    forget()


def forget() -> None:
    prometheus.collector._found = (float("-inf"), [])


def count() -> None:
    """Make a pass as a keeper does."""
    with transaction.atomic():
        Rollup.objects.count_attempts(limit=10_000, connection=connection)


def get(token: str | None = TOKEN, client: Client | None = None, **headers: str) -> Any:
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return (client or Client()).get("/metrics", headers=headers)


def value(name: str, **labels: str) -> float | None:
    """Return the value of one sample of a new look; None where there is none."""
    forget()
    found = [
        sample.value
        for family in parse(get().content.decode())
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert len(found) <= 1, found
    return found[0] if found else None


def succeed(jobs: int, **options: Any) -> None:
    claimed = support.running(jobs, **options)
    Job.objects.complete([completed(job.fence, finished_ago=1.0) for job in claimed], worker=WORKER)


# --- what it exports


def test_attempts_are_counted_by_queue_task_and_outcome() -> None:
    succeed(3)
    succeed(1, queue="emails")
    Job.objects.fail([failed(support.running(1, max_attempts=3)[0].fence)], worker=WORKER)
    count()
    consumed = "messaging_client_consumed_messages_total"
    names = {"messaging_system": "django_pgqueue", "task": "tests.tasks.ok", "database": "default"}
    default = {**names, "messaging_destination_name": "default"}
    assert value(consumed, **default, outcome="succeeded") == 3
    assert value(consumed, **default, outcome="failed", error_type="failed") == 1
    assert value(consumed, **default, outcome="lost") == 0
    assert value(consumed, **names, messaging_destination_name="emails", outcome="succeeded") == 1


def test_run_and_wait_times_are_histograms() -> None:
    succeed(4)  # each of one second, see support.completed
    count()
    ran = "messaging_process_duration_seconds"
    assert value(f"{ran}_count") == 4
    assert value(f"{ran}_sum") == pytest.approx(4.0, abs=0.01)
    assert value(f"{ran}_bucket", le="0.256") == 0
    assert value(f"{ran}_bucket", le="2.048") == value(f"{ran}_bucket", le="+Inf") == 4
    assert value("django_pgqueue_wait_duration_seconds_bucket", le="+Inf") == 4


def test_the_present_is_told_by_queue() -> None:
    support.enqueue_many(3, queue="emails")
    support.running(2)
    support.enqueue(delay=100.0)
    support.make("dead")
    jobs = "django_pgqueue_jobs"
    assert value(jobs, messaging_destination_name="emails", state="ready") == 3
    assert value(jobs, messaging_destination_name="default", state="running") == 2
    assert value(jobs, messaging_destination_name="other", state="ready") == 0, "declared, and empty"
    assert value("django_pgqueue_oldest_ready_seconds", messaging_destination_name="emails") > 0
    assert value("django_pgqueue_oldest_running_seconds", messaging_destination_name="default") > 0
    assert value("django_pgqueue_oldest_ready_seconds", messaging_destination_name="other") == 0
    assert value("django_pgqueue_scheduled_jobs") == 1
    assert value("django_pgqueue_dead_jobs") == 1


def test_workers_and_pauses() -> None:
    line = Registration("w", "web-1", 1, 0.0, 60.0, (), 2, 4, "0", "", None, False, ())
    Worker.objects.beat(line, connection=connection)
    Worker.objects.beat(line._replace(worker_id="v", is_stopping=True), connection=connection)
    QueuePause.objects.pause("emails", by="anna")
    assert value("django_pgqueue_workers", state="alive") == 1
    assert value("django_pgqueue_workers", state="stopping") == 1
    assert value("django_pgqueue_workers", state="dead") == 0
    assert value("django_pgqueue_worker_slots") == 8
    assert value("django_pgqueue_queue_paused", messaging_destination_name="emails") == 1
    assert value("django_pgqueue_queue_paused", messaging_destination_name="default") is None


def test_openmetrics_for_who_asks_for_it() -> None:
    succeed(2)
    count()
    answer = get(accept="application/openmetrics-text; version=1.0.0")
    assert answer["Content-Type"].startswith("application/openmetrics-text")
    names = {family.name for family in parse_openmetrics(answer.content.decode())}
    assert names == {family.name for family in prometheus.collected()}


def test_a_registry_of_the_projects_own_takes_the_collector() -> None:
    own = CollectorRegistry()
    with CaptureQueriesContext(connection) as captured:
        own.register(prometheus.PgQueueCollector())
    assert len(captured) == 0, "nothing is asked before somebody looks"
    assert (
        own.get_sample_value(
            "django_pgqueue_worker_slots", {"messaging_system": "django_pgqueue", "database": "default"}
        )
        == 0
    )


# --- counters only grow


def test_what_is_pruned_stays_counted() -> None:
    succeed(5)
    count()
    assert len(Job.objects.prune("succeeded", age=0.0, limit=100)) == 5
    for span in (60, 900):
        assert Rollup.objects.prune(span, age=-3600.0, limit=100, connection=connection) == 1
    assert Rollup.objects.series(60, 3600.0) == {}
    assert value("messaging_client_consumed_messages_total", outcome="succeeded") == 5
    succeed(2)
    count()
    assert value("messaging_client_consumed_messages_total", outcome="succeeded") == 7
    assert value("messaging_process_duration_seconds_count") == 7
    assert Rollup.objects.totals().found[0].sums[:2] == Sums(7)[:2]


def test_jobs_that_were_enqueued_are_counted_however_they_ended() -> None:
    before = value("messaging_client_sent_messages_total")
    support.enqueue_many(3)
    succeed(2)
    Job.objects.prune("succeeded", age=0.0, limit=100)
    assert value("messaging_client_sent_messages_total") == (before or 0) + 5


def test_the_busiest_tasks_come_first_and_the_others_are_told_of() -> None:
    for tasks, jobs in (("tests.tasks.rare", 1), ("tests.tasks.often", 3), ("tests.tasks.some", 2)):
        succeed(jobs, task_path=tasks)
    count()
    totals = Rollup.objects.totals(2)
    assert [total.task_path for total in totals.found] == ["tests.tasks.often", "tests.tasks.some"]
    assert totals.left_out == 1
    assert Rollup.objects.totals().left_out == 0


# --- who may see it


def user(*codenames: str, **fields: Any) -> Client:
    found = User.objects.create_user("anna", password="secret", **fields)
    found.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(found)
    return client


def test_the_token_lets_in_and_another_one_does_not() -> None:
    assert get().status_code == 200
    for wrong in ("", "another token of this test", TOKEN[:-1], f"{TOKEN}é"):
        refused = get(wrong)
        assert (refused.status_code, refused["WWW-Authenticate"]) == (401, 'Bearer realm="metrics"')
        assert "PGQUEUE_METRICS_TOKEN" in refused.content.decode()
    assert get(None).status_code == 401
    assert Client().get("/metrics", headers={"authorization": f"Basic {TOKEN}"}).status_code == 401


@pytest.mark.parametrize("unset", [None, ""])
def test_without_a_token_only_staff_who_may_view_jobs_are_let_in(settings: Any, unset: Any) -> None:
    settings.PGQUEUE_METRICS_TOKEN = unset
    assert get("").status_code == get(None).status_code == 401
    assert get(None, user("view_job", is_staff=True)).status_code == 200


@pytest.mark.parametrize(
    ("codenames", "fields"),
    [((), {"is_staff": True}), (("view_job",), {"is_staff": False})],
    ids=["not the permission", "not staff"],
)
def test_other_users_are_refused(codenames: tuple[str, ...], fields: dict[str, bool]) -> None:
    refused = get(None, user(*codenames, **fields))
    assert (refused.status_code, refused.content) == (403, b"You may not view jobs.\n")


def test_projects_without_users_have_the_token() -> None:
    request = RequestFactory().get("/metrics")
    assert prometheus.metrics(request).status_code == 401
    request.user = AnonymousUser()
    assert prometheus.metrics(request).status_code == 401


@pytest.mark.parametrize("bad", ["short", 1234567890123456, b"x" * 20])
def test_a_token_that_is_none_is_refused(settings: Any, bad: Any) -> None:
    settings.PGQUEUE_METRICS_TOKEN = bad
    with pytest.raises(ImproperlyConfigured, match="at least 16 characters"):
        get()


def test_only_reading_is_allowed_and_nobody_keeps_the_answer() -> None:
    assert Client().post("/metrics").status_code == 405
    assert "no-store" in get()["Cache-Control"]


# --- what it costs


def queries_of(expected: int) -> None:
    forget()
    with CaptureQueriesContext(connection) as captured:
        get()
    assert len(captured) == expected, [query["sql"] for query in captured]


def test_a_look_asks_a_constant_number_of_questions_and_is_kept() -> None:
    queries_of(7)
    for number in range(5):
        succeed(2, queue=f"queue-{number}", task_path=f"tests.tasks.task_{number}")
        support.enqueue(queue=f"other-{number}")
    count()
    queries_of(7)
    with CaptureQueriesContext(connection) as captured:
        get()
    assert len(captured) == 0


def test_the_totals_are_found_by_an_index() -> None:
    fetch(
        "INSERT INTO django_pgqueue_rollup SELECT 900, now() - make_interval(mins => n), 'default', 'a.b', "
        "1, 0, 0, 0, 0, 0, 1.0, '{1}', '{1}' FROM generate_series(1, 5000) AS n RETURNING 1"
    )
    fetch(
        "INSERT INTO django_pgqueue_rollup SELECT 2147483647, to_timestamp(0), 'default', 'a.b', "
        "1, 0, 0, 0, 0, 0, 1.0, '{1}', '{1}' RETURNING 1"
    )
    plan = "\n".join(
        row["QUERY PLAN"]
        for row in fetch("EXPLAIN SELECT * FROM django_pgqueue_rollup WHERE span = 2147483647")
    )
    assert "Seq Scan" not in plan


def test_without_the_extra_the_module_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "import django; django.setup()\n"
        "import django_pgqueue.prometheus"
    )
    environ = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60
    )
    assert "pip install 'django-pgqueue-tasks[prometheus]'" in done.stderr
    assert done.returncode == 1


# --- what is written about it


def exported() -> dict[str, set[str]]:
    """Return the names of all samples that the endpoint can export, with their labels."""
    suffixes = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum")}
    return {
        f"{family.name}{suffix}": {*family._labelnames, *({"le"} if suffix == "_bucket" else ())}
        for family in prometheus._families().values()
        for suffix in suffixes[family.type]
    }


def queries_of_the_dashboard() -> list[str]:
    dashboard = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text())
    variables = [
        found["query"]["query"] for found in dashboard["templating"]["list"] if found["type"] == "query"
    ]
    return variables + [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_the_dashboard_asks_for_what_is_exported() -> None:
    queries = queries_of_the_dashboard()
    assert len(queries) > 20
    known = exported()
    asked = {
        name
        for query in queries
        for name in re.findall(r"(?:messaging_|django_pgqueue_)\w+(?=[{\[,])", query)
    }
    assert asked <= {*known, "messaging_destination_name"}
    for query in queries:
        for name, labels in re.findall(r"(\w+)\{([^}]*)\}", query):
            assert set(re.findall(r"(\w+)\s*[=!]", labels)) <= known[name], query


def test_the_dashboard_shows_every_family() -> None:
    shown = " ".join(queries_of_the_dashboard())
    assert [name for name in prometheus._families() if name not in shown] == []


def test_every_metric_is_documented_with_its_labels() -> None:
    rows = {
        row[0].strip("`"): row[1] for row in rows_of_tables(read("operations.md")) if row[0].startswith("`")
    }
    for family in prometheus._families().values():
        said = rows[f"{family.name}_total" if family.type == "counter" else family.name]
        further = set(family._labelnames) - {"messaging_system", "database"}
        assert said == "the same" or set(re.findall(r"`(\w+)`", said)) == further, family.name
