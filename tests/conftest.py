"""Fixtures for all tests; the server is in postgres.py, waiting in waiting.py, rows come from support.py."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from devtools.databases import database_url
from devtools.environments import ROOT

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


# --- other projects' settings: a process of its own

SETTINGS = """
from tests.settings import *
import json, os
ROOT_URLCONF = "other_settings"
urlpatterns = []
globals().update(json.loads(os.environ["OTHER_SETTINGS"]))
DATABASES["default"]["OPTIONS"].update(json.loads(os.environ["DATABASE_OPTIONS"]))
"""


@pytest.fixture
def manage(tmp_path: Path, transactional_db: None) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a management command, or Python code, under other settings and database options."""
    (tmp_path / "other_settings.py").write_text(SETTINGS)

    def run(
        *arguments: str,
        code: str = "",
        options: dict[str, Any] | None = None,
        url: str | None = None,
        **settings: Any,
    ) -> subprocess.CompletedProcess[str]:
        environ = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
            "DJANGO_SETTINGS_MODULE": "other_settings",
            "DATABASE_URL": url or database_url(connection.settings_dict),
            "OTHER_SETTINGS": json.dumps(settings),
            "DATABASE_OPTIONS": json.dumps(options or {}),
        }
        command = [sys.executable, "-c", f"import django; django.setup()\n{code}"]
        if arguments:
            command = [sys.executable, "-m", "django", *arguments]
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests with real processes and signals a second and a third try: a busy machine may stall them."""
    for item in items:
        if item.get_closest_marker("process"):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=1))
