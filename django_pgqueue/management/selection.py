"""Which jobs a command means: ids, or the filters that the admin's list has.

A command must be told: without ids and without a filter nothing is meant, and ``--all`` says "all of them".
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ..models import Job
from ..operating import QueueSample
from ..querying import ROWS_PER_STATEMENT, chunks
from ..selecting import JobFilter, Place

SHOWN = 10


def add_arguments(parser: CommandParser, statuses: Sequence[str]) -> None:
    """Declare ids, filters, and what every command that changes jobs has."""
    parser.add_argument("ids", nargs="*", type=int, metavar="ID", help="numbers of jobs")
    parser.add_argument("--backend", default="default", help="alias in TASKS (default: %(default)s)")
    parser.add_argument("--status", choices=statuses, help="only jobs in this state")
    parser.add_argument("--queue", help="only jobs of this queue")
    parser.add_argument("--task", action="append", help="only jobs of this task's path; may be repeated")
    parser.add_argument(
        "--cause", help="only jobs that died of this cause; its code is on the page of causes"
    )
    parser.add_argument(
        "--ended-since", type=moment, metavar="TIME", help="only jobs that ended then or later"
    )
    parser.add_argument("--ended-before", type=moment, metavar="TIME", help="only jobs that ended before")
    parser.add_argument("--all", action="store_true", help="all jobs to which this applies")
    parser.add_argument("--dry-run", action="store_true", help="count, change nothing")
    parser.add_argument("--json", action="store_true", help="for programs")


def moment(text: str) -> datetime:
    """Parse a time such as 2026-11-30T02:00; without a zone it is in the project's."""
    value = parse_datetime(text)
    if value is None:
        value = parse_datetime(f"{text}T00:00")
    if value is None:
        raise ValueError(f"{text!r} is not a time such as 2026-11-30T02:00")
    return value if timezone.is_aware(value) else value.replace(tzinfo=timezone.get_current_timezone())


def asked(options: dict[str, Any]) -> JobFilter:
    """Return the filter of a command's options.  Raises CommandError when nothing was asked for."""
    found = JobFilter(
        status=options["status"],
        queue=options["queue"],
        task_paths=tuple(options["task"]) if options["task"] else None,
        cause=options["cause"],
        finished_from=options["ended_since"],
        finished_to=options["ended_before"],
    )
    if options["ids"] and not found.is_empty:
        raise CommandError("Give numbers of jobs or filters, not both.")
    if not options["ids"] and found.is_empty and not options["all"]:
        raise CommandError("Which jobs? Give their numbers, a filter such as --queue, or --all.")
    return found


def batches(
    wanted: JobFilter, ids: Sequence[int], statuses: Sequence[str], database: str
) -> Iterator[Sequence[int]]:
    """Yield the ids of the jobs that are meant, a thousand at most at once."""
    if ids:
        yield from chunks(sorted(set(ids)), ROWS_PER_STATEMENT)
        return
    jobs = Job.objects.db_manager(database)
    # What a command retried may die again while it runs: its beginning is the end of what it means.
    begun = QueueSample.objects.db_manager(database).database_time()
    begun = begun if timezone.is_aware(begun) else begun.replace(tzinfo=timezone.get_current_timezone())
    for status in statuses:
        if status in wanted.statuses:
            yield from _walk(jobs, _until(wanted.within(status), begun))


def _walk(jobs: Any, wanted: JobFilter) -> Iterator[Sequence[int]]:
    place: Place | None = None
    while True:
        walked = jobs.walk(wanted, limit=ROWS_PER_STATEMENT, place=place)
        if walked.job_ids:
            yield walked.job_ids
        if walked.end is None:
            return
        place = walked.end


def _until(wanted: JobFilter, begun: datetime) -> JobFilter:
    if wanted.status in ("scheduled", "ready", "running"):
        return wanted
    return replace(wanted, finished_to=min(wanted.finished_to or begun, begun))
