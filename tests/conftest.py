"""Fixtures for all tests; the server is in postgres.py, waiting in waiting.py, rows come from support.py."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest
from django.db import connection

from devtools.databases import database_url

from .support import assert_invariants
from .waiting import wait_until


@pytest.fixture
def invariants(db: None) -> Iterator[None]:
    """Check all rows when the test is over."""
    yield
    assert_invariants()


@pytest.fixture
def connect(transactional_db: None) -> Iterator[Callable[[], psycopg.Connection]]:
    """Make further sessions on the test's database, in autocommit; they end with the test."""
    with ExitStack() as stack:

        def connect() -> psycopg.Connection:
            url = database_url(connection.settings_dict)
            return stack.enter_context(psycopg.connect(url, autocommit=True))

        yield connect


@pytest.fixture
def second_connection(connect: Callable[[], psycopg.Connection]) -> psycopg.Connection:
    """Another session on the test's database, in autocommit: another process, seen from the server."""
    return connect()


@pytest.fixture
def third_connection(connect: Callable[[], psycopg.Connection]) -> psycopg.Connection:
    """One more."""
    return connect()


@pytest.fixture
def blocked(transactional_db: None) -> Iterator[Callable[..., Future]]:
    """Run a call in a thread and return when its session waits for a lock.

    ``blocked(session, function, *args, **options)``: the function gets ``connection=session``.
    """
    with ThreadPoolExecutor() as threads:

        def start(
            session: psycopg.Connection, function: Callable[..., object], *args: object, **options: object
        ) -> Future:
            future = threads.submit(function, *args, connection=session, **options)
            pid = session.info.backend_pid
            wait_until(lambda: future.done() or waits(pid), message="The call never waited for a lock")
            assert not future.done(), f"the call did not wait: {future.result()}"
            return future

        yield start


@pytest.fixture
def pause(connect: Callable[[], psycopg.Connection]) -> Iterator[Callable[[psycopg.Connection], "Pause"]]:
    """Make every statement of a session stop where it first asks for the time, until the pause ends.

    The queue's statements ask after they took their snapshot and before they lock a row (a claim: between its
    first and its second row), so what commits meanwhile falls into the gap. The statements stay as they are:
    the session's search_path puts a clock_timestamp() before PostgreSQL's own that waits for a lock.
    """
    holder = connect()
    holder.execute("CREATE SCHEMA pausing")
    holder.execute(PAUSING_CLOCK)
    try:
        yield lambda session: Pause(holder, session)
    finally:
        holder.execute("DROP SCHEMA pausing CASCADE")


PAUSING_CLOCK = """
CREATE FUNCTION pausing.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7);
    RETURN pg_catalog.clock_timestamp();
END $$
"""


class Pause:
    """The pause of one session; ``end()`` lets it go on."""

    def __init__(self, holder: psycopg.Connection, session: psycopg.Connection) -> None:
        self._holder = holder
        holder.execute("SELECT pg_advisory_lock(7)")
        session.execute("SET search_path = pausing, pg_catalog, public")

    def end(self) -> None:
        self._holder.execute("SELECT pg_advisory_unlock(7)")


def waits(pid: int, session: psycopg.Connection | None = None) -> bool:
    """Return whether this backend waits for a lock; asked through ``session``, by default Django's own."""
    with (session or connection).cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE pid = %s AND NOT granted)", [pid])
        return cursor.fetchone()[0]
