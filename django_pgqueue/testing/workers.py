"""A real worker for tests: ``runworkers`` in processes of its own, on the test's databases.

It is for tests that commit (TransactionTestCase, pytest's ``transactional_db``).  It has ended, with all
its processes and database sessions, before the block does: a flush of the tables beside a living worker
can deadlock, and a session left behind blocks DROP DATABASE.
"""

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from django.db import connections

from .. import sql
from ..backend import PgQueueBackend
from ..compat import AnyResult
from ..connections import connect
from ..models import Job, JobState
from ..states import LIVE, READY, RUNNING
from .aliases import connection_of, queue_backend, queues_of
from .environment import is_allowed, worker_environment

INTERVAL = 0.02
STOP_TIMEOUT = 15.0
"""Seconds beyond the grace after which a worker that was told to stop is killed."""
END_TIMEOUT = 10.0
LOG_SHOWN = 4000


class WorkerFailed(AssertionError):
    """The worker ended by itself, or did not do in time what was asked; the message ends with its log."""


class WorkerProcess:
    """A running ``runworkers``; made by ``run_worker``, which also ends it."""

    def __init__(
        self, backend: PgQueueBackend, arguments: Sequence[str], settings: Mapping[str, Any], grace: float
    ) -> None:
        self._backend = backend
        self._grace = grace
        self._session_name = f"pgqueue test worker {secrets.token_hex(8)}"
        self._databases = [connection.alias for connection in connections.all() if is_allowed(connection)]
        environment = worker_environment(self._session_name, settings)
        self._directory = tempfile.TemporaryDirectory(prefix="pgqueue-worker-")
        self._log = Path(self._directory.name) / "log"
        command = [sys.executable, "-m", "django_pgqueue.testing.worker_process", str(os.getpid())]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*command, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.ended = False

    @property
    def log(self) -> str:
        """Everything the worker has written."""
        return self._log.read_text(errors="replace")

    @property
    def alive(self) -> bool:
        """True while the worker runs."""
        return self._process.poll() is None

    def wait(self, *results: AnyResult, timeout: float = 15.0) -> None:
        """Block until these jobs have ended, and refresh the results; without any, until nothing is due.

        Raises WorkerFailed when that takes more than ``timeout`` seconds or when the worker ends before.
        """
        ids = [int(result.id) for result in results]
        if ids:
            self._wait(lambda: not self._alive_among(ids), timeout, f"the end of the jobs {ids}")
        else:
            self._wait(lambda: not self._busy(), timeout, "the end of all jobs that are due")
        for result in results:
            result.refresh()

    def kill(self) -> None:
        """End all processes of the worker at once, as the loss of its machine would.

        Its jobs stay running until their leases are over, or until ``forward_time`` has brought that about.
        """
        self.ended = True
        self._end_processes()
        self._end_sessions()

    def stop(self) -> None:
        """Tell the worker to stop, wait, and make sure that nothing of it is left."""
        self.ended = True
        if self.alive:
            self._process.send_signal(signal.SIGTERM)
            _poll(lambda: not self.alive, self._grace + STOP_TIMEOUT)
        self._end_processes()
        self._end_sessions()

    def wait_started(self, timeout: float = 30.0) -> None:
        """Block until the worker takes jobs."""
        started = (" keeper_started ", " child_started ")
        self._wait(lambda: all(event in self.log for event in started), timeout, "its start")

    def check(self) -> None:
        """Raise WorkerFailed when the worker has ended."""
        if not self.alive:
            raise WorkerFailed(f"the worker ended with {self._process.returncode}.\n{self._log_tail()}")

    # --- looking

    def _alive_among(self, ids: Sequence[int]) -> bool:
        return bool(self._states().filter(job_id__in=ids, status__in=LIVE).exists())

    def _busy(self) -> bool:
        seconds = Job.objects.next_run_at(connection=connection_of(self._backend))
        if seconds is not None and seconds <= 0:
            return True
        return bool(self._states().filter(status__in=(READY, RUNNING)).exists())

    def _states(self) -> Any:
        return JobState.objects.using(self._backend.settings.database)

    def _wait(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        def over() -> bool:
            if condition():
                return True
            self.check()
            return False

        if not _poll(over, timeout):
            raise WorkerFailed(f"waited {timeout:g} s in vain for {what}.\n{self._log_tail()}")

    def _log_tail(self) -> str:
        return f"Its log ends:\n{self.log[-LOG_SHOWN:]}"

    # --- ending

    def _end_processes(self) -> None:
        # The session that the worker leads has no other processes than its own; orphans are among them.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def _end_sessions(self) -> None:
        for alias in self._databases:
            with connect(alias, "test", prepared=False) as connection:
                if not _poll(partial(self._no_sessions, connection), END_TIMEOUT):
                    raise WorkerFailed(f"sessions of the worker are still in the database {alias!r}.")

    def _no_sessions(self, connection: psycopg.Connection[Any]) -> bool:
        ended = connection.execute(sql.END_SESSIONS, {"application_name": self._session_name})
        return not ended.fetchall()

    def close(self) -> None:
        """Remove the log."""
        self._directory.cleanup()


def _poll(condition: Callable[[], bool], timeout: float) -> bool:
    # Counted, not timed: a test may have frozen the clock.
    for _ in range(int(timeout / INTERVAL) + 1):
        if condition():
            return True
        time.sleep(INTERVAL)
    return False


@contextmanager
def run_worker(
    *,
    backend: str = "default",
    queues: str | Sequence[str] | None = None,
    processes: int = 1,
    threads: int = 2,
    lease: float = 3.0,
    heartbeat: float = 0.5,
    poll: float = 0.1,
    grace: float = 5.0,
    settings: Mapping[str, Any] | None = None,
) -> Generator[WorkerProcess]:
    """Run a real worker while the block runs; times in seconds.

    It starts with the project's settings module, on the databases of the test, and with mail kept in
    memory.  Of what ``override_settings`` changed only TASKS reaches it; ``settings`` (values that JSON
    can hold) does.

    Raises RuntimeError in a transaction (a TestCase): no other process could see what the test has
    enqueued.  Raises WorkerFailed when the worker has ended by itself, unless it was told to.
    """
    chosen = queue_backend(backend)
    if connection_of(chosen).in_atomic_block:
        raise RuntimeError(
            "A worker in another process sees only what has been committed: use TransactionTestCase, or "
            "pytest's transactional_db; or run_jobs(), which works inside the transaction."
        )
    values: dict[str, Any] = {"backend": backend, "processes": processes, "threads": threads, "lease": lease}
    values |= {"heartbeat": heartbeat, "poll": poll, "grace": grace}
    values |= {"queues": ",".join(queues_of(chosen, queues))}
    arguments = [f"--{name}={value}" for name, value in values.items() if value != ""]
    worker = WorkerProcess(chosen, arguments, settings or {}, grace)
    with ExitStack() as stack:
        stack.callback(worker.close)
        stack.callback(worker.stop)
        worker.wait_started()
        yield worker
        if not worker.ended:
            worker.check()
