"""A worker behind PgBouncer in transaction mode; needs Debian's package."""

from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from . import tasks
from .conftest import Workers
from .pooler import Pooler, missing
from .queue import Queue

pytestmark = [pytest.mark.process, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture
def pooler(queue: Queue) -> Iterator[Pooler]:
    """PgBouncer before the tests' server."""
    pooler = Pooler(queue.url)
    try:
        yield pooler
    finally:
        pooler.close()


def test_names_of_prepared_statements_are_shared_behind_it(pooler: Pooler) -> None:
    """Why it is recognised and not tried: the wrong statement can run without any error."""
    connect = partial(psycopg.connect, pooler.url, prepare_threshold=0)
    with connect() as one, connect() as other, psycopg.connect(pooler.url) as third:
        one.execute("SELECT 'one'")
        other.execute("SELECT 'other'")  # on another server connection: the first is taken
        other.commit()
        one.commit()
        third.execute("SELECT 1")  # takes the one that was given back last, and keeps it
        assert one.execute("SELECT 'one'").fetchone() == ("other",)


def test_a_worker_behind_it_prepares_nothing_and_works(queue: Queue, pooler: Pooler, start: Workers) -> None:
    options = {"TASKS": {"default": {"OPTIONS": {"notify": False}}}}
    worker = start("--poll", 0.1, url=pooler.url, **options)
    queue.wait(queue.enqueue_many(tasks.ok, [()] * 50), "succeeded")
    child, keeper = worker.children[0], worker.keeper
    off = {event.fields["connection"].split()[0] for event in worker.events("prepared_statements_off")}
    assert {"child", "leases", "maintenance"} <= off
    assert not worker.events("connection_lost")
    pooler.restart()
    queue.wait(queue.enqueue_many(tasks.ok, [()] * 50), "succeeded")
    assert (worker.children, worker.keeper) == ([child], keeper)


def test_a_worker_on_a_straight_way_prepares(queue: Queue, start: Workers) -> None:
    worker = start("--poll", 0.1)
    queue.wait(queue.enqueue(tasks.ok), "succeeded")
    assert not worker.events("prepared_statements_off")
