"""The examples of the documentation work: code compiles or runs, settings pass the checks, statements run."""

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.utils.module_loading import import_string

from django_pgqueue import checks, conf, sql, states, testing
from django_pgqueue.models import Job
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
def test_settings_pass_the_checks(block: Block) -> None:
    given: dict[str, Any] = {}
    exec(block.compiled(), given)
    for alias, params in given.get("TASKS", {}).items():
        if params["BACKEND"] == conf.BACKEND_PATH:
            assert not checks.check_alias(alias, params)
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
    (block,) = blocks("run")
    made = [
        support.make(status) for status in (states.SCHEDULED, states.READY, states.RUNNING, states.SUCCEEDED)
    ]
    exec(block.compiled(), {})
    became = [support.status_of(job.job_id) for job in made]
    assert became == [states.CANCELLED, states.CANCELLED, states.RUNNING, states.SUCCEEDED]
    assert support.state_of(made[2].job_id).cancel_requested_at


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


# --- privileges


@pytest.fixture
def roles(db: None) -> Callable[[str], None]:
    """Make the roles of the docs with the privileges of the docs; return how to become one of them."""
    (block,) = (block for block in blocks("run", "sql") if block.mark == "run: grants")

    def become(role: str) -> None:
        execute(f"SET LOCAL ROLE {role}")

    try:
        execute("CREATE ROLE shop_web; CREATE ROLE shop_worker")
    except DatabaseError as error:
        pytest.skip(f"this server's user may not make roles: {error}")
    execute(block.text)
    return become


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_the_privileges_of_web_processes_are_enough(roles: Callable[[str], None]) -> None:
    roles("shop_web")
    job_id, other = support.enqueue_many(2, unique_key=None)
    assert Job.objects.cancel([job_id, other]).cancelled == [job_id, other]
    assert Job.objects.retry([job_id]).retried == [job_id]
    later = support.enqueue(delay=60.0)
    assert [row[0] for row in Job.objects.promote_now([later])] == [later]
    assert Job.objects.status_counts()[states.READY] == 2
    assert Job.objects.task_paths()
    assert not Job.objects.last_errors([job_id])
    assert not support.attempts_of(job_id)


def test_the_privileges_of_workers_are_enough(roles: Callable[[str], None]) -> None:
    roles("shop_worker")
    for status in (
        states.READY,
        states.SCHEDULED,
        states.RUNNING,
        states.SUCCEEDED,
        states.DEAD,
        states.CANCELLED,
    ):
        support.make(status, failures=1)
    (claimed,) = support.running(lease=support.OVER)
    assert Job.objects.renew([claimed.fence], lease=support.OVER)
    assert [row.job_id for row in Job.objects.rescue(limit=10, server_up=0.0)] == [claimed.job_id]
    (lost,) = support.running()
    assert Job.objects.rescue_worker([support.released(lost.fence)], worker=support.WORKER)
    assert support.settle_one("release", support.running()[0].fence) == support.DONE
    assert Job.objects.ready_queues()
    assert Job.objects.next_run_at() is not None
    assert [row[0] for row in Job.objects.prune(states.SUCCEEDED, age=0.0, limit=10)]
    support.fetch(sql.NOTIFY_SLEEPERS, {"queues": ["default"]})
