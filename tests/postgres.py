"""The tests' database server: the one that DATABASE_URL names, or an embedded one that ends with the session.

A pytest plugin of its own, named in pyproject.toml, because pytest-django reads the settings before any
conftest.py is loaded. PGQUEUE_POSTGRES chooses the embedded server's major version.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from django.db import connection

from devtools.binaries import NEWEST
from devtools.databases import database_url
from devtools.postgres import Server, server

# Tests that crash or restart a server take one of their own, so this one need not be durable, only quick.
QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": 200}

_session = ExitStack()
_described = ["the server that DATABASE_URL names"]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Iterator[None]:
    """Name the server in the environment before the settings are read; worker processes inherit it."""
    if not os.environ.get("DATABASE_URL"):
        embedded = _session.enter_context(server(QUICK, version=major()))
        os.environ["DATABASE_URL"] = embedded.url
        _described.append(f"embedded PostgreSQL {major() or NEWEST} at 127.0.0.1:{embedded.port}")
    return (yield)


def pytest_report_header() -> str:
    """Say which server the session uses."""
    return f"database: {_described[-1]}"


def pytest_unconfigure() -> None:
    """End the embedded server."""
    _session.close()


def major() -> int | None:
    """Return the major version that PGQUEUE_POSTGRES asks for, None for the newest."""
    wanted = os.environ.get("PGQUEUE_POSTGRES")
    return int(wanted) if wanted else None


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A private, durable server for tests that stop, restart or crash the database."""
    with server(version=major()) as s:
        yield s


@pytest.fixture
def worker_environ(transactional_db: None) -> dict[str, str]:
    """Environment for processes that shall see the rows this test commits."""
    url = database_url(connection.settings_dict)
    return {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
