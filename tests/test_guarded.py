"""Rows change through the verbs only: Django's own ways to write are refused, and what Django needs works."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.db import connection

from django_pgqueue import DirectWrite, sql
from django_pgqueue.models import Attempt, Job, JobState

from .support import assert_invariants, make, rows_of

MODELS = (Job, JobState, Attempt)
WRITES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "create": (lambda rows: rows.create(), "enqueue"),
    "acreate": (lambda rows: async_to_sync(rows.acreate)(), "enqueue"),
    "get_or_create": (lambda rows: rows.get_or_create(pk=-1), "enqueue"),
    "aget_or_create": (lambda rows: async_to_sync(rows.aget_or_create)(pk=-1), "enqueue"),
    "bulk_create": (lambda rows: rows.bulk_create([]), "enqueue"),
    "abulk_create": (lambda rows: async_to_sync(rows.abulk_create)([]), "enqueue"),
    "update_or_create": (lambda rows: rows.update_or_create(pk=-1), "Job.objects.cancel"),
    "aupdate_or_create": (lambda rows: async_to_sync(rows.aupdate_or_create)(pk=-1), "Job.objects.cancel"),
    "update": (lambda rows: rows.update(pk=5), "Job.objects.cancel"),
    "aupdate": (lambda rows: async_to_sync(rows.aupdate)(pk=5), "Job.objects.cancel"),
    "bulk_update": (lambda rows: rows.bulk_update([], ["pk"]), "Job.objects.cancel"),
    "abulk_update": (lambda rows: async_to_sync(rows.abulk_update)([], ["pk"]), "Job.objects.cancel"),
}
OF_QUERY_SETS = {
    "delete": (lambda rows: rows.delete(), "Job.objects.prune"),
    "adelete": (lambda rows: async_to_sync(rows.adelete)(), "Job.objects.prune"),
}
OF_ROWS = {
    "save": (lambda row: row.save(), "Job.objects.cancel"),
    "asave": (lambda row: async_to_sync(row.asave)(), "Job.objects.cancel"),
    **OF_QUERY_SETS,
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", [*WRITES, *OF_QUERY_SETS])
def test_query_sets_and_managers_refuse_with_the_right_verb(name: str) -> None:
    made = make("dead", failures=1)
    before = rows_of(made.job_id)
    write, verb = (WRITES | OF_QUERY_SETS)[name]
    for model in MODELS:
        sets = [model.objects.all(), model.objects.filter(pk__isnull=False), model._default_manager.all()]
        for rows in [*sets, *([model.objects] if name in WRITES and name[0] != "a" else [])]:
            with pytest.raises(DirectWrite, match=rf"{model.__name__}: .*{verb}"):
                write(rows)
    with pytest.raises(DirectWrite, match="Attempt"):
        write(Job.objects.get().attempts.all())
    assert rows_of(made.job_id) == before


@pytest.mark.django_db
@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_refuse_with_the_right_verb(name: str) -> None:
    made = make("dead", failures=1)
    before = rows_of(made.job_id)
    write, verb = OF_ROWS[name]
    for model in MODELS:
        with pytest.raises(DirectWrite, match=rf"{model.__name__}: .*{verb}"):
            write(model.objects.all()[0])
    with pytest.raises(DirectWrite, match="enqueue"):
        Job(task_path="a.b").save()
    assert rows_of(made.job_id) == before


@pytest.mark.django_db
def test_fixtures_are_dumped_and_loaded(tmp_path: Path) -> None:
    made = [make(status, failures=1).job_id for status in ("ready", "running", "dead", "succeeded")]
    before = summary()
    fixture = tmp_path / "jobs.json"
    call_command("dumpdata", "django_pgqueue.Job", "django_pgqueue.JobState", output=fixture, verbosity=0)
    with connection.cursor() as cursor:
        for table in (sql.STATE, sql.JOB):
            cursor.execute(f"DELETE FROM {table}")
    call_command("loaddata", fixture, verbosity=0)
    assert summary() == before
    assert len(before) == len(made)
    assert_invariants()


def summary() -> list[Any]:
    """What a fixture keeps of jobs; it cuts times to milliseconds."""
    names = ("job_id", "status", "attempts", "lease_token", "job__task_path", "job__args")
    return list(JobState.objects.order_by("job_id").values_list(*names))


@pytest.mark.django_db(transaction=True)
def test_flush_empties_the_tables() -> None:
    make("dead", failures=1)
    call_command("flush", interactive=False, verbosity=0)
    assert [model.objects.count() for model in MODELS] == [0, 0, 0]


@pytest.mark.django_db
def test_the_models_need_no_migration_for_their_guards() -> None:
    out = io.StringIO()
    call_command("makemigrations", "django_pgqueue", check=True, dry_run=True, stdout=out)
    assert "No changes" in out.getvalue()
