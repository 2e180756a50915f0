"""What the commands that change jobs share: count what is meant, do it a thousand at a time, say what became
of it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from ..models import Job
from ..wakeups import notify_after_commit
from . import selection
from .aliases import our_backend
from .output import Bar, dumped


class RepairCommand(BaseCommand):
    """A verb for many jobs; each thousand commits by itself."""

    verb = ""
    """In words, of what was done: "retried"."""
    statuses: tuple[str, ...] = ()
    """The states whose jobs it applies to, in the order in which they are walked."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare ids and filters."""
        selection.add_arguments(parser, self.statuses)

    def act(self, job_ids: Sequence[int], jobs: Any) -> tuple[Counter[str], Sequence[int]]:
        """Do it; return the counts by what became of the jobs, and the ids of those that are ready now."""
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it to all that are meant."""
        wanted = selection.asked(options)
        database = our_backend(options["backend"]).settings.database
        jobs = Job.objects.db_manager(database)
        found = list(self._counts(wanted, options["ids"], jobs))
        counts: Counter[str] = Counter()
        if not options["dry_run"]:
            total = None if any(not exact for _, exact in found) else sum(count for count, _ in found)
            with Bar(self.verb, total) as bar:
                for batch in selection.batches(wanted, options["ids"], self.statuses, database):
                    counts += self._do(batch, jobs, database)
                    bar.add(len(batch))
        self._tell(found, counts, options)
        if counts["conflicts"] and not counts[self.verb]:
            raise CommandError(f"None was {self.verb}.", returncode=1)

    def _counts(self, wanted: Any, ids: Sequence[int], jobs: Any) -> list[tuple[int, bool]]:
        if ids:
            return [(len(set(ids)), True)]
        return [
            jobs.count_up_to(wanted.within(status)) for status in self.statuses if status in wanted.statuses
        ]

    def _do(self, batch: Sequence[int], jobs: Any, database: str) -> Counter[str]:
        with transaction.atomic(using=database):
            counts, ready = self.act(batch, jobs)
            if ready:
                notify_after_commit(jobs.queues_of(ready), using=database)
        return counts

    def _tell(self, found: Sequence[tuple[int, bool]], counts: Counter[str], options: dict[str, Any]) -> None:
        meant, exact = sum(count for count, _ in found), all(exact for _, exact in found)
        if options["json"]:
            told = {"meant": meant, "meant_is_exact": exact, "dry_run": options["dry_run"], **counts}
            self.stdout.write(dumped(told))
        elif options["dry_run"]:
            self.stdout.write(f"{'' if exact else 'at least '}{meant} jobs would be {self.verb}.")
        else:
            self.stdout.write(", ".join(f"{count} {name}" for name, count in counts.items()) or "0 jobs.")
