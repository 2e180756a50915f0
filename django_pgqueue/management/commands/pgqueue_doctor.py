"""``manage.py pgqueue_doctor``: what is amiss with the queue, and what mends it."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ...doctor import examine
from ...doctor.findings import BAD, WARN
from ..aliases import our_backend
from ..output import dumped

SIGNS = {BAD: "BAD ", WARN: "WARN"}


class Command(BaseCommand):
    """Look at everything.  Exit code 0: nothing bad; 1: something that stops or endangers jobs."""

    help = (
        "Look at the server, the tables, the settings and the workers; say what is amiss and what mends it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--backend", default="default", help="alias in TASKS (default: %(default)s)")
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the findings."""
        found = examine(our_backend(options["backend"]))
        if options["json"]:
            self.stdout.write(dumped({"findings": [asdict(finding) for finding in found]}))
        for finding in () if options["json"] else found:
            self.stdout.write(f"{SIGNS.get(finding.level, 'note')}  {finding.said}  [{finding.check}]")
            self.stdout.write(f"      {finding.mend}" if finding.mend else "")
        if not found and not options["json"]:
            self.stdout.write(self.style.SUCCESS("Nothing is amiss."))
        if any(finding.level == BAD for finding in found):
            raise SystemExit(1)
