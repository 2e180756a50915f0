"""``manage.py pgqueue_prune``: delete ended jobs now, by retention or by an age."""

import re
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ...conf import Options
from ...maintenance import BATCH
from ...models import Job
from ...retention import Rule, rules_of
from ...states import CANCELLED, DEAD, SUCCEEDED
from ..aliases import our_backend
from ..output import Bar, dumped

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Command(BaseCommand):
    """Prune without waiting for a worker.  Exit code 0."""

    help = "Delete ended jobs past their retention, or older than --older-than, with all their rows."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--backend", default="default", help="alias in TASKS (default: %(default)s)")
        parser.add_argument("--status", choices=[SUCCEEDED, DEAD, CANCELLED], help="only jobs that ended so")
        parser.add_argument("--queue", help="only jobs of this queue")
        parser.add_argument(
            "--older-than", type=age, metavar="AGE", help="in place of retention: 90s, 30m, 12h, 7d"
        )
        parser.add_argument("--limit", type=int, help="delete at most so many")
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        """Delete a thousand at a time until nothing is left to delete."""
        settings = our_backend(options["backend"]).settings
        if options["queue"] is not None and options["older_than"] is None:
            raise CommandError("--queue needs --older-than: without it, retention says what goes from where.")
        jobs = Job.objects.db_manager(settings.database)
        deleted: dict[str, int] = {}
        left = options["limit"]
        with Bar("deleted", left) as bar:
            for rule in rules(options, settings):
                for count in passes(rule, jobs, left):
                    deleted[rule.status] = deleted.get(rule.status, 0) + count
                    left = None if left is None else left - count
                    bar.add(count)
        if options["json"]:
            self.stdout.write(dumped({"deleted": deleted, "total": sum(deleted.values())}))
        else:
            told = ", ".join(f"{count} {status}" for status, count in deleted.items() if count)
            self.stdout.write(f"Deleted: {told or 'nothing'}.")


def rules(options: dict[str, Any], settings: Options) -> list[Rule]:
    """Return what is to be deleted: by the options, or by retention."""
    if options["older_than"] is None:
        found = rules_of(settings.retention)
    else:
        queues = None if options["queue"] is None else (options["queue"],)
        found = [Rule(status, options["older_than"], queues) for status in (SUCCEEDED, DEAD, CANCELLED)]
    return [rule for rule in found if options["status"] in (None, rule.status)]


def passes(rule: Rule, jobs: Any, left: int | None) -> Any:
    """Yield how many jobs each statement deleted, until none is left."""
    after = None
    while left is None or left > 0:
        limit = BATCH if left is None else min(BATCH, left)
        pruned = jobs.prune_by(rule, limit=limit, after=after)
        yield pruned.deleted
        left = None if left is None else left - pruned.deleted
        if not pruned.goes_on:
            return
        after = pruned.after


def age(text: str) -> float:
    """Parse 90s, 30m, 12h, 7d, or plain seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if not found:
        raise ValueError(f"{text!r} is not an age such as 12h or 7d")
    return float(found[1]) * UNITS[found[2] or "s"]
