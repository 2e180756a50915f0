"""Forked children over SSL: sharing a connection of their parent would garble it at once."""

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest

from devtools import postgres
from devtools.postgres import Server

from . import tasks
from .conftest import Workers, prepared
from .nursery import Nursery
from .queue import Queue

pytestmark = pytest.mark.process

CHILDREN = """
SELECT count(*) AS connections, count(*) FILTER (WHERE ssl) AS encrypted
FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
WHERE application_name LIKE 'django_pgqueue%%'
"""


def use_ssl(own: Server) -> None:
    """Give the server a certificate of its own making, and let it accept nothing else."""
    owner = own.data.stat()
    key, certificate = own.data / "server.key", own.data / "server.crt"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run([*make, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    for path in (key, certificate):
        path.chmod(0o600)
        if os.geteuid() == 0:
            os.chown(path, owner.st_uid, owner.st_gid)
    with psycopg.connect(own.url, autocommit=True) as session:
        session.execute("ALTER SYSTEM SET ssl = on")
    own.restart("fast")


@pytest.fixture
def ssl_version(monkeypatch: pytest.MonkeyPatch) -> int:
    """The major version of a server with SSL: the embedded one is built without."""
    found = sorted(Path("/usr/lib/postgresql").glob("1[5-8]/bin/initdb"))
    if not found or shutil.which("openssl") is None:
        pytest.skip("needs Debian's postgresql and openssl: the embedded PostgreSQL is built without SSL")
    monkeypatch.setattr(postgres, "binaries", lambda version: found[-1].parent)
    return int(found[-1].parent.parent.name)


def test_children_that_are_replaced_often_share_no_connection(
    ssl_version: int, nursery: Nursery, tmp_path: Path
) -> None:
    with postgres.server(version=ssl_version) as own:
        use_ssl(own)
        url = prepared(f"{own.url}?sslmode=require", nursery, tmp_path)
        with Queue(url) as queue:
            workers = Workers(queue, tmp_path, nursery)
            try:
                worker = workers(
                    "--processes", 4, "--max-jobs-per-child", 5, "--poll", 0.05, startup="orm", url=url
                )
                jobs = queue.enqueue_many(tasks.use_orm, [()] * 200)
                queue.wait(jobs, "succeeded", timeout=90.0)
                (seen,) = queue.fetch(CHILDREN)
                assert seen["connections"] == seen["encrypted"] > 0
                assert all(queue.outcomes(job) == ["succeeded"] for job in jobs)
                assert not worker.events("child_died")
                assert not worker.events("connection_lost")
            finally:
                workers.close()
