"""A folder for all that the demo writes: ``.demo`` in the clone, and the server's database for it."""

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from devtools.postgres import server

from .faults import DemoFailed

CLONE = Path(__file__).resolve().parent.parent.parent
FOLDER = CLONE / ".demo"


@contextmanager
def workspace() -> Iterator[Path]:
    """Give an empty ``.demo``, kept to be looked at; a temporary folder where the clone is read-only."""
    if not os.access(CLONE, os.W_OK):
        with tempfile.TemporaryDirectory(prefix="django_pgqueue_demo_") as folder:
            yield Path(folder)
        return
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoFailed(
                f"Another demo is running in {FOLDER}. Wait for it, or end it with Ctrl-C."
            ) from None
        _empty(FOLDER, keep=Path(lock.name))
        (FOLDER / ".gitignore").write_text("*\n")
        yield FOLDER


@contextmanager
def database() -> Iterator[str]:
    """Give the URL of an empty database: a new one on ``DATABASE_URL``, or that of a server of its own."""
    if given := os.environ.get("DATABASE_URL"):
        with _scratch_database(given) as url:
            yield url
    else:
        with server() as embedded:
            yield embedded.url


def server_version(url: str) -> str:
    """Return the server's version, "18.6" for example."""
    with psycopg.connect(url) as connection:
        number = connection.info.server_version
    return f"{number // 10000}.{number % 10000}"


@contextmanager
def _scratch_database(url: str) -> Iterator[str]:
    name = f"pgqueue_demo_{secrets.token_hex(4)}"
    _run(url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield make_conninfo(url, dbname=name)
    finally:
        _run(url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _run(url: str, statement: sql.Composed) -> None:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement)
    except psycopg.Error as error:
        raise DemoFailed(f"PostgreSQL refused {statement.as_string()}: {error}") from error


def _empty(folder: Path, *, keep: Path) -> None:
    for entry in folder.iterdir():
        if entry == keep:
            continue
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
