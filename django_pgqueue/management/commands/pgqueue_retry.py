"""``manage.py pgqueue_retry``: dead and cancelled jobs become ready again."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...states import CANCELLED, DEAD
from ..repair_command import RepairCommand


class Command(RepairCommand):
    """Retry jobs by number or by filter.  Exit code 0; 1 when every one of them was in conflict."""

    help = "Retry dead and cancelled jobs: they become ready with a fresh budget; their history stays."
    verb = "retried"
    statuses = (DEAD, CANCELLED)

    def act(self, job_ids: Sequence[int], jobs: Any) -> tuple[Counter[str], Sequence[int]]:
        """Retry them."""
        report = jobs.retry(job_ids)
        counts = Counter(
            retried=len(report.retried), skipped=len(report.skipped), conflicts=len(report.conflicts)
        )
        return +counts, report.retried
