"""What the demo shows while it runs: one line that changes on a terminal, a line a second elsewhere."""

import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass

from django.db.models import Count

from django_pgqueue.models import Attempt, JobState
from django_pgqueue.states import CANCELLED, DEAD, LOST, READY, RUNNING, SCHEDULED, SUCCEEDED
from example_project.outside.models import Mail, WebhookCall
from example_project.shop.models import Invoice, Order


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counts at one moment, as the databases have them."""

    orders: int
    jobs: Counter[str]
    lost: int
    mails: int
    invoices: int
    webhooks: int

    @classmethod
    def take(cls) -> "Snapshot":
        """Count."""
        jobs = JobState.objects.values_list("status").annotate(Count("job")).order_by()
        return cls(
            orders=Order.objects.count(),
            jobs=Counter(dict(jobs)),
            lost=Attempt.objects.filter(outcome=LOST).count(),
            mails=Mail.objects.count(),
            invoices=Invoice.objects.count(),
            webhooks=WebhookCall.objects.filter(verdict=WebhookCall.Verdict.ACCEPTED).count(),
        )

    def __str__(self) -> str:
        ended = self.jobs[SUCCEEDED] + self.jobs[DEAD] + self.jobs[CANCELLED]
        always = {"orders": self.orders, "jobs": f"{ended}/{self.jobs.total()}"}
        effects = {"mails": self.mails, "invoices": self.invoices, "webhooks": self.webhooks}
        states = {"running": self.jobs[RUNNING], "ready": self.jobs[READY], "waiting": self.jobs[SCHEDULED]}
        troubles = {"dead": self.jobs[DEAD], "lost": self.lost}
        shown = always | {name: count for name, count in (effects | states | troubles).items() if count}
        return "  ".join(f"{name} {count}" for name, count in shown.items())


def work_is_left() -> bool:
    """Tell whether a job can still change by itself."""
    return JobState.objects.filter(status__in=[SCHEDULED, READY, RUNNING]).exists()


class Ticker:
    """Shows snapshots, two a second at most on a terminal and one a second elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._every = 0.5 if self._terminal else 1.0
        self._next = 0.0
        self._began = time.monotonic()

    def tick(self, *, now: bool = False) -> None:
        """Show a snapshot if it is time, or now."""
        if now or time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every
            self._show(f"{time.monotonic() - self._began:5.1f} s  {Snapshot.take()}")

    def interrupt(self, text: str) -> None:
        """Print a line that stays, above the one that changes."""
        sys.stdout.write(f"\r\x1b[K{text}\n" if self._terminal else f"{text}\n")
        sys.stdout.flush()

    def close(self) -> None:
        """Show the last snapshot and leave it standing."""
        self.tick(now=True)
        sys.stdout.write("\n" if self._terminal else "")
        sys.stdout.flush()

    def _show(self, line: str) -> None:
        if self._terminal:
            # A line that wraps could not be written over.
            line = f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}"
        sys.stdout.write(line if self._terminal else f"{line}\n")
        sys.stdout.flush()
