"""A database that goes away, stops answering, or drops connections: no worker ends, no outcome is lost."""

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from devtools.postgres import Server, server
from django_pgqueue.worker.runners import SOFT_STOP_GRACE

from ..postgres import major
from ..waiting import wait_for, wait_until
from . import tasks
from .conftest import Workers, prepared
from .nursery import Nursery
from .proxy import Proxy
from .queue import Queue
from .worker import Worker

pytestmark = pytest.mark.process

SHORT = ("--lease", 2, "--heartbeat", 0.5, "--poll", 0.1)


# --- a server that stops


@pytest.fixture(scope="module")
def private_server(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A durable server of this module's own."""
    with server(version=major()) as own:
        prepared(own.url, nursery, tmp_path_factory.mktemp("migrate"))
        yield own


@pytest.fixture(scope="module")
def private_workers(
    private_server: Server, nursery: Nursery, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    with Queue(private_server.url) as queue:
        workers = Workers(queue, tmp_path_factory.mktemp("private"), nursery)
        try:
            yield workers
        finally:
            workers.close()


@pytest.fixture
def survivor(private_server: Server, private_workers: Workers) -> Iterator[Worker]:
    """One worker on the private server for all its tests; whatever happens, its child must be the same."""
    if not private_workers.all or private_workers.all[-1].ended is not None:
        private_workers(*SHORT, "--threads", 4, url=private_server.url)
    worker = private_workers.all[-1]
    child = worker.child
    private_workers.queue.reconnect()
    yield worker
    private_workers.show_logs()
    queue = private_workers.queue
    queue.reconnect()
    queue.assert_invariants()
    if worker.ended is None:
        private_workers.assert_fit()
        assert worker.child == child
    queue.clear()


def begun(path: Path) -> list[int]:
    """Return the jobs that noted their beginning in a file, each as often as it did."""
    return [int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith("began")]


def go_away_fast(own: Server) -> None:
    own.restart("fast")


def crash_for_three_seconds(own: Server) -> None:
    own.stop("immediate")
    wait_for(3)
    own.start()


def terminate_all_backends_thrice(own: Server) -> None:
    for _ in range(3):
        with Queue(own.url) as queue:
            terminate_backends(queue)
        wait_for(0.5)


def terminate_backends(queue: Queue) -> None:
    queue.session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


@pytest.mark.parametrize(
    "trouble",
    [go_away_fast, crash_for_three_seconds, terminate_all_backends_thrice],
    ids=lambda f: f.__name__,
)
def test_under_load_nothing_is_lost_and_nothing_runs_twice(
    private_server: Server, private_workers: Workers, survivor: Worker, trouble: Any, tmp_path: Path
) -> None:
    queue, path = private_workers.queue, tmp_path / "begun"
    jobs = queue.enqueue_many(tasks.note_in_file, [(str(path), 0.15)] * 80, max_attempts=5)
    wait_until(lambda: path.exists() and len(begun(path)) > 10)
    trouble(private_server)
    queue.reconnect()
    queue.wait(jobs, "succeeded", timeout=30.0)
    assert sorted(begun(path)) == sorted(jobs), "a job ran twice"
    for job in jobs:
        assert queue.outcomes(job) == ["succeeded"]


def test_outcomes_computed_during_an_outage_are_stored(
    private_server: Server, private_workers: Workers, survivor: Worker, tmp_path: Path
) -> None:
    queue, path = private_workers.queue, tmp_path / "begun"
    jobs = queue.enqueue_many(tasks.note_in_file, [(str(path), 1.0)] * 4, max_attempts=1)
    wait_until(lambda: path.exists() and len(begun(path)) == 4)
    private_server.stop("immediate")
    wait_until(lambda: path.read_text().count("ended") == 4)
    wait_for(2.5)  # their leases are over
    private_server.start()
    queue.reconnect()
    queue.wait(jobs, "succeeded", timeout=15.0)
    assert sorted(begun(path)) == sorted(jobs)
    assert [queue.outcomes(job) for job in jobs] == [["succeeded"]] * 4


def test_an_outcome_that_waits_for_the_database_has_met_its_time_limit(
    private_server: Server, private_workers: Workers, survivor: Worker, tmp_path: Path
) -> None:
    """The outage is longer than the limit and what the supervisor allows on top: it must kill nobody."""
    queue, path = private_workers.queue, tmp_path / "begun"
    jobs = queue.enqueue_many(tasks.note_in_file, [(str(path), 0.2)] * 4, max_attempts=1, timeout=1.0)
    wait_until(lambda: path.exists() and len(begun(path)) == 4)
    private_server.stop("immediate")
    wait_until(lambda: path.read_text().count("ended") == 4)
    wait_for(1.0 + SOFT_STOP_GRACE + 1.5)
    private_server.start()
    queue.reconnect()
    queue.wait(jobs, "succeeded", timeout=20.0)
    assert sorted(begun(path)) == sorted(jobs)


def test_an_idle_worker_waits_quietly_for_its_database(
    private_server: Server, private_workers: Workers, survivor: Worker
) -> None:
    before = len(survivor.events())
    private_server.stop("fast")
    wait_for(3)
    private_server.start()
    private_workers.queue.reconnect()
    job = private_workers.queue.enqueue(tasks.ok)
    private_workers.queue.wait(job, "succeeded", timeout=10.0)
    for connection in ("child", "leases", "maintenance", "wakeup"):
        lines = [
            event
            for event in survivor.events()[before:]
            if event.name in ("connection_lost", "wakeup_lost")
            and event.fields["connection"].startswith(connection)
        ]
        assert 1 <= len(lines) <= 2, f"{len(lines)} lines about {connection}"


def test_a_worker_can_be_stopped_while_its_database_is_away(
    private_server: Server, private_workers: Workers, survivor: Worker
) -> None:
    private_server.stop("fast")
    try:
        survivor.wait_for("connection_lost")
        assert survivor.stop(timeout=6.0) < 4.0
    finally:
        private_server.start()


# --- a server that does not answer, or whose replies are lost


@pytest.fixture
def proxy(queue: Queue) -> Iterator[Proxy]:
    """A proxy before the tests' server."""
    target = conninfo_to_dict(queue.url)
    proxy = Proxy(str(target["host"]), int(target["port"] or 5432))
    try:
        yield proxy
    finally:
        proxy.close()


def through(queue: Queue, proxy: Proxy) -> str:
    return make_conninfo(queue.url, host="127.0.0.1", port=proxy.port)


def test_a_claim_whose_reply_is_lost_is_given_back_and_made_again(
    queue: Queue, proxy: Proxy, start: Workers, tmp_path: Path
) -> None:
    worker, path = (
        start("--lease", 30, "--heartbeat", 5, "--poll", 0.1, url=through(queue, proxy)),
        tmp_path / "begun",
    )
    with Queue(queue.url) as other:
        with queue.session.transaction():
            job = queue.enqueue(tasks.note_in_file, str(path), 0, max_attempts=1)
            proxy.cut_when("child", lambda: "running" in other.statuses([job]).values())
        queue.wait(job, "succeeded")
    assert proxy.cuts == 1
    assert queue.outcomes(job) == ["succeeded"]
    assert begun(path) == [job]
    assert queue.state(job).lease_version == 2
    assert worker.events("released_unheld", jobs=1)


@pytest.mark.parametrize("fails", [False, True], ids=["success", "failure"])
def test_an_outcome_whose_reply_is_lost_is_written_once(
    queue: Queue, proxy: Proxy, start: Workers, tmp_path: Path, fails: bool
) -> None:
    worker, path = (
        start("--lease", 30, "--heartbeat", 5, "--poll", 0.1, url=through(queue, proxy)),
        tmp_path / "begun",
    )
    job = queue.enqueue(tasks.note_in_file, str(path), 0.5, kwargs={"fails": fails}, max_attempts=1)
    with Queue(queue.url) as other:
        proxy.cut_when("child", lambda: bool(other.outcomes(job)))
        queue.wait(job)
        wait_until(lambda: proxy.cuts == 1)
        queue.wait(queue.enqueue(tasks.ok), "succeeded")
    assert queue.outcomes(job) == ["failed" if fails else "succeeded"]
    assert begun(path) == [job]
    assert not worker.events("lease_lost")


def test_connections_cut_at_random_lose_nothing(
    queue: Queue, proxy: Proxy, start: Workers, tmp_path: Path
) -> None:
    start("--lease", 30, "--heartbeat", 1, "--poll", 0.1, url=through(queue, proxy))
    path, seeded = tmp_path / "begun", random.Random(5)
    jobs = queue.enqueue_many(tasks.note_in_file, [(str(path), 0.005)] * 600, max_attempts=1)
    stop = threading.Event()

    def cut_now_and_then() -> None:
        while not stop.wait(seeded.uniform(0.1, 0.5)):
            proxy.cut_when("child", lambda: True)

    cutter = threading.Thread(target=cut_now_and_then)
    cutter.start()
    try:
        queue.wait(jobs, timeout=40.0)
    finally:
        stop.set()
        cutter.join()
    assert proxy.cuts >= 3
    assert set(queue.statuses(jobs).values()) == {"succeeded"}
    assert sorted(begun(path)) == sorted(jobs), "a job ran twice"


@contextmanager
def frozen(proxy: Proxy, *, new_ones: bool) -> Iterator[None]:
    proxy.freeze(new_ones=new_ones)
    try:
        yield
    finally:
        proxy.thaw()


def test_a_silent_database_is_noticed_and_given_up(
    queue: Queue, proxy: Proxy, start: Workers, tmp_path: Path
) -> None:
    """As behind a firewall that forgot the connections: nothing comes back, new connections work."""
    worker, path = start(*SHORT, startup="impatient", url=through(queue, proxy)), tmp_path / "begun"
    running = queue.enqueue(tasks.note_in_file, str(path), 1, max_attempts=1)
    wait_until(lambda: path.exists() and begun(path) == [running])
    with frozen(proxy, new_ones=False):
        job = queue.enqueue(tasks.note_in_file, str(path), 0, max_attempts=1)
        queue.wait([running, job], "succeeded", timeout=20.0)
    assert begun(path) == [running, job]
    stuck = {event.fields["connection"].split()[0] for event in worker.events("connection_stuck")}
    assert {"child", "leases"} <= stuck


def test_a_worker_can_be_stopped_while_its_database_is_silent(
    queue: Queue, proxy: Proxy, start: Workers
) -> None:
    options = ("--processes", 2, "--threads", 1, "--grace", 1)
    worker = start(*SHORT, *options, startup="impatient", url=through(queue, proxy))
    job = queue.enqueue(tasks.sleep, 60, 0, max_attempts=2)
    queue.wait_started(job)
    with frozen(proxy, new_ones=True):
        wait_for(0.5)
        worker.signal(signal.SIGTERM)
        worker.wait_end(1, timeout=15.0)
    took = worker.events("worker_stopped")[-1].time - worker.events("stopping")[-1].time
    assert took < 1 + 1 + 2 + 2, "grace, the child's patience, the keeper's"
    start(*SHORT)
    queue.wait(job, "succeeded")
    assert queue.outcomes(job) == ["lost", "succeeded"]


# --- connections of tasks


CONNECTIONS = {
    "default": {"CONN_MAX_AGE": 0},
    "kept_600_s": {"CONN_MAX_AGE": 600},
    "kept_for_ever": {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": False},
    "pool": {"CONN_MAX_AGE": 0, "OPTIONS": {"pool": {"min_size": 1, "max_size": 4}}},
}


def test_terminated_backends_cost_each_thread_at_most_one_attempt(queue: Queue, start: Workers) -> None:
    """On aliases of the same database that keep their connections for a job, a while, for ever, in a pool."""
    known = {name: how for name, how in CONNECTIONS.items() if name != "pool" or find_spec("psycopg_pool")}
    worker = start("--poll", 0.1, "--threads", 4, DATABASES=known)
    warm = [queue.enqueue_many(tasks.use_alias_slowly, [(name, 0.1)] * 8) for name in known]
    for jobs in warm:
        queue.wait(jobs, "succeeded")
    in_flight = queue.enqueue(tasks.sleep_without_database, 1.0, max_attempts=1)
    wait_until(lambda: queue.status(in_flight) == "running")
    terminate_backends(queue)
    after = {name: queue.enqueue_many(tasks.use_alias_slowly, [(name, 0.1)] * 12) for name in known}
    for name, jobs in after.items():
        queue.wait(jobs, "succeeded")
        failed = [outcome for job in jobs for outcome in queue.outcomes(job) if outcome != "succeeded"]
        assert set(failed) <= {"failed"}
        assert len(failed) <= 4, f"{name}: a thread used its dead connection again"
    queue.wait(in_flight, "succeeded")
    assert queue.outcomes(in_flight) == ["succeeded"]
    assert not worker.events("child_died")
