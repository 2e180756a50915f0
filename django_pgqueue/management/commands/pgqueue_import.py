"""``manage.py pgqueue_import``: arguments and words only; the work is in ``django_pgqueue.importing``."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ... import importing
from ...backend import PgQueueBackend
from ..aliases import our_backend

SHOWN = 20
"""How many of the rows that stay behind are named."""


class Command(BaseCommand):
    """Take over the waiting tasks of django-tasks-db.  Exit codes: 0 all taken over, 1 some or all left."""

    help = "Take over the waiting tasks of django-tasks-db; may be interrupted and run again."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--backend", default="default", help="alias in TASKS (default: %(default)s)")
        parser.add_argument("--from-backend", help="the alias that the rows name; default: that of --backend")
        parser.add_argument(
            "--leave-running", action="store_true", help="leave rows that are RUNNING, and take the others"
        )
        parser.add_argument("--dry-run", action="store_true", help="check every row, change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Take over what waits, and say what stays behind."""
        backend = our_backend(options["backend"])
        source = options["from_backend"] or options["backend"]
        if not importing.table_exists(backend):
            raise CommandError(
                f"The database {backend.settings.database!r} has no table {importing.TABLE}: "
                "django-tasks-db must have been used in the database that the queue uses now."
            )
        counts = importing.count_rows(backend, source)
        running = counts.get("RUNNING", 0)
        if running and not options["dry_run"] and not options["leave_running"]:
            raise CommandError(refusal(running, source))
        if running:
            self.stderr.write(refusal(running, source))
        self._take_over(backend, source, counts.get("READY", 0), dry_run=options["dry_run"])

    def _take_over(self, backend: PgQueueBackend, source: str, waiting: int, *, dry_run: bool) -> None:
        taken, refused = 0, []
        verb = "can be taken over" if dry_run else "taken over"
        for batch in importing.take_over(backend, source, dry_run=dry_run):
            taken += batch.taken
            refused += batch.refused
            self.stdout.write(f"{taken} of {waiting} {verb}")
        for row, reason in refused[:SHOWN]:
            self.stderr.write(f"{row.id} {row.task_path}: {reason}")
        if refused:
            raise CommandError(f"{taken} rows {verb}, {len(refused)} left where they are; see above.")
        if not dry_run and importing.count_rows(backend, source).get("READY"):
            raise CommandError(f"{taken} rows {verb}; others were locked or came meanwhile. Run this again.")
        self.stdout.write(self.style.SUCCESS(f"{taken} rows {verb}."))


def refusal(running: int, source: str) -> str:
    """Return why rows that are RUNNING are not taken over, and what to do about them."""
    return (
        f"{running} rows of {source!r} are RUNNING: a db_worker has them, or died with them. Stop every "
        "db_worker and let it finish. What is RUNNING then was lost: set its status to READY if it may run "
        "again, to FAILED if not; or leave such rows and take the others with --leave-running."
    )
