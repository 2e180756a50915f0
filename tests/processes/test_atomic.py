"""Atomic tasks with real workers: exactly once, whatever dies, under every isolation level."""

from collections.abc import Iterator

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from django_pgqueue import sql
from django_pgqueue.models import Job
from django_pgqueue.records import Fence

from .. import support
from ..waiting import wait_until
from . import atomic_tasks
from .conftest import Workers
from .proxy import Proxy
from .queue import Queue

pytestmark = pytest.mark.process

TABLES = """
CREATE TABLE IF NOT EXISTS tests_account (id int PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE IF NOT EXISTS tests_ledger (job_id bigint NOT NULL, amount int NOT NULL);
CREATE TABLE IF NOT EXISTS tests_begun (job_id bigint NOT NULL);
TRUNCATE tests_account, tests_ledger, tests_begun;
INSERT INTO tests_account SELECT id, 1000 FROM generate_series(1, 4) AS id;
"""
LEVELS = {"read committed": 2, "repeatable read": 3, "serializable": 4}


@pytest.fixture
def accounts(queue: Queue) -> Iterator[Queue]:
    queue.session.execute(TABLES)
    yield queue
    queue.session.execute("DELETE FROM auth_group WHERE name ~ '^(slow|die|lost) '")


def at(level: str) -> dict[str, object]:
    return {"DATABASES": {"default": {"OPTIONS": {"isolation_level": LEVELS[level]}}}}


def groups(queue: Queue, job: int) -> list[str]:
    rows = queue.fetch("SELECT name FROM auth_group WHERE name ~ %s ORDER BY name", [f"^[a-z]+ {job} "])
    return [row["name"].split()[-1] for row in rows]


@pytest.mark.parametrize("level", LEVELS)
def test_heartbeats_and_steady_work_do_no_harm_under_any_level(
    accounts: Queue, start: Workers, level: str
) -> None:
    """Three leases long, six heartbeats each."""
    worker = start("--poll", 0.05, "--lease", 1.0, "--heartbeat", 0.2, **at(level))
    jobs = accounts.enqueue_many(atomic_tasks.slow, [(3.0,)] * 2, max_attempts=1)
    accounts.wait(jobs, "succeeded", timeout=20.0)
    for job in jobs:
        assert (accounts.outcomes(job), groups(accounts, job)) == (["succeeded"], ["1"])
    assert worker.events("lease_lost") == []


@pytest.mark.parametrize("level", LEVELS)
def test_transfers_between_the_same_accounts_come_out_right(
    accounts: Queue, start: Workers, level: str
) -> None:
    """Conflicts and deadlocks cost no attempt."""
    start("--poll", 0.05, "--threads", 2, "--processes", 2, **at(level))
    moves = [(1 + n % 4, 1 + (n + 1 + n % 3) % 4, 1 + n % 7, 0.01) for n in range(30)]
    jobs = accounts.enqueue_many(atomic_tasks.transfer, moves, max_attempts=3)
    accounts.wait(jobs, "succeeded", timeout=60.0)
    assert {tuple(accounts.outcomes(job)) for job in jobs} == {("succeeded",)}, "a conflict was charged"
    assert_ledger(accounts, jobs, sum(move[2] for move in moves))


def assert_ledger(queue: Queue, jobs: list[int], amount: int) -> None:
    assert queue.value("SELECT sum(balance) FROM tests_account") == 4000
    assert queue.value("SELECT count(*) FROM tests_ledger") == len(jobs)
    assert queue.value("SELECT count(DISTINCT job_id) FROM tests_ledger") == len(jobs)
    assert queue.value("SELECT sum(amount) FROM tests_ledger") == amount


@pytest.mark.parametrize(
    ("where", "outcomes", "written"),
    [("inside", ["lost", "succeeded"], ["2"]), ("after the commit", ["succeeded"], ["1"])],
)
def test_a_killed_process_leaves_all_or_nothing(
    accounts: Queue, start: Workers, where: str, outcomes: list[str], written: list[str]
) -> None:
    start("--poll", 0.05)
    job = accounts.enqueue(atomic_tasks.die, where, max_attempts=3)
    accounts.wait(job, "succeeded")
    assert (accounts.outcomes(job), groups(accounts, job)) == (outcomes, written)
    children = f"SELECT count(*) FROM {sql.JOB} WHERE task_path = 'tests.processes.tasks.ok'"
    assert accounts.value(children) == 1


@pytest.mark.parametrize("level", LEVELS)
def test_who_lost_the_lease_commits_nothing(accounts: Queue, start: Workers, level: str) -> None:
    """Under a stricter level nobody can take the job: its row is locked, and the lock is the lease."""
    worker = start("--poll", 0.05, "--threads", 2, **at(level))
    job = accounts.enqueue(atomic_tasks.wait_until_lost, max_attempts=3, timeout=3.0)
    wait_until(lambda: accounts.value("SELECT count(*) FROM tests_begun"))
    state = accounts.state(job)
    fence = Fence(job, state.lease_version, state.lease_token)
    taken = Job.objects.rescue_worker(
        [support.released(fence)], worker=support.WORKER, connection=accounts.session
    )
    accounts.wait(job, "succeeded", timeout=20.0)
    attempts = accounts.attempts(job)
    if level == "read committed":
        assert [row.job_id for row in taken] == [job]
        assert accounts.outcomes(job) == ["lost", "succeeded"]
        worker.wait_for("lease_lost")
    else:
        assert taken == []
        assert accounts.outcomes(job) == ["failed", "succeeded"], "it ran into its time limit"
    assert groups(accounts, job) == [str(len(attempts))]


def test_a_commit_whose_reply_is_lost_is_believed(accounts: Queue, start: Workers) -> None:
    """The transfer was committed and its worker not told: it asks, and does not run the job again."""
    target = conninfo_to_dict(accounts.url)
    proxy = Proxy(str(target["host"]), int(target["port"] or 5432))
    try:
        through = make_conninfo(accounts.url, host="127.0.0.1", port=proxy.port)
        worker = start("--poll", 0.05, "--threads", 1, url=through, env={"PGAPPNAME": "tests tasks"})
        jobs = [move(accounts) for _ in range(4)]  # the proxy leaves young connections alone
        with Queue(accounts.url) as other:
            for round_ in range(1, 4):
                job = accounts.enqueue(atomic_tasks.transfer, 1, 2, 5, 0.5, max_attempts=1)
                proxy.cut_when("tests tasks", lambda job=job: other.status(job) == "succeeded")
                accounts.wait(job, "succeeded", timeout=20.0)
                wait_until(lambda round_=round_: proxy.cuts == round_, 10.0, "the reply was not lost")
                jobs += [job, *(move(accounts) for _ in range(4))]
        assert_ledger(accounts, jobs, 5 * len(jobs))
        assert {tuple(accounts.outcomes(job)) for job in jobs} == {("succeeded",)}
        assert worker.events("lease_lost") == []
        worker.stop()
    finally:
        proxy.close()


def move(queue: Queue) -> int:
    job = queue.enqueue(atomic_tasks.transfer, 1, 2, 5, max_attempts=1)
    queue.wait(job, "succeeded", timeout=20.0)
    return job
