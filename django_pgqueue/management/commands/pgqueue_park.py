"""``manage.py pgqueue_park``: a restored copy of a database must not run the jobs of its origin."""

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ...models import Job
from ...operating import QueuePause
from ...pauses import ALL_QUEUES
from ...selecting import JobFilter
from ...states import READY, RUNNING, SCHEDULED
from ...wakeups import notify
from .. import selection
from ..aliases import our_backend
from ..output import Bar, dumped

REASON = "a restored copy: its jobs belong to its origin"


class Command(BaseCommand):
    """Pause all queues; with --cancel, cancel what lives besides.  Exit code 0."""

    help = (
        "Park a restored copy: pause all queues at once, so that workers begin nothing. With --cancel, "
        "cancel every job that has not ended, too. --resume lets the queues go on."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--backend", default="default", help="alias in TASKS (default: %(default)s)")
        parser.add_argument("--cancel", action="store_true", help="cancel every job that has not ended")
        parser.add_argument("--resume", action="store_true", help="let the queues go on again")
        parser.add_argument("--reason", default=REASON, help="for others to read (default: %(default)s)")
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        """Pause first, then cancel: between the two no worker begins anything."""
        if options["resume"] and options["cancel"]:
            raise CommandError("--resume and --cancel do not go together.")
        database = our_backend(options["backend"]).settings.database
        pauses = QueuePause.objects.db_manager(database)
        counts = {"cancelled": 0, "asked_to_stop": 0}
        if options["resume"]:
            changed = pauses.resume(ALL_QUEUES)
            notify(Job.objects.db_manager(database).ready_queues(), using=database)
        else:
            changed = pauses.pause(
                ALL_QUEUES, by=f"{getpass.getuser()} (pgqueue_park)", reason=options["reason"]
            )
        if options["cancel"]:
            counts = self._cancel(database)
        if options["json"]:
            self.stdout.write(dumped({"paused": not options["resume"], "changed": changed, **counts}))
            return
        said = "All queues go on." if options["resume"] else "All queues are paused."
        self.stdout.write(said if changed else f"{said} They did so before.")
        if options["cancel"]:
            self.stdout.write(
                f"{counts['cancelled']} jobs cancelled. {counts['asked_to_stop']} were running where this "
                "database comes from; they end as cancelled when a worker rescues them."
            )

    def _cancel(self, database: str) -> dict[str, int]:
        jobs = Job.objects.db_manager(database)
        counts = {"cancelled": 0, "asked_to_stop": 0}
        everything = JobFilter()
        with Bar("cancelled", None) as bar:
            for batch in selection.batches(everything, [], (SCHEDULED, READY, RUNNING), database):
                report = jobs.cancel(batch)
                counts["cancelled"] += len(report.cancelled)
                counts["asked_to_stop"] += len(report.requested)
                bar.add(len(batch))
        return counts
