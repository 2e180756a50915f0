"""Makes the place of a run: a server of its own, the database, and four workers with a way to it each."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from devtools.postgres import Server, server

from ..postgres import major
from ..processes import pooler
from ..processes.nursery import Nursery
from ..processes.pooler import Pooler
from ..processes.worker import environ
from ..waiting import wait_until
from . import tables
from .arena import ROLE, Arena
from .checker import ENDED

SETTINGS = {"max_connections": 80, "log_lock_waits": "on", "track_activity_query_size": 16384}
"""The statements of the queue are long, and a fault looks for the one that a worker waits in."""
PASSWORD = "chaos"
DISK_MB = 256
DISK_KB_PER_JOB = 8


@contextmanager
def arena(
    seed: int, jobs: int, say: Callable[[str], None], retention: float | None = None
) -> Iterator[Arena]:
    """Yield an arena with a single server; its files are kept when the run fails, and ``say`` tells where.

    ``retention``: seconds after which ended jobs are pruned.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(kept_on_error(say))
        own = stack.enter_context(server(SETTINGS, version=major()))
        nursery = Nursery()
        stack.callback(nursery.close)
        disk, missing = stack.enter_context(small_disk(own, folder, DISK_MB + jobs * DISK_KB_PER_JOB // 1024))
        url = make_database(own, nursery, folder, disk)
        made = Arena(own, url, folder, nursery, seed, say)
        stack.callback(made.close)
        made.disk, made.disk_missing = disk, missing
        seats(made, {} if retention is None else {"retention": dict.fromkeys(ENDED, retention)})
        yield made


def seats(made: Arena, options: dict[str, Any]) -> None:
    """Two workers go straight to the server, one through the proxy, one through PgBouncer if there is one."""
    tasks = {"TASKS": {"default": {"QUEUES": [], "OPTIONS": options}}}
    made.seat("first", processes=2, threads=4, **tasks)
    made.seat("second", processes=1, threads=8, **tasks)
    made.seat("proxied", processes=1, threads=4, url=made.through_proxy(), **tasks)
    made.pooler_missing = pooler.missing()
    if not made.pooler_missing:
        made.pooler = Pooler(made.url)
        pooled = {"TASKS": {"default": {"QUEUES": [], "OPTIONS": {**options, "notify": False}}}}
        made.seat("pooled", processes=1, threads=4, url=made.pooler.url, **pooled)


def make_database(own: Server, nursery: Nursery, folder: Path, disk: str = "") -> str:
    """Make the role, the database and the tables; return the role's URL: no superuser, as in production."""
    with psycopg.connect(own.url, autocommit=True) as session:
        session.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
        session.execute(f"GRANT pg_read_all_stats TO {ROLE}")
        where = ""
        if disk:
            session.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
            where = "TABLESPACE small"
        session.execute(f"CREATE DATABASE chaos OWNER {ROLE} {where}")
    url = make_conninfo("", host="127.0.0.1", port=own.port, user=ROLE, password=PASSWORD, dbname="chaos")
    log = folder / "migrate.log"
    pid = nursery.start(["migrate", "-v0"], environ(url), log)
    code = wait_until(lambda: [found] if (found := nursery.poll(pid)) is not None else None, 120.0)
    assert code == [0], log.read_text()
    with psycopg.connect(url, autocommit=True) as session:
        tables.create(session)
    return url


@contextmanager
def kept_on_error(say: Callable[[str], None]) -> Iterator[Path]:
    """A folder for logs and records that every process of the run can write to; who made it removes it."""
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.chmod(0o777)
    try:
        yield folder
    except BaseException:
        say(f"logs and records are kept in {folder}")
        raise


@contextmanager
def small_disk(own: Server, folder: Path, megabytes: int) -> Iterator[tuple[str, str]]:
    """Mount a small tmpfs for the tables; yields its path, or nothing and why there can be none."""
    if os.geteuid():
        yield "", "mounting a small disk (tmpfs) needs root"
        return
    path = folder / "disk"
    path.mkdir()
    uid = own.data.stat().st_uid
    options = f"size={megabytes}m,uid={uid},mode=0700"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], capture_output=True, text=True
    )
    if done.returncode:
        yield "", f"a small disk (tmpfs) cannot be mounted: {done.stderr.strip()}"
        return
    try:
        yield str(path), ""
    finally:
        own.stop("immediate")
        subprocess.run(["umount", "-l", str(path)], check=True)
