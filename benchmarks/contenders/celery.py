"""Celery with Redis: the broker that most projects compare with. Redis is not durable by default."""

import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import marks
from benchmarks.contenders.base import BEST, Place, marked
from benchmarks.contenders.environments import program
from benchmarks.contenders.python_peer import PythonPeer
from benchmarks.core.databases import Databases
from benchmarks.core.lanes import CannotRun
from benchmarks.core.processes import wait_for


class Celery(PythonPeer):
    """At its best with a prefetch multiplier of 128 and no events; two processes, as it takes by default."""

    name = "celery"
    module = "celery"
    requirements = ("celery[redis]",)
    warm_up = 5.0

    def prepare(self) -> None:
        """Make the environment; raises CannotRun, also when there is no redis-server."""
        program("redis-server", "Redis")
        super().prepare()

    def left(self, place: Place) -> int:
        """Return how many messages wait or are not acknowledged, as Redis has it."""
        port = urlsplit(place.environ["REDIS_URL"]).port or 0
        return _length(port, "LLEN celery") + _length(port, "HLEN unacked")

    @contextmanager
    def place(
        self,
        databases: Databases,
        jobs: int,
        configuration: str = BEST,
        *,
        more: int = 0,
        options: Mapping[str, Any] | None = None,
        fill: tuple[str, str] = ("", ""),
    ) -> Iterator[Place]:
        """Start an empty Redis and put the jobs into it."""
        with marked(jobs + more) as seen, _redis() as url:
            environ = {**self.environ(configuration, seen, options or {}), "REDIS_URL": url}
            place = Place(self, configuration, environ, marks.Marks(seen), None)
            if jobs:
                place.ask("preload", jobs)
            yield place


@contextmanager
def _redis() -> Iterator[str]:
    """Run a Redis of our own with the defaults of its package: snapshots now and then, no log."""
    with tempfile.TemporaryDirectory(prefix="pgqueue-bench-redis-") as directory, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", directory, "--daemonize", "no"]
        with (Path(directory) / "log").open("w") as log:
            command = [program("redis-server", "Redis"), *options]
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            if not wait_for(lambda: _answers(port), 10.0, pause=0.02):
                raise CannotRun("redis-server did not start")
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait(10)


def _length(port: int, command: str) -> int:
    """Ask Redis for a length, without its client: the harness has none."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(f"{command}\r\n".encode())
        return int(client.recv(64).decode().strip().removeprefix(":"))


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
