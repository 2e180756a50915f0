"""``manage.py runworkers``: arguments only; the work is in ``django_pgqueue.worker``."""

import argparse
import logging
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from ...backend import PgQueueBackend
from ...compat import task_backends
from ...conf import LONGEST, MOST_OF_A_KIND, Options
from ...events import log_to_stderr
from ...worker.config import WorkerConfig
from ...worker.reload import run_with_reload
from ...worker.supervisor import Supervisor

USAGE_ERROR = 2


class Command(BaseCommand):
    """Run jobs until stopped.  Exit codes: 0 stopped or drained, 1 failure, 2 wrong options."""

    help = "Run background jobs: one supervisor, --processes children with --threads threads each."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--backend", default="default", help="alias in TASKS (default: %(default)s)")
        parser.add_argument(
            "--queues", help="comma-separated, asked in this order; default: the alias's QUEUES"
        )
        parser.add_argument("--processes", type=at_least(1, MOST_OF_A_KIND), help="children")
        parser.add_argument("--threads", type=at_least(1, MOST_OF_A_KIND), help="threads of each child")
        parser.add_argument("--drain", action="store_true", help="end when nothing is due")
        parser.add_argument("--max-jobs", type=at_least(1), help="end after exactly this many jobs")
        parser.add_argument(
            "--max-jobs-per-child", type=at_least(1), help="replace a child after so many jobs"
        )
        parser.add_argument(
            "--max-memory", type=at_least(1), metavar="MB", help="replace a child above this memory"
        )
        parser.add_argument(
            "--lease", type=seconds, help="seconds for which a claimed job belongs to its worker"
        )
        parser.add_argument(
            "--heartbeat", type=seconds, help="seconds between renewals; less than half the lease"
        )
        parser.add_argument(
            "--grace", type=seconds_or_zero, help="seconds that running jobs get when the worker is stopped"
        )
        parser.add_argument(
            "--poll", type=seconds, dest="poll_interval", help="seconds between looks when idle"
        )
        parser.add_argument("--no-notify", action="store_true", help="do without LISTEN/NOTIFY")
        parser.add_argument("--reload", action="store_true", help="restart when code changes (development)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the worker and exit with its code."""
        log_to_stderr({0: logging.ERROR, 1: logging.INFO}.get(options["verbosity"], logging.DEBUG))
        if options["reload"]:
            raise SystemExit(run_with_reload(sys.argv))
        try:
            config = make_config(options)
        except ValueError as error:
            raise CommandError(str(error), returncode=USAGE_ERROR) from None
        raise SystemExit(Supervisor(config).run())


def make_config(arguments: dict[str, Any]) -> WorkerConfig:
    """Return the worker's configuration; raises ValueError with words for people."""
    alias = arguments["backend"]
    ours = [
        name for name in getattr(settings, "TASKS", {}) if isinstance(task_backends[name], PgQueueBackend)
    ]
    if alias not in ours:
        raise ValueError(
            f"--backend {alias!r} is not an alias of TASKS that uses PgQueueBackend; "
            f"those are: {', '.join(ours) or 'none'}."
        )
    backend = task_backends[alias]
    options, problems = Options.parse(backend.options)
    if problems:
        raise ValueError(" ".join(f"TASKS[{alias!r}]: {p.message} {p.hint}" for p in problems))
    queues = chosen_queues(
        arguments["queues"], list(getattr(settings, "TASKS", {})[alias].get("QUEUES", ["default"]))
    )
    names = (
        "processes",
        "threads",
        "max_jobs",
        "max_jobs_per_child",
        "max_memory",
        "lease",
        "heartbeat",
        "grace",
    )
    overrides = {name: arguments[name] for name in (*names, "poll_interval")}
    if arguments["lease"] is not None and arguments["heartbeat"] is None:
        overrides["heartbeat"] = min(options.heartbeat, arguments["lease"] / 3)
    if arguments["lease"] is not None and arguments["poll_interval"] is None:
        overrides["poll_interval"] = min(options.poll_interval, arguments["lease"])
    notify = False if arguments["no_notify"] else None
    return WorkerConfig.make(alias, queues, options, drain=arguments["drain"], notify=notify, **overrides)


def chosen_queues(given: str | None, declared: list[str]) -> tuple[str, ...]:
    """Return the queues to serve, in order; raises ValueError for a name that is not declared."""
    if given is None:
        return tuple(declared)
    names = tuple(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if not names:
        raise ValueError(f"--queues {given!r} names no queue.")
    unknown = [name for name in names if declared and name not in declared]
    if unknown:
        raise ValueError(
            f"--queues names {', '.join(map(repr, unknown))}, which QUEUES does not have; "
            f"it has {', '.join(map(repr, declared))}."
        )
    return names


def seconds(text: str) -> float:
    """Parse a number of seconds above 0."""
    value = float(text)
    if not 0 < value <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0, at most {LONGEST}")
    return value


def seconds_or_zero(text: str) -> float:
    """Parse a number of seconds, 0 or more."""
    value = float(text)
    if not 0 <= value <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0 to {LONGEST}")
    return value


def at_least(least: int, most: int = 2**31 - 1) -> Any:
    """Return a parser of whole numbers from ``least`` to ``most``."""

    def whole(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        if value > most:
            raise argparse.ArgumentTypeError(f"{text} is above {most}")
        return value

    return whole
