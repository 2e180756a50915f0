"""pgqueue_doctor: a healthy queue has no findings, and each fault has its own, with what mends it."""

import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from django_pgqueue import doctor, sql
from django_pgqueue.compat import task_backends
from django_pgqueue.doctor import server, tables
from django_pgqueue.operating import QueuePause, Worker
from django_pgqueue.registry import Registration
from django_pgqueue.testing import forward_time

from . import support
from .support import fetch

pytestmark = pytest.mark.django_db
QUIET = {"fsync", "connections", "xmin-horizon"}
"""What the tests' own server has switched off for speed, and what other tests' sessions may cause."""


def found(check: str | None = None) -> dict[str, doctor.Finding]:
    findings = {finding.check: finding for finding in doctor.examine(task_backends["default"])}
    if check is not None:
        assert check in findings, findings
    return {name: finding for name, finding in findings.items() if name == check or name not in QUIET}


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def register(**changes: Any) -> None:
    line = Registration("w", "web-1", 1, 0.0, 60.0, ("default",), 1, 1, "0", "", None, False, ())
    Worker.objects.beat(line._replace(**changes), connection=connection)


def test_a_healthy_queue_has_no_findings() -> None:
    register()
    support.enqueue()
    assert found() == {}


def test_the_command_tells_people_and_programs_and_exits_with_1() -> None:
    support.enqueue(queue="emails")
    forward_time(100)
    out = StringIO()
    with pytest.raises(SystemExit) as stopped:
        call_command("pgqueue_doctor", "--json", stdout=out)
    assert stopped.value.code == 1
    findings = {finding["check"]: finding for finding in json.loads(out.getvalue())["findings"]}
    assert findings["unserved-queue"]["mend"] == "manage.py runworkers --queues emails"
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("pgqueue_doctor", stdout=out)
    assert "No worker serves the queue 'emails'" in out.getvalue()
    assert "      manage.py runworkers --queues emails" in out.getvalue()


# --- jobs


def test_queues_that_are_late_undeclared_or_paused() -> None:
    register(queues=())
    support.enqueue(queue="legacy")
    support.enqueue(queue="emails")
    QueuePause.objects.pause("emails", by="anna", reason="the provider is down")
    forward_time(400)
    findings = found()
    assert set(findings) == {"late-queue", "undeclared-queue", "paused"}
    assert "anna: the provider is down" in findings["paused"].said


def test_tasks_that_this_code_lacks_matter_while_jobs_of_them_live() -> None:
    gone = support.enqueue(task_path="tests.tasks.gone")
    support.make("succeeded", task_path="tests.tasks.long_gone")
    finding = found("unknown-task")["unknown-task"]
    assert "tests.tasks.gone" in finding.said
    assert "task_aliases" in finding.mend
    support.claim(gone)
    assert "unknown-task" in found()


def test_workers_that_are_dead_or_of_several_releases() -> None:
    register(worker_id="a", release="old")
    register(worker_id="b", release="new")
    register(worker_id="c")
    fetch(
        "UPDATE django_pgqueue_worker SET beat_at = now() - interval '1 h' WHERE worker_id = 'c' RETURNING 1"
    )
    findings = found()
    assert "new, old" in findings["releases"].said
    assert "'web-1'" in findings["dead-worker"].said


# --- tables


def test_an_index_that_is_missing_or_not_valid() -> None:
    execute("DROP INDEX pgqueue_state_promote")
    execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'pgqueue_state_ended'::regclass")
    findings = found()
    assert "pgqueue_state_promote" in findings["missing-index"].said
    assert findings["invalid-index"].mend == "REINDEX INDEX CONCURRENTLY pgqueue_state_ended;"


def test_a_claim_that_cannot_go_by_its_index() -> None:
    support.enqueue()
    execute("DROP INDEX pgqueue_state_claim")
    assert (
        "Seq Scan" in found("claim-plan")["claim-plan"].said or "another index" in found()["claim-plan"].said
    )


def test_a_claim_plan_is_looked_at_without_claiming() -> None:
    job = support.enqueue()
    found()
    assert support.status_of(job) == "ready"


def test_storage_settings_that_were_lost_are_set_by_what_is_said() -> None:
    execute(f"ALTER TABLE {sql.STATE} RESET (fillfactor, vacuum_index_cleanup)")
    execute(f"ALTER TABLE {sql.ATTEMPT} SET (autovacuum_enabled = off)")
    findings = found()
    assert "fillfactor = 70" in findings["storage-settings"].mend
    execute(findings["storage-settings"].mend)
    execute(findings["autovacuum"].mend)
    assert not {"storage-settings", "autovacuum"} & set(found())


def test_dead_rows_and_bloat(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ("t", 10, 200_000, None, 5.0, 2**30, (), 10)
    (finding,) = tables._table(*row)
    assert (finding.check, "200,000 dead rows" in finding.said) == ("dead-rows", True)
    (finding,) = tables._table("t", 500_000, 0, 5.0, None, 2**30, (), 10)
    assert finding.mend == "ANALYZE t;"
    monkeypatch.setattr(tables, "LEAST_SIZE", 0)
    monkeypatch.setattr(tables, "BLOATED", 0)
    assert "REINDEX" in found("index-bloat")["index-bloat"].mend


@pytest.mark.django_db(transaction=True)
def test_migrations_that_were_not_applied_are_the_only_finding_of_the_tables() -> None:
    latest = "SELECT max(name) AS name FROM django_migrations WHERE app = 'django_pgqueue'"
    (row,) = fetch(latest)
    fetch(
        "DELETE FROM django_migrations WHERE app = 'django_pgqueue' AND name = %s RETURNING 1", [row["name"]]
    )
    try:
        finding = found("migrations")["migrations"]
    finally:
        insert = "INSERT INTO django_migrations (app, name, applied) VALUES ('django_pgqueue', %s, now())"
        fetch(f"{insert} RETURNING 1", [row["name"]])
    assert row["name"] in finding.said
    assert "manage.py migrate" in finding.mend


# --- the server


@pytest.mark.django_db(transaction=True)
def test_who_holds_the_xmin_horizon(
    connect: Callable[[], psycopg.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PINNED_FOR", 0.0)
    session = connect()
    session.execute("SET application_name = 'forgetful report'")
    with session.transaction():
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        session.execute("SELECT count(*) FROM pg_class")
        finding = found("xmin-horizon")["xmin-horizon"]
    assert finding.mend.startswith("SELECT pg_terminate_backend(")


def test_what_the_server_says_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = server.Patient.ask
    sick = (140005, 100, 3, 95, False, True, False, 0.5, 0.0)
    monkeypatch.setattr(
        server.Patient,
        "ask",
        lambda self, statement, **params: (
            [sick] if statement == sql.SERVER else ask(self, statement, **params)
        ),
    )
    findings = {finding.check: finding for finding in doctor.examine(task_backends["default"])}
    wanted = {"server-version", "connections", "autovacuum", "fsync", "notify-queue", "clock-skew"}
    assert wanted <= set(findings)
    assert all(findings[check].mend for check in wanted)


@pytest.mark.django_db(transaction=True)
def test_a_pooler_is_seen_by_the_backends_that_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "pooler" not in found()
    ask = server.Patient.ask
    pids = iter(range(1, 100))
    monkeypatch.setattr(
        server.Patient,
        "ask",
        lambda self, statement, **params: (
            [(next(pids),)] if statement == sql.BACKEND else ask(self, statement, **params)
        ),
    )
    assert "several backends" in found("pooler")["pooler"].said
