"""The tools keep their promises: a server outlives nobody, a Python that cannot be used is named."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from devtools.databases import database_url, django_database
from devtools.environments import ROOT
from devtools.interpreters import NoInterpreter, choose
from devtools.postgres import Server, ServerError, server
from devtools.snippets import SNIPPETS, Place, compare, expected
from tests.waiting import wait_until

OWNER = """
import sys
from devtools.postgres import server
with server() as s:
    print(s.directory, s.port, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Server]:
    with server() as s:
        yield s


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.process
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_ends_with_its_owner(how: signal.Signals) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        directory, port = owner.stdout.readline().split()
        assert answers(int(port))
        owner.send_signal(how)
        owner.wait(10)
    wait_until(lambda: not Path(directory).exists(), message="the directory is still there")
    assert not answers(int(port))


@pytest.mark.process
def test_a_server_survives_the_exit_of_a_forked_child(shared_server: Server) -> None:
    child = os.fork()
    if child == 0:
        shared_server.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert answers(shared_server.port)


@pytest.mark.process
@pytest.mark.parametrize("end", [lambda s: s.stop(), lambda s: s.stop("immediate"), lambda s: s.kill9()])
def test_committed_rows_survive_every_end(shared_server: Server, end) -> None:
    with psycopg.connect(shared_server.url) as connection:
        connection.execute("CREATE TABLE survivor AS SELECT 1")
    end(shared_server)
    assert shared_server.pid is None
    shared_server.start()
    with psycopg.connect(shared_server.url) as connection:
        assert connection.execute("SELECT * FROM survivor").fetchall() == [(1,)]
        connection.execute("DROP TABLE survivor")


def test_a_wrong_setting_is_reported_in_the_servers_words() -> None:
    with pytest.raises(ServerError, match="no_such_setting"), server({"no_such_setting": 1}):
        pass


def test_a_connection_needs_the_password(shared_server: Server) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(**{**shared_server.dsn, "password": "wrong"})


def test_a_database_keeps_its_meaning_as_a_url() -> None:
    database = django_database("postgresql://me:p%40ss@db.example:6432/shop?sslmode=require")
    assert database["PASSWORD"] == "p@ss"
    assert database["OPTIONS"] == {"sslmode": "require"}
    assert django_database(database_url({**database, "NAME": "test_shop"}))["NAME"] == "test_shop"


def test_a_python_without_ensurepip_is_named_with_its_package(tmp_path: Path, monkeypatch) -> None:
    fake = tmp_path / "bin" / "python3.12"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho \'[true, [3, 12, 1], "/usr/bin/python3.12", ["ensurepip"]]\'\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    with pytest.raises(NoInterpreter, match=r"lacks ensurepip.*apt-get install python3\.12-venv"):
        choose()


def test_no_python_at_all_is_said(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    with pytest.raises(NoInterpreter, match="install one"):
        choose()


# --- what type checkers say about users' code


def test_snippets_tell_what_type_checkers_should_have_said() -> None:
    marked = {Place("a.py", 1): "arg-type", Place("a.py", 2): "call-arg", Place("a.py", 3): "call-arg"}
    said = {
        Place("a.py", 1): {"arg-type", "misc"},
        Place("a.py", 2): {"misc"},
        Place("a.py", 4): {"operator"},
    }
    assert list(compare(marked, said)) == [
        "a.py:2 must be refused for call-arg, not for misc",
        "a.py:3 is wrong (call-arg), and passed",
        "a.py:4 is right, and refused: operator",
    ]
    assert list(compare({}, {})) != []


def test_snippets_have_marks_for_both_type_checkers() -> None:
    marks = expected(SNIPPETS, "mypy")
    lines = [line for path in SNIPPETS.glob("*.py") for line in path.read_text().splitlines()]
    assert len(marks) == sum("  # error:" in line for line in lines) > 30
    assert marks.keys() == expected(SNIPPETS, "pyright").keys()
