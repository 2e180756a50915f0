"""``manage.py pgqueue_cancel``: jobs that wait are cancelled, jobs that run are asked to stop."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...states import READY, RUNNING, SCHEDULED
from ..repair_command import RepairCommand


class Command(RepairCommand):
    """Cancel jobs by number or by filter.  Exit code 0."""

    help = "Cancel scheduled and ready jobs, and ask running ones to stop."
    verb = "cancelled"
    statuses = (SCHEDULED, READY, RUNNING)

    def act(self, job_ids: Sequence[int], jobs: Any) -> tuple[Counter[str], Sequence[int]]:
        """Cancel them."""
        report = jobs.cancel(job_ids)
        counts = Counter(
            cancelled=len(report.cancelled), asked_to_stop=len(report.requested), skipped=len(report.skipped)
        )
        return +counts, ()
