"""``manage.py pgqueue_health``: one question, answered by the exit code, for probes and alarms."""

import socket
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError

from ...operating import QueuePause, QueueSample, Worker
from ...pauses import ALL_QUEUES
from ...registry import DEAD
from ...storable import clean_name
from ..aliases import our_backend
from ..output import dumped

LIVENESS, READINESS, BACKLOG = "liveness", "readiness", "backlog"
SICK, USAGE = 1, 2


class Sick(Exception):
    """The answer is no; the message says why."""


class Command(BaseCommand):
    """Exit code 0: well. 1: not. 2: a wrong question."""

    help = (
        "liveness: a worker of this host has been heard of lately. readiness: the database answers, takes "
        "writes and has the tables. backlog: no ready job has waited longer than --older-than."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("question", choices=[LIVENESS, READINESS, BACKLOG])
        parser.add_argument("--backend", default="default", help="alias in TASKS (default: %(default)s)")
        parser.add_argument("--host", help="liveness: the host's name in the registry (default: this one)")
        parser.add_argument("--queues", help="backlog: only these queues, comma-separated")
        parser.add_argument(
            "--older-than",
            type=float,
            default=300.0,
            metavar="S",
            help="backlog: seconds (default: %(default)s)",
        )
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        """Answer."""
        database = our_backend(options["backend"]).settings.database
        ask = {LIVENESS: _liveness, READINESS: _readiness, BACKLOG: _backlog}[options["question"]]
        try:
            well, said = True, ask(database, options)
        except Sick as reason:
            well, said = False, str(reason)
        if options["json"]:
            self.stdout.write(dumped({"question": options["question"], "well": well, "said": said}))
        elif well:
            self.stdout.write(said)
        if not well:
            raise CommandError(said, returncode=SICK)


def _liveness(database: str, options: dict[str, Any]) -> str:
    host = options["host"] or clean_name(socket.gethostname() or "localhost", 255)
    try:
        found = [worker for worker in Worker.objects.db_manager(database).registered() if worker.host == host]
    except (DatabaseError, InterfaceError) as error:
        # A restart of the worker would not bring the database back: the worker waits for it by itself.
        return f"The database does not answer, which is no fault of the worker: {error}"
    alive = [worker for worker in found if worker.state != DEAD]
    if not alive:
        known = f"its last beat was {min(w.beat_ago for w in found):.0f} s ago" if found else "it has no line"
        raise Sick(f"No worker of {host!r} is alive: {known}.")
    return f"{len(alive)} workers of {host!r} are alive."


def _readiness(database: str, options: dict[str, Any]) -> str:
    try:
        missing = QueueSample.objects.db_manager(database).standing()
    except (DatabaseError, InterfaceError) as error:
        raise Sick(f"The database does not answer: {error}") from None
    if missing:
        raise Sick(missing)
    return "The database answers, takes writes and has the tables."


def _backlog(database: str, options: dict[str, Any]) -> str:
    wanted = {name.strip() for name in (options["queues"] or "").split(",") if name.strip()}
    paused = QueuePause.objects.db_manager(database).present()
    depths = [
        depth
        for depth in QueueSample.objects.db_manager(database).depths(limit=1)
        if (depth.queue in wanted or not wanted) and depth.queue not in paused and ALL_QUEUES not in paused
    ]
    late = [depth for depth in depths if (depth.waited or 0.0) > options["older_than"]]
    if late:
        told = ", ".join(f"{depth.queue!r} for {depth.waited:.0f} s" for depth in late)
        raise Sick(f"Ready jobs have waited longer than {options['older_than']:g} s: {told}.")
    oldest = max((depth.waited or 0.0 for depth in depths), default=0.0)
    return f"No ready job has waited longer than {options['older_than']:g} s; the oldest, {oldest:.0f} s."
