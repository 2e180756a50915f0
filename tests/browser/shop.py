"""The running shop: site, worker, and the servers that its jobs talk to, each a process of its own.

``Shop.queue`` is the shop's queue, seen through the verbs; ``open_shop()`` starts everything and ends it.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from devtools.environments import ROOT
from example_project.demonstration.services import free_port

from ..processes.nursery import Nursery
from ..processes.queue import Queue
from ..processes.worker import Forked, Worker
from ..waiting import wait_until
from .people import SESSIONS

HOST = "127.0.0.1"
START = 30.0


@dataclass(frozen=True, slots=True)
class Shop:
    """What the tests know of the shop; ``address`` has no slash at its end."""

    address: str
    folder: Path
    queue: Queue
    worker: Worker

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Let no job run, so that a page is seen before anything has happened."""
        self.worker.freeze()
        try:
            yield
        finally:
            self.worker.thaw()

    @contextmanager
    def full_disk(self) -> Iterator["Disk"]:
        """Let no invoice be written until ``mend()``."""
        disk = Disk(self.folder / "media" / "invoices")
        disk.break_()
        try:
            yield disk
        finally:
            disk.mend()

    def get(self, path: str) -> bytes:
        """Return what the site serves at an address, without the browser."""
        with urllib.request.urlopen(self.address + path, timeout=10) as answer:
            return answer.read()

    @property
    def sessions(self) -> dict[str, str]:
        """The key of a session for each who can log in."""
        return json.loads((self.folder / SESSIONS).read_text())

    def place_order(self, **options: Any) -> int:
        """Place an order as a program does and return its id; options are fields of the request."""
        (sku,) = self.queue.session.execute("SELECT sku FROM shop_product ORDER BY random()").fetchone()
        (email,) = self.queue.session.execute("SELECT email FROM shop_customer ORDER BY random()").fetchone()
        body = {"email": email, "lines": [{"sku": sku, "quantity": 1}], **options}
        request = urllib.request.Request(f"{self.address}/api/orders/", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            reference = json.load(answer)["reference"]
        return self.queue.value("SELECT id FROM shop_order WHERE reference = %s", [reference])

    @property
    def some_order(self) -> int:
        """The id of an order, for jobs that need one."""
        return self.queue.value("SELECT max(id) FROM shop_order") or self._make_order()

    def _make_order(self) -> int:
        statement = """
            INSERT INTO shop_order (reference, customer_id, total, currency, placed_at)
            SELECT 'spare', min(id), 1, 'EUR', now() FROM shop_customer RETURNING id"""
        return self.queue.value(statement)


class Disk:
    """The folder of invoices; broken, a file is in its place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._aside = folder.with_name("aside")

    def break_(self) -> None:
        """Put the file there."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.rename(self._aside)
        self._folder.touch()

    def mend(self) -> None:
        """Put the folder back; once is enough."""
        if self._aside.exists():
            self._folder.unlink()
            self._aside.rename(self._folder)


@contextmanager
def open_shop(folder: Path) -> Iterator[Shop]:
    """Make a database, start everything, and leave nothing behind."""
    with ExitStack() as stack:
        nursery = Nursery()  # first, so that it gets ready meanwhile
        stack.callback(nursery.close)
        url = stack.enter_context(_database())
        environ = _environ(url, folder)
        _prepare(environ)
        address = f"http://{HOST}:{free_port()}"
        outside = ["outside_world", "--failing", "0"]
        stack.enter_context(_service(nursery, environ, folder / "outside.log", *outside))
        site = ["runserver", "--noreload", "--skip-checks", address.removeprefix("http://")]
        stack.enter_context(_service(nursery, environ, folder / "site.log", *site))
        worker = Worker(
            ["--threads", "4", "--poll", "0.2", "--grace", "5"], environ, folder / "worker.log", nursery
        )
        stack.callback(worker.close)
        worker.wait_started(1)
        wait_until(lambda: _answers(f"{address}/admin/login/"), START, "the site does not answer")
        rates = f"http://{HOST}:{environ['OUTSIDE_HTTP_PORT']}/rates/EUR/USD"
        wait_until(lambda: _answers(rates), START, "the outside world does not answer")
        queue = stack.enter_context(Queue(url))
        queue.prepare()
        yield Shop(address, folder, queue, worker)
        worker.stop()


@contextmanager
def _database() -> Iterator[str]:
    name = f"test_browser_{os.getpid()}"
    server = os.environ["DATABASE_URL"]
    with psycopg.connect(server, autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name}")
    try:
        yield make_conninfo(server, dbname=name)
    finally:
        with psycopg.connect(server, autocommit=True) as session:
            session.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _environ(url: str, folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "tests.browser.settings",
        "SHOP_FOLDER": str(folder),
        "OUTSIDE_HTTP_PORT": str(free_port()),
        "OUTSIDE_SMTP_PORT": str(free_port()),
        "SECRET_KEY": secrets.token_urlsafe(40),
    }


def _prepare(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "tests.browser.prepare"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=100)
    assert not done.returncode, done.stderr


@contextmanager
def _service(nursery: Nursery, environ: dict[str, str], log: Path, *command: str) -> Iterator[None]:
    process = Forked(nursery, command, environ, log)
    try:
        yield
        assert process.poll() is None, f"{command[0]} ended by itself:\n{log.read_text()[-3000:]}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait()
        except AssertionError:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _answers(url: str) -> bool:
    with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
        urllib.request.urlopen(url, timeout=5).close()
        return True
    return False
