"""The examples of the documentation work: code compiles or runs, settings pass the checks, statements run."""

import sys
import types
from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.utils.module_loading import import_string

from devtools.environments import ROOT
from django_pgqueue import checks, conf, states, testing
from django_pgqueue.operating import QueuePause
from django_pgqueue.tasks import PgQueueTask

from . import support
from .pages import Block, blocks


@pytest.mark.parametrize("block", blocks(), ids=str)
def test_python_compiles(block: Block) -> None:
    block.compiled()


@pytest.mark.parametrize("block", blocks("module"), ids=str)
def test_complete_modules_can_be_imported(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    name = block.mark.partition(":")[2].strip()
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(block.compiled(), vars(module))
    assert any(isinstance(value, PgQueueTask) for value in vars(module).values())


@pytest.mark.django_db
@pytest.mark.parametrize("block", blocks("test"), ids=str)
def test_tests_pass(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("shop_tests")
    monkeypatch.setitem(sys.modules, "shop_tests", module)
    exec(block.compiled(), vars(module))
    (test,) = [value for name, value in vars(module).items() if name.startswith("test_")]
    test(testing)  # what the fixture pgqueue is


@pytest.mark.parametrize("block", blocks("settings"), ids=str)
def test_settings_pass_the_checks(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    exec(block.compiled(), given)
    for alias, params in given.get("TASKS", {}).items():
        if params["BACKEND"] == conf.BACKEND_PATH:
            database = params.get("OPTIONS", {}).get("database", "default")
            entry = connections.settings["default"]
            for known in (settings.DATABASES, connections.settings):
                monkeypatch.setitem(known, database, known.get(database, entry))
            told = {message.id for message in checks.check_alias(alias, params)}
            assert told == ({"django_pgqueue.W001"} if database != "default" else set())
    for router in given.get("DATABASE_ROUTERS", []):
        import_string(router)
    assert {"TASKS", "DATABASE_ROUTERS"} & given.keys()


@pytest.mark.django_db
@pytest.mark.parametrize("block", blocks("run", "sql"), ids=str)
def test_statements_run(block: Block) -> None:
    if block.mark == "run":
        execute(block.text)


@pytest.mark.django_db
def test_a_restored_copy_is_silenced_by_what_the_docs_say() -> None:
    assert "manage.py pgqueue_park --cancel" in (ROOT / "docs" / "operations.md").read_text()
    made = [
        support.make(status) for status in (states.SCHEDULED, states.READY, states.RUNNING, states.SUCCEEDED)
    ]
    call_command("pgqueue_park", "--cancel", stdout=StringIO())
    became = [support.status_of(job.job_id) for job in made]
    assert became == [states.CANCELLED, states.CANCELLED, states.RUNNING, states.SUCCEEDED]
    assert support.state_of(made[2].job_id).cancel_requested_at
    assert "" in QueuePause.objects.present()


@pytest.mark.django_db
def test_pruning_by_hand_deletes_what_the_docs_say() -> None:
    (block,) = blocks("prune")
    dead, live = support.make(states.DEAD, failures=1), support.make(states.READY)
    exec(block.compiled(), {})
    assert support.status_of(dead.job_id) == states.DEAD, "not old enough"
    testing.forward_time(31 * 24 * 3600)
    exec(block.compiled(), {})
    assert support.status_of(dead.job_id) is None
    assert not support.attempts_of(dead.job_id)
    assert support.status_of(live.job_id) == states.READY


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
