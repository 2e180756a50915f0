"""The GRANTs of docs/security.md are enough for each role, and give no more than they say."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from django_pgqueue import sql, states
from django_pgqueue.models import Job
from django_pgqueue.records import NewJob
from django_pgqueue.tasks import enqueue_many
from django_pgqueue.watching import Watcher

from . import support, tasks
from .pages import blocks

Become = Callable[[str], None]


def grants() -> str:
    """Return the statements of the documentation."""
    (block,) = (block for block in blocks("run", "sql") if block.mark == "run: grants")
    return block.text


@pytest.fixture
def become(db: None) -> Become:
    """Make the roles of the docs with their privileges; return how to become one of them, or oneself."""

    def become(role: str = "NONE") -> None:
        execute(f"SET LOCAL ROLE {role}")

    try:
        with transaction.atomic():
            execute("CREATE ROLE shop_web; CREATE ROLE shop_worker; CREATE ROLE shop_staff")
    except DatabaseError as error:
        pytest.skip(f"this server's user may not make roles: {error}")
    execute(grants())
    return become


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def refused(statement: str) -> bool:
    """Return True: the present role may not do this; fails when it may, or for another reason."""
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        execute(statement)
    return True


# --- web processes


def test_web_processes_may_enqueue_in_every_way(become: Become) -> None:
    become("shop_web")
    first = tasks.ok.enqueue(1)
    later = tasks.ok.using(run_after=timedelta(hours=1)).enqueue(2)
    many = enqueue_many([tasks.ok.bind(3), tasks.mail.bind("ann@example.org")])
    keyed = tasks.ok.using(unique_key="a", on_conflict="raise").enqueue(4)
    with pytest.raises(Exception, match="is live and holds the unique key"):
        tasks.ok.using(unique_key="a", on_conflict="raise").enqueue(5)
    become()
    ids = [int(result.id) for result in (first, later, *many, keyed)]
    assert [support.status_of(job_id) for job_id in ids] == ["ready", "scheduled", "ready", "ready", "ready"]


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT args FROM {sql.JOB}",
        f"SELECT * FROM {sql.STATE}",
        f"SELECT lease_token FROM {sql.STATE}",
        f"SELECT * FROM {sql.ATTEMPT}",
        f"UPDATE {sql.JOB} SET task_path = 'a.b'",
        f"UPDATE {sql.STATE} SET status = 'cancelled', finished_at = now()",
        f"DELETE FROM {sql.STATE}",
        f"INSERT INTO {sql.ATTEMPT} SELECT * FROM {sql.ATTEMPT}",
        f"TRUNCATE {sql.JOB}",
        "SELECT * FROM django_pgqueue_worker",
    ],
)
def test_web_processes_may_do_no_more(become: Become, statement: str) -> None:
    job_id = support.enqueue()
    become("shop_web")
    assert refused(statement)
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        Job.objects.cancel([job_id])


# --- workers


def test_workers_may_do_what_workers_do(become: Become) -> None:
    become("shop_worker")
    for status in states.STATUSES:
        support.make(status, failures=1)
    (claimed,) = support.running(lease=support.OVER)
    assert Job.objects.renew([claimed.fence], lease=support.OVER)
    assert Job.objects.report_progress([(claimed.fence, "{}")]) == [claimed.job_id]
    assert [row.job_id for row in Job.objects.rescue(limit=10, server_up=0.0)] == [claimed.job_id]
    (lost,) = support.running()
    assert Job.objects.rescue_worker([support.released(lost.fence)], worker=support.WORKER)
    assert support.settle_one("release", support.running()[0].fence) == support.DONE
    assert Job.objects.release_unheld([], worker_id="nobody", within=60.0) == []
    assert Job.objects.ready_queues()
    assert Job.objects.next_run_at() is not None
    assert [row[0] for row in Job.objects.prune(states.SUCCEEDED, age=0.0, limit=10)]
    support.fetch(sql.NOTIFY_SLEEPERS, {"queues": ["default"]})
    Watcher()(connection)


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE {sql.JOB} SET task_path = 'a.b'",
        f"UPDATE {sql.ATTEMPT} SET outcome = 'succeeded'",
        f"TRUNCATE {sql.JOB}",
        "CREATE TABLE mine ()",
        "SELECT * FROM auth_user",
    ],
)
def test_workers_may_do_no_more(become: Become, statement: str) -> None:
    become("shop_worker")
    assert refused(statement)


# --- staff


def test_staff_may_look_and_repair(become: Become) -> None:
    dead, ready = support.make("dead").job_id, support.enqueue()
    later = support.enqueue(delay=60.0)
    become("shop_staff")
    assert Job.objects.retry([dead]).retried == [dead]
    assert Job.objects.cancel([ready]).cancelled == [ready]
    assert [row[0] for row in Job.objects.promote_now([later])] == [later]
    assert Job.objects.status_counts()[states.READY] == 2
    assert Job.objects.task_paths()
    assert Job.objects.last_errors([dead])
    assert Job.objects.queues()
    assert support.attempts_of(dead)


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE {sql.JOB} SET args = '[]'",
        f"DELETE FROM {sql.JOB}",
        f"DELETE FROM {sql.ATTEMPT}",
        f"UPDATE {sql.ATTEMPT} SET message = ''",
    ],
)
def test_staff_may_do_no_more(become: Become, statement: str) -> None:
    become("shop_staff")
    assert refused(statement)
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        Job.objects.enqueue(NewJob("tests.tasks.ok"), backend="default")
