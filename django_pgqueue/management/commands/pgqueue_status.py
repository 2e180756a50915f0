"""``manage.py pgqueue_status``: the overview in the terminal, once or live."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ...pauses import ALL_QUEUES, Pause
from ...readings import QueueStatus
from ..aliases import our_backend
from ..output import dumped, table
from ..status import Status, status_of

HEADINGS = ("queue", "ready", "oldest", "running", "scheduled", "")
CLEAR = "\033[H\033[2J"
WATCH_EVERY = 2.0


class Command(BaseCommand):
    """Show the queues, the last hour and the workers.  Exit code 0, whatever there is to say."""

    help = "Show what waits and runs in each queue, what the last hour was like, and which workers there are."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--backend", default="default", help="alias in TASKS (default: %(default)s)")
        parser.add_argument("--json", action="store_true", help="for programs")
        parser.add_argument(
            "--watch",
            nargs="?",
            type=float,
            const=WATCH_EVERY,
            metavar="S",
            help="show it anew every so many seconds (2), until Ctrl-C",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask and print."""
        backend = our_backend(options["backend"])
        while True:
            lines = self._lines(status_of(backend), backend.queues, as_json=options["json"])
            if options["watch"] is None:
                self.stdout.write("\n".join(lines))
                return
            self.stdout.write(("" if options["json"] else CLEAR) + "\n".join(lines))
            self.stdout.flush()
            try:
                time.sleep(max(options["watch"], 0.1))
            except KeyboardInterrupt:
                return

    def _lines(self, status: Status, declared: set[str], *, as_json: bool) -> list[str]:
        notes = {
            queue.queue: note(queue, status.worker_processes, declared, status.pauses)
            for queue in status.queues
        }
        if as_json:
            return [dumped(status.as_json(notes))]
        rows = [HEADINGS, *(row(queue, notes[queue.queue]) for queue in status.queues)]
        lines = table(rows, numbers=frozenset(range(1, 5)))
        lines.append(f"{status.worker_processes} worker processes are connected.")
        return [*lines, *status.lines()]


def row(queue: QueueStatus, said: str) -> tuple[str, ...]:
    """Return the cells of a queue's line."""
    oldest = "" if queue.waited is None else f"{max(queue.waited, 0.0):.0f} s"
    return (queue.queue, str(queue.ready), oldest, str(queue.running), str(queue.scheduled), said)


def note(queue: QueueStatus, workers: int, declared: set[str], pauses: dict[str, Pause]) -> str:
    """Return what is remarkable about a queue, or nothing."""
    pause = pauses.get(queue.queue) or pauses.get(ALL_QUEUES)
    if pause is not None:
        return f"{'draining' if pause.is_draining else 'paused'}, by {pause.by}"
    if queue.is_stuck and not workers:
        return "waiting, no worker"
    if queue.is_stuck:
        return "waiting, no worker seen: do they serve this queue, or are they busy with others?"
    return "" if not declared or queue.queue in declared else "not in QUEUES"
