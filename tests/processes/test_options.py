"""The flags of ``runworkers``: what is served, in which order, how much of it, and when the worker ends."""

import os
import signal
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from django_pgqueue.connections import MIGRATE

from ..waiting import wait_until
from . import tasks
from .conftest import Workers
from .queue import Queue
from .worker import Worker

pytestmark = pytest.mark.process


REFUSED = {
    "heartbeat beside lease": (("--lease", 4, "--heartbeat", 2), ["heartbeat (2 s)", "lease (4 s)"]),
    "poll beside lease": (("--lease", 4, "--poll", 5), ["poll_interval (5 s)", "lease (4 s)"]),
    "queue": (("--queues", "defualt"), ["'defualt'", "'default', 'other', 'emails'"]),
    "no queue": (("--queues", " , "), ["names no queue"]),
    "backend": (("--backend", "nope"), ["'nope'", "default"]),
    "count": (("--processes", 0), ["--processes", "below 1"]),
    "seconds": (("--lease", "inf"), ["--lease"]),
    "too many seconds": (("--lease", "1e300"), ["--lease", "1000000000"]),
    "too many processes": (("--processes", 99999999999), ["--processes", "above 1000"]),
}


def test_wrong_flags_are_refused_with_words_and_code_2(start: Workers) -> None:
    workers = {name: start(*arguments, wait=False) for name, (arguments, _) in REFUSED.items()}
    for name, worker in workers.items():
        worker.wait_end(2, timeout=60.0)
        for words in REFUSED[name][1]:
            assert words in worker.text, name
        assert "Traceback" not in worker.text


def test_queues_are_served_strictly_in_the_order_given(queue: Queue, start: Workers) -> None:
    late = queue.enqueue_many(tasks.mark, [()] * 30)
    soon = queue.enqueue_many(tasks.mark, [()] * 30, queue="emails")
    never = queue.enqueue(tasks.mark, queue="other")
    start("--threads", 1, "--queues", " emails,default ", "--drain", wait=False).wait_end(0, timeout=60.0)
    assert [e.job_id for e in queue.executions()] == [*soon, *late]
    assert queue.state(never).lease_version == 0


def test_priority_then_place_in_the_queue_decide(queue: Queue, start: Workers) -> None:
    low = queue.enqueue_many(tasks.mark, [()] * 5, priority=-10)
    normal = queue.enqueue_many(tasks.mark, [()] * 5)
    high = queue.enqueue_many(tasks.mark, [()] * 5, priority=10)
    future = queue.enqueue(tasks.mark, priority=100, delay=3600)
    start("--threads", 1, "--drain", wait=False).wait_end(0, timeout=60.0)
    assert [e.job_id for e in queue.executions()] == [*high, *normal, *low]
    assert queue.status(future) == "scheduled"


def test_without_queues_any_queue_is_served(queue: Queue, start: Workers) -> None:
    worker = start("--threads", 4, TASKS={"default": {"QUEUES": []}})
    jobs = [
        queue.enqueue(tasks.mark, queue=name) for name in ("default", "nobody knows", "ΔΩ", "a,b", "x" * 128)
    ]
    queue.wait(jobs, "succeeded")
    assert worker.events("worker_started", queues="*")


def test_a_drain_ends_when_nothing_is_due(queue: Queue, start: Workers) -> None:
    done = queue.enqueue_many(tasks.sleep, [(0.05,)] * 60)
    due = queue.enqueue(tasks.mark, delay=0.01)
    retried = queue.enqueue(tasks.fail_at_first, max_attempts=3, backoff_base=0, backoff_cap=0)
    later = queue.enqueue(tasks.mark, delay=3600)
    worker = start("--drain", "--processes", 2, wait=False)
    worker.wait_end(0, timeout=60.0)
    assert set(queue.statuses([*done, due, retried]).values()) == {"succeeded"}
    assert queue.status(later) == "scheduled"
    assert not worker.events("child_died")


def test_a_drain_of_nothing_ends_at_once(queue: Queue, start: Workers) -> None:
    start("--drain", "--processes", 3, wait=False).wait_end(0, timeout=60.0)


def test_a_drain_without_tables_says_so_and_ends(queue: Queue, start: Workers) -> None:
    empty = make_conninfo(queue.url, dbname="postgres")
    worker = start("--drain", "--processes", 2, wait=False, url=empty)
    worker.wait_end(1, timeout=30.0)
    assert "manage.py migrate" in worker.events("drain_failed")[0].fields["hint"]


def test_a_drain_gives_up_when_no_database_answers(start: Workers) -> None:
    nobody = "postgresql://user@127.0.0.1:1/none"
    worker = start("--drain", "--lease", 0.5, wait=False, url=nobody)
    worker.wait_end(1, timeout=30.0)
    assert "refused" in worker.events("drain_failed")[0].fields["error"]


def test_a_worker_waits_for_its_tables(queue: Queue, start: Workers) -> None:
    with_tables = psycopg.connect(queue.url, autocommit=True)
    with_tables.execute("ALTER TABLE django_pgqueue_jobstate RENAME TO not_yet")
    try:
        worker = start("--threads", 1)
        worker.wait_for("connection_lost", hint=MIGRATE)
    finally:
        with_tables.execute("ALTER TABLE not_yet RENAME TO django_pgqueue_jobstate")
        with_tables.close()
    queue.wait(queue.enqueue(tasks.mark), "succeeded")


def test_a_drain_outlives_a_poison_job(queue: Queue, start: Workers) -> None:
    poison = queue.enqueue(tasks.kill9, max_attempts=2, backoff_base=0, backoff_cap=0)
    behind = queue.enqueue_many(tasks.mark, [()] * 20)
    start("--drain", "--threads", 1, wait=False).wait_end(0, timeout=60.0)
    assert queue.outcomes(poison) == ["lost"] * 2
    assert set(queue.statuses(behind).values()) == {"succeeded"}


def test_children_that_fall_over_at_once_are_replaced_ever_more_slowly_and_then_given_up(
    start: Workers,
) -> None:
    worker = start(startup="broken_claim")
    worker.wait_end(1, timeout=60.0)
    died = [event.time for event in worker.events("child_died")]
    assert len(died) == 10
    assert died[-1] - died[-2] > 3.0, "they were replaced without a pause"
    assert worker.events("giving_up")


def test_max_jobs_is_exact(queue: Queue, start: Workers) -> None:
    jobs = queue.enqueue_many(tasks.mark, [()] * 250)
    start("--max-jobs", 100, "--processes", 2, wait=False).wait_end(0, timeout=60.0)
    done = [job for job, status in queue.statuses(jobs).items() if status == "succeeded"]
    assert (len(done), len(queue.executions())) == (100, 100)
    assert set(queue.statuses(set(jobs) - set(done)).values()) == {"ready"}


def test_children_are_replaced_after_so_many_jobs(queue: Queue, start: Workers) -> None:
    worker = start("--max-jobs-per-child", 10, "--processes", 2, "--poll", 0.05, startup="orm")
    jobs = queue.enqueue_many(tasks.mark, [()] * 100, max_attempts=1)
    queue.wait(jobs, "succeeded", timeout=30.0)
    by_child: dict[int, int] = {}
    for execution in queue.executions():
        by_child[execution.pid] = by_child.get(execution.pid, 0) + 1
    counts = sorted(by_child.values(), reverse=True)
    assert counts[:9] == [10] * 9, "two may share the last ten"
    assert not worker.events("child_died")
    assert "error" not in worker.text.lower()


def test_a_child_that_grows_too_large_is_replaced(queue: Queue, start: Workers) -> None:
    worker = start("--max-memory", 250, "--poll", 0.05)
    child = worker.child
    job = queue.enqueue(tasks.keep_megabytes, 250)
    queue.wait(job, "succeeded")
    worker.wait_for("recycling_child", pid=child)
    worker.wait_for("child_started", count=2)
    wait_until(lambda: child not in worker.processes)
    queue.wait(queue.enqueue(tasks.ok), "succeeded")
    assert not worker.events("child_died")


def test_the_query_log_and_the_memory_stay_small(queue: Queue, start: Workers) -> None:
    worker = start("--poll", 0.05, "--threads", 4, DEBUG=True)
    first = queue.enqueue_many(tasks.query_often, [(20,)] * 60)
    queue.wait(first, "succeeded", timeout=30.0)
    before = resident(worker.child)
    more = queue.enqueue_many(tasks.query_often, [(20,)] * 120)
    queue.wait(more, "succeeded", timeout=60.0)
    assert {queue.attempt(job).return_value for job in [*first, *more]} == {20}
    assert resident(worker.child) < before * 1.2


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1])


# --- how its processes are made


def test_a_project_with_threads_gets_its_children_by_exec(queue: Queue, start: Workers) -> None:
    worker = start("--lease", 3, "--heartbeat", 0.5, "--poll", 0.05, startup="thread")
    job = queue.enqueue(tasks.sleep, 4, 0, max_attempts=2)
    killed = queue.enqueue(tasks.kill9, max_attempts=1)
    queue.wait([job, killed])
    assert queue.status(killed) == "dead"
    assert set(queue.outcomes(job)) <= {"lost", "succeeded"}
    wait_until(lambda: len(worker.children) == 1)
    command = Path(
        f"/proc/{worker.child if len(worker.children) == 1 else worker.children[0]}/cmdline"
    ).read_bytes()
    assert b"django_pgqueue.worker.exec_child" in command
    assert worker.stop() < 3.0


def test_a_project_that_cannot_start_children_is_given_up(queue: Queue, start: Workers) -> None:
    worker = start(startup="die", wait=False)
    worker.wait_end(1, timeout=60.0)
    assert worker.events("giving_up")
    assert 3 <= len(worker.events("child_died")) <= 8
    assert len(worker.events("keeper_died")) <= 10


def test_a_worker_begins_before_its_tables_and_waits_for_them(queue: Queue, start: Workers) -> None:
    queue.session.execute("ALTER TABLE django_pgqueue_jobstate RENAME TO away")
    try:
        worker = start("--poll", 0.05)
        worker.wait_for("connection_lost", count=3)
    finally:
        queue.session.execute("ALTER TABLE away RENAME TO django_pgqueue_jobstate")
    queue.wait(queue.enqueue(tasks.ok), "succeeded")
    assert len(worker.text.splitlines()) < 60, "it filled the log"


def test_names_longer_than_a_column_are_cut(queue: Queue, start: Workers) -> None:
    start("--poll", 0.05, "--lease", 30, "--heartbeat", 5, startup="long_host")
    job = queue.enqueue(tasks.raise_hostile, "long_class_name", max_attempts=1)
    lost = queue.enqueue(tasks.kill9, max_attempts=1)
    queue.wait([job, lost])
    for attempt in (queue.attempt(job), queue.attempt(lost)):
        assert len(attempt.worker_id) <= 128
        assert attempt.host == "h" * 253
    assert queue.attempt(job).worker_id != queue.attempt(lost).worker_id or job != lost


def test_every_line_of_the_log_can_be_parsed(queue: Queue, start: Workers) -> None:
    worker = start("--poll", 0.05, "-v", 2)
    message = 'two words, "quotes"\nand = a new line, naïve ☃'
    failing = queue.enqueue(tasks.fail, message, max_attempts=2)
    good = queue.enqueue(tasks.ok)
    unknown = queue.enqueue("no_such.task")
    snoozed = queue.enqueue(tasks.ask_to_snooze, 1, 0)
    cancelled = queue.enqueue(tasks.ask_to_cancel, "reason")
    queue.wait([failing, good, snoozed, cancelled])
    queue.wait(unknown, "scheduled")
    worker.stop()
    lines = [line for line in worker.text.splitlines() if line.startswith("20")]  # others: of tracebacks
    assert len(worker.events()) == len(lines)
    (dead,) = worker.events("dead", job=failing)
    assert dead.fields["message"] == message
    assert dead.level == "ERROR"
    assert worker.events("failed", job=failing, attempt=1)[0].fields["retry_in"]
    for name, job in {
        "succeeded": good,
        "unknown_task": unknown,
        "snoozed": snoozed,
        "cancelled": cancelled,
    }.items():
        (event,) = worker.events(name, job=job)
        assert event.fields["task"]
    for name in (
        "worker_started",
        "keeper_started",
        "child_started",
        "stopping",
        "child_stopped",
        "worker_stopped",
    ):
        assert worker.events(name)


# --- development


@pytest.fixture
def reloadable(tmp_path: Path) -> Path:
    """A module of a task, beside the project."""
    module = tmp_path / "code" / "reloadable.py"
    module.parent.mkdir()
    write(module, 1)
    return module


def write(module: Path, version: int) -> None:
    module.write_text(f"from django_pgqueue import task\n\n\n@task\ndef version():\n    return {version}\n")
    os.utime(module, (version * 1000, version * 1000))


def test_a_change_of_the_code_restarts_the_worker(queue: Queue, start: Workers, reloadable: Path) -> None:
    worker: Worker = start(
        "--reload",
        "--poll",
        0.05,
        startup="reloadable",
        new_interpreter=True,
        env={"PYTHONPATH": str(reloadable.parent)},
    )
    first = queue.enqueue("reloadable.version")
    queue.wait(first, "succeeded")
    write(reloadable, 2)
    worker.wait_for("code_changed")
    worker.wait_for("child_started", count=2, timeout=30.0)
    second = queue.enqueue("reloadable.version")
    queue.wait(second, "succeeded")
    assert [queue.attempt(job).return_value for job in (first, second)] == [1, 2]
    job = queue.enqueue(tasks.sleep, 1.5)
    queue.wait_started(job)
    worker.signal_all(signal.SIGINT)
    worker.wait_end(0)
    assert queue.outcomes(job) == ["succeeded"], "Ctrl-C counted twice"


@pytest.mark.slow
def test_code_that_does_not_start_is_watched_until_it_does(
    queue: Queue, start: Workers, reloadable: Path
) -> None:
    worker = start(
        "--reload", startup="reloadable", new_interpreter=True, env={"PYTHONPATH": str(reloadable.parent)}
    )
    reloadable.write_text("def broken(:\n")
    os.utime(reloadable, (3000, 3000))
    worker.wait_for("worker_stopped", timeout=30.0)
    wait_until(lambda: "SyntaxError" in worker.text, 30.0)
    assert worker.alive
    write(reloadable, 4)
    worker.wait_for("child_started", count=2, timeout=30.0)
    job = queue.enqueue("reloadable.version")
    queue.wait(job, "succeeded")
    assert queue.attempt(job).return_value == 4
    worker.stop()
