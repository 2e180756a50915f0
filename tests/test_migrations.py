"""The migrations: complete under any settings, reversible, in any schema, and safe on a live table."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

import django_pgqueue
from devtools.databases import database_url
from django_pgqueue import sql

from .support import fetch

MIGRATIONS = Path(django_pgqueue.__file__).parent / "migrations"

# A later migration belongs here once it is known to take no lock that stops a worker for more than a moment:
# indexes CONCURRENTLY, constraints NOT VALID first, columns that are NULL or have a constant default; and to
# be repeatable after a broken run.
INITIAL = {"0001_initial"}
SAFE_ON_A_LIVE_TABLE = {
    *("0002_operating", "0003_attempt_recorded"),
    *("0004_bulk_operations_and_causes", "0005_index_of_causes"),
    "0006_job_steps",
    *("0007_causes_of_the_dead", "0008_enqueue_function"),
    *("0009_notes_and_parents", "0010_index_of_parents"),
}


def test_every_migration_after_the_first_is_known_to_be_safe_on_a_live_table() -> None:
    names = {path.stem for path in MIGRATIONS.glob("[0-9]*.py")}
    assert names == INITIAL | SAFE_ON_A_LIVE_TABLE


def test_no_migration_names_a_schema() -> None:
    for path in MIGRATIONS.glob("[0-9]*.py"):
        assert "public." not in path.read_text()
        assert "SET SCHEMA" not in path.read_text().upper()


# --- other projects' settings


@pytest.mark.parametrize("settings", [
    {"DEFAULT_AUTO_FIELD": "django.db.models.AutoField", "LANGUAGE_CODE": "ar", "USE_TZ": False},
    {"DEFAULT_AUTO_FIELD": "django.db.models.BigAutoField", "LANGUAGE_CODE": "de"},
])  # fmt: skip
def test_makemigrations_finds_nothing_under_any_settings(
    manage: Callable[..., subprocess.CompletedProcess[str]], settings: dict[str, Any]
) -> None:
    done = manage("makemigrations", "--check", "--dry-run", "django_pgqueue", **settings)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (
        0,
        "No changes detected in app 'django_pgqueue'",
        "",
    )


# --- a schema of its own, a role without rights on public

LIFE = """
from django.apps import apps
from django.core.management import call_command
from django.db import connection
def tables():
    return {name for name in connection.introspection.table_names() if "pgqueue" in name}
def migrate(*target):
    call_command("migrate", "django_pgqueue", *target, verbosity=0)
models = [model for model in apps.get_app_config("django_pgqueue").get_models() if model._meta.managed]
expected = {model._meta.db_table for model in models}
migrate()
assert tables() == expected, tables()

from uuid import uuid4
from django_pgqueue.models import Job
from django_pgqueue.records import Completed, Failed, NewJob, Released, WorkerIdentity

worker = WorkerIdentity("w", "h", 1)
def claim():
    return Job.objects.claim("default", limit=10, worker_id="w", lease_token=uuid4(), lease=-1.0)
new = NewJob("tests.tasks.ok", max_attempts=2, backoff_base=0.0, backoff_cap=0.0)
ids = [row.job_id for row in Job.objects.enqueue_many([new] * 3, backend="default")]
first, second, third = claim()
Job.objects.renew([first.fence], lease=30.0)
Job.objects.complete([Completed(first.fence, 1.0, 0.0)], worker=worker)
Job.objects.fail([Failed(second.fence, 1.0, 0.0, 0.0, True, "x", "x", "x", "x")], worker=worker)
assert [row.job_id for row in Job.objects.rescue(limit=10, server_up=0.0)] == [third.job_id]
assert [row[0] for row in Job.objects.promote(limit=10)] == [third.job_id]
(third,) = claim()
Job.objects.release([Released(third.fence, None)], worker=worker)
assert Job.objects.cancel([third.job_id]).cancelled == [third.job_id]
assert Job.objects.retry(ids).retried == [second.job_id, third.job_id]
assert [row[0] for row in Job.objects.prune("succeeded", age=0.0, limit=10)] == [first.job_id]

migrate("zero")
assert tables() == set(), tables()
migrate()
assert tables() == expected, tables()
"""


@pytest.fixture
def own_schema(connect: Callable[[], psycopg.Connection]) -> Iterator[str]:
    """A role that may use nothing but the schema ``jobs``; the connection string to be it."""
    owner, role = connect(), f"pgqueue_outsider_{os.getpid()}"
    for statement in (
        "CREATE SCHEMA jobs",
        f"CREATE ROLE {role} LOGIN PASSWORD 'outside'",
        f"GRANT ALL ON SCHEMA jobs TO {role}",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
    ):
        owner.execute(statement)
    try:
        yield database_url(connection.settings_dict | {"USER": role, "PASSWORD": "outside"})
    finally:
        for statement in (
            "GRANT USAGE ON SCHEMA public TO PUBLIC",
            "DROP SCHEMA jobs CASCADE",
            f"DROP OWNED BY {role}",
            f"DROP ROLE {role}",
        ):
            owner.execute(statement)


def test_the_queue_lives_where_search_path_says_and_goes_again(
    manage: Callable[..., subprocess.CompletedProcess[str]],
    own_schema: str,
    second_connection: psycopg.Connection,
) -> None:
    done = manage(
        code=LIFE,
        url=own_schema,
        options={"options": "-c search_path=jobs"},
        INSTALLED_APPS=["django.contrib.contenttypes", "django_pgqueue"],
    )
    assert done.returncode == 0, done.stderr
    rows = second_connection.execute("SELECT relname FROM pg_class WHERE relnamespace = 'jobs'::regnamespace")
    assert {name for (name,) in rows} > {sql.JOB, sql.STATE, sql.ATTEMPT, sql.POSITION}
    assert fetch(f"SELECT id FROM public.{sql.JOB}") == [], "nothing went into public"


# --- what the migration sets beside the tables


@pytest.mark.django_db
def test_the_storage_settings_of_the_hot_table_are_really_set() -> None:
    (row,) = fetch("SELECT reloptions FROM pg_class WHERE oid = %s::regclass", [sql.STATE])
    options = dict(option.split("=") for option in row["reloptions"])
    assert int(options["fillfactor"]) < 100
    assert options["vacuum_index_cleanup"] == "on"
    assert (
        float(options["autovacuum_vacuum_scale_factor"])
        == float(options["autovacuum_analyze_scale_factor"])
        == 0
    )
    assert int(options["autovacuum_vacuum_threshold"]) > 0
    assert int(options["autovacuum_analyze_threshold"]) > 0


@pytest.mark.django_db
def test_positions_come_one_by_one() -> None:
    """A session that cached a range of positions would put a later job before an earlier one."""
    (row,) = fetch("SELECT cache_size FROM pg_sequences WHERE sequencename = %s", [sql.POSITION])
    assert row == {"cache_size": 1}


@pytest.mark.django_db
def test_no_index_names_the_end_of_the_lease() -> None:
    """An index on it would make every renewal a full copy of the row, with an entry in each index."""
    rows = fetch("SELECT indexdef FROM pg_indexes WHERE tablename = %s", [sql.STATE])
    assert len(rows) >= 5
    assert not any("lease_expires_at" in row["indexdef"] for row in rows)
