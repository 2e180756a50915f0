"""What happened, from both sides: the tables of queue and shop, and the outside world's journal."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from django_pgqueue.models import Attempt, JobState
from django_pgqueue.states import FAILED, LOST
from example_project.outside.models import CourierCall, Mail, WebhookCall
from example_project.shop.models import Invoice, Order, OrderJob

Kind = OrderJob.Kind
Verdict = WebhookCall.Verdict


@dataclass(frozen=True, slots=True)
class OfKind:
    """The jobs of one kind: how each stands, and how many of its attempts failed and were lost."""

    states: dict[int, JobState]
    order_of: dict[int, str]
    failed: Counter[int]
    lost: Counter[int]

    @classmethod
    def gather(cls, kind: Kind) -> "OfKind":
        """Read the jobs of a kind."""
        order_of = dict(OrderJob.objects.filter(kind=kind).values_list("job_id", "order__reference"))
        attempts = Attempt.objects.filter(job_id__in=order_of)
        return cls(
            states=JobState.objects.in_bulk(order_of),
            order_of=order_of,
            failed=Counter(attempts.filter(outcome=FAILED).values_list("job_id", flat=True)),
            lost=Counter(attempts.filter(outcome=LOST).values_list("job_id", flat=True)),
        )

    def __len__(self) -> int:
        return len(self.order_of)

    @property
    def lost_by_order(self) -> Counter[str]:
        """How many attempts were lost, by order reference."""
        return Counter({self.order_of[job]: count for job, count in self.lost.items()})


@dataclass(frozen=True, slots=True)
class Evidence:
    """All of it, read once."""

    orders: dict[str, Order]
    jobs: dict[Kind, OfKind]
    statuses: Counter[str]
    outcomes: Counter[str]
    mails: list[Mail]
    calls: list[WebhookCall]
    courier_calls: int
    invoices: list[Invoice]
    files: dict[str, Path]

    @classmethod
    def gather(cls) -> "Evidence":
        """Read everything."""
        folder = Path(settings.MEDIA_ROOT)
        return cls(
            orders={order.reference: order for order in Order.objects.select_related("customer")},
            jobs={kind: OfKind.gather(kind) for kind in Kind},
            statuses=Counter(JobState.objects.values_list("status", flat=True)),
            outcomes=Counter(Attempt.objects.values_list("outcome", flat=True)),
            mails=list(Mail.objects.all()),
            calls=list(WebhookCall.objects.all()),
            courier_calls=CourierCall.objects.count(),
            invoices=list(Invoice.objects.select_related("order")),
            files={str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()},
        )

    def calls_with(self, verdict: Verdict) -> Counter[str]:
        """How many calls of each idempotency key got a verdict."""
        return Counter(call.key for call in self.calls if call.verdict == verdict)


def ended_otherwise(jobs: Iterable[OfKind], status: str) -> list[int]:
    """Return the jobs that are not in the status."""
    return sorted(job for of_kind in jobs for job in of_kind.order_of if _status(of_kind, job) != status)


def _status(of_kind: OfKind, job: int) -> str:
    state = of_kind.states.get(job)
    return state.status if state else "gone"
