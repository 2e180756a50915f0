"""``manage.py pgqueue_status``: what waits and runs in each queue, and whether any worker takes it."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ...models import Job
from ...readings import QueueStatus
from ..aliases import our_backend

HEADINGS = ("queue", "ready", "oldest", "running", "scheduled", "")


class Command(BaseCommand):
    """Show the queues.  Exit code 0, whatever there is to say."""

    help = "Show what waits and runs in each queue, and which queues nobody serves."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--backend", default="default", help="alias in TASKS (default: %(default)s)")
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask once and print."""
        backend = our_backend(options["backend"])
        jobs = Job.objects.db_manager(backend.settings.database)
        queues, workers = jobs.queues(), jobs.worker_processes()
        if options["json"]:
            found = [{**queue._asdict(), "note": note(queue, workers, backend.queues)} for queue in queues]
            self.stdout.write(json.dumps({"worker_processes": workers, "queues": found}, indent=2))
            return
        rows = [HEADINGS, *(row(queue, note(queue, workers, backend.queues)) for queue in queues)]
        widths = [max(len(cells[column]) for cells in rows) for column in range(len(HEADINGS))]
        for name, *numbers, said in rows:
            aligned = [number.rjust(width) for number, width in zip(numbers, widths[1:-1], strict=True)]
            self.stdout.write("  ".join([name.ljust(widths[0]), *aligned, said]).rstrip())
        self.stdout.write(f"{workers} worker processes are connected.")


def row(queue: QueueStatus, said: str) -> tuple[str, ...]:
    """Return the cells of a queue's line."""
    oldest = "" if queue.waited is None else f"{max(queue.waited, 0.0):.0f} s"
    return (queue.queue, str(queue.ready), oldest, str(queue.running), str(queue.scheduled), said)


def note(queue: QueueStatus, workers: int, declared: set[str]) -> str:
    """Return what is remarkable about a queue, or nothing."""
    if queue.is_stuck and not workers:
        return "waiting, no worker"
    if queue.is_stuck:
        return "waiting, no worker seen: do they serve this queue, or are they busy with others?"
    return "" if not declared or queue.queue in declared else "not in QUEUES"
