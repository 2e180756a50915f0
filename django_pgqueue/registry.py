"""``Worker.objects``: which workers there are, for people to see.

A supervisor's keeper writes its row with its beat and takes it away at the end.  Nothing depends on these
rows: a worker without one works, and the jobs of a dead one are rescued by their leases.
"""

import json
from datetime import datetime
from typing import Any, NamedTuple

from django.db import router

from . import sql
from .guarded import GuardedManager
from .querying import Connection, queue_connection, run

MOST_WORKERS = 500
MOST_RUNNING = 5000
BEATS_MISSED = 3
"""Beats after which a worker that has not been heard of is taken for dead."""
ALIVE, STOPPING, DEAD = "alive", "stopping", "dead"


class ChildProcess(NamedTuple):
    """A child: ``memory`` in megabytes, or None where the system does not tell."""

    worker_id: str
    pid: int
    memory: int | None
    holds: int


class Registration(NamedTuple):
    """What a keeper says of its worker; ``started_ago`` in seconds, ``memory`` of all processes in MB."""

    worker_id: str
    host: str
    pid: int
    started_ago: float
    heartbeat: float
    queues: tuple[str, ...]
    processes: int
    threads: int
    version: str
    release: str
    memory: int | None
    is_stopping: bool
    children: tuple[ChildProcess, ...]


class RunningJob(NamedTuple):
    """A job that a child has now, since ``seconds`` ago."""

    job_id: int
    queue: str
    task_path: str | None
    seconds: float


class Registered(NamedTuple):
    """A worker as the registry has it; ``beat_ago`` and ``started_ago`` in seconds."""

    worker_id: str
    host: str
    pid: int
    started_ago: float
    beat_ago: float
    heartbeat: float
    queues: tuple[str, ...]
    processes: int
    threads: int
    version: str
    release: str
    memory: int | None
    is_stopping: bool
    children: tuple[ChildProcess, ...]
    stop_requested_at: datetime | None
    stop_requested_by: str

    @property
    def state(self) -> str:
        """Alive, stopping, or dead: not heard of for three beats."""
        if self.beat_ago > BEATS_MISSED * self.heartbeat + 1.0:
            return DEAD
        return STOPPING if self.is_stopping or self.stop_requested_at else ALIVE

    @property
    def slots(self) -> int:
        """Return how many jobs its threads can run at once."""
        return self.processes * self.threads


class WorkerManager(GuardedManager):
    """See the module."""

    def beat(self, worker: Registration, *, connection: Connection) -> bool:
        """Write the worker's row; return True when somebody has asked it to stop."""
        params = worker._asdict() | {
            "queues": json.dumps(worker.queues),
            "children": json.dumps(worker.children),
        }
        asked: bool = run(connection, sql.BEAT, params)[0][0]
        return asked

    def forget(self, worker_id: str, *, connection: Connection = None) -> bool:
        """Take the worker's row away; for one that ends."""
        return bool(run(connection or self._connection(), sql.FORGET_WORKER, {"worker_id": worker_id}))

    def forget_stale(self, *, age: float, limit: int, connection: Connection) -> int:
        """Take away up to ``limit`` rows of workers that have not been heard of for ``age`` seconds."""
        return len(run(connection, sql.FORGET_STALE, {"age": age, "limit": limit}))

    def ask_to_stop(self, worker_id: str, *, by: str, connection: Connection = None) -> bool:
        """Ask a worker to stop in an orderly way, at its next beat; False when it is gone or was asked."""
        params = {"worker_id": worker_id, "by": by}
        return bool(run(connection or self._connection(), sql.ASK_TO_STOP, params))

    def registered(self, *, connection: Connection = None) -> list[Registered]:
        """Return the workers by host and age, five hundred at most."""
        rows = run(connection or self._connection(), sql.REGISTERED, {"limit": MOST_WORKERS})
        return [_registered(row) for row in rows]

    def running(self, *, connection: Connection = None) -> dict[str, list[RunningJob]]:
        """Return what each child has now, by its worker id, longest first; five thousand jobs at most."""
        found: dict[str, list[RunningJob]] = {}
        rows = run(connection or self._connection(), sql.RUNNING_NOW, {"limit": MOST_RUNNING})
        for worker_id, *job in rows:
            found.setdefault(worker_id, []).append(RunningJob(*job))
        return found

    def _connection(self) -> Connection:
        return queue_connection(self._db or router.db_for_write(self.model))


def _registered(row: tuple[Any, ...]) -> Registered:
    found = Registered(*row)
    return found._replace(
        queues=tuple(json.loads(str(found.queues))),
        children=tuple(ChildProcess(*child) for child in _loaded(found.children)),
    )


def _loaded(value: Any) -> Any:
    # Django leaves json to psycopg, which parses it; through other connections it may come as text.
    return json.loads(value) if isinstance(value, str) else value
