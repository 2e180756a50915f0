"""The project around the workers under test: settings changed from outside, and what its start-up does.

TESTS_SETTINGS is JSON, laid over tests.settings. TESTS_STARTUP names what ``ready()`` shall do, by commas.
"""

import importlib
import os
import socket
import threading
import time
from contextlib import suppress

from django.apps import AppConfig
from django.db import connection
from django.utils import timezone

from ..chaos import bugs


class ProjectConfig(AppConfig):
    """An app whose start-up is as the test wishes."""

    name = "tests.processes"
    label = "processes"

    def ready(self) -> None:
        """Do what TESTS_STARTUP says, and put the bug in that CHAOS_BUG names."""
        if bug := os.environ.get(bugs.VARIABLE):
            bugs.load(bug)
        for name in filter(None, os.environ.get("TESTS_STARTUP", "").split(",")):
            STARTUPS[name]()


def use_orm() -> None:
    """Use the database before anything is forked."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def start_thread() -> None:
    """Have a thread, as metrics and tracing libraries do."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def die_in_children() -> None:
    """End every process that is forked, before it can do anything."""
    os.register_at_fork(after_in_child=lambda: os._exit(3))


def connect_bad_receivers() -> None:
    """Receivers of the task signals that raise, or that leave an aborted transaction."""
    from . import receivers  # noqa: PLC0415 - only where asked for

    receivers.connect()


def be_impatient() -> None:
    """Wait a second or two for a silent database or a stubborn task, not five to fifteen."""
    from django_pgqueue import connections  # noqa: PLC0415 - only where asked for
    from django_pgqueue.worker import child, keeper, runners, supervisor  # noqa: PLC0415

    connections.STUCK_AFTER = 2.0
    child.LAST_SETTLE = keeper.LAST_RESCUE = 1.0
    supervisor.HARD_STOP = 2.0
    runners.SOFT_STOP_GRACE = supervisor.SOFT_STOP_GRACE = 1.0


def run_ten_minutes_fast() -> None:
    """Show this process a wrong clock, wherever Python code could look."""
    real_time, real_now = time.time, timezone.now
    time.time = lambda: real_time() + 600
    timezone.now = lambda: real_now() + timezone.timedelta(minutes=10)


def sleep_under_faketime() -> None:
    """Sleep as without libfaketime, which calls a deadline that has just passed an invalid argument."""
    real_sleep = time.sleep  # noqa: TID251 - it is replaced, not used

    def sleep(seconds: float) -> None:
        with suppress(OSError):
            real_sleep(seconds)

    time.sleep = sleep  # noqa: TID251


def have_a_long_host_name() -> None:
    """Call this machine by the longest name that the network allows."""
    socket.gethostname = lambda: "h" * 253


def import_reloadable() -> None:
    """Import a module that the test changes."""
    importlib.import_module("reloadable")


def break_the_claim() -> None:
    """Let children fall over what nobody foresaw, right after they have started."""
    from django_pgqueue.worker.claims import Claimer  # noqa: PLC0415 - only where asked for

    def claim(*args: object, **options: object) -> None:
        raise NotImplementedError("not foreseen")

    Claimer.claim = claim


STARTUPS = {
    "broken_claim": break_the_claim,
    "long_host": have_a_long_host_name,
    "reloadable": import_reloadable,
    "orm": use_orm,
    "thread": start_thread,
    "die": die_in_children,
    "receivers": connect_bad_receivers,
    "impatient": be_impatient,
    "fast_clock": run_ten_minutes_fast,
    "faketime": sleep_under_faketime,
}


class ReplicaRouter:
    """A router as projects with a replica have it."""

    def db_for_read(self, model: type, **hints: object) -> str:
        return "replica"

    def db_for_write(self, model: type, **hints: object) -> str:
        return "default"
