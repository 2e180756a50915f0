"""What must be true after a demo, compared with the evidence; every line of the summary is one of these.

Nothing here knows how the run went: which attempts were lost and which webhooks were refused is
chance, and the checks hold the two sides' accounts of it against each other.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from django_pgqueue.states import DEAD, LOST, SUCCEEDED
from example_project.outside.rates import reference_rates
from example_project.shop import tasks

from .disaster import Victim, interrupted_attempts
from .evidence import Evidence, Kind, Verdict, ended_otherwise
from .ordering import Wish

HOPELESS = (Kind.COURIER, Kind.ENGRAVING)
SMALLEST_PDF = 5_000


@dataclass(frozen=True, slots=True)
class Check:
    """One fact: what it is about, what must be, what is.  ``passed`` is for what "equal" cannot say."""

    about: str
    expected: str
    found: str
    passed: bool


def equal(about: str, expected: object, found: object) -> Check:
    """Check that two values are equal."""
    return Check(about, str(expected), str(found), expected == found)


def same_names(about: str, expected: Iterable[str], found: Iterable[str]) -> Check:
    """Check that two collections hold the same names; of a difference the first few are shown."""
    expected, found = Counter(list(expected)), Counter(list(found))
    differences = [f"missing {name}" for name in expected - found] + [
        f"unasked {name}" for name in found - expected
    ]
    shown = "; ".join([str(found.total()), *differences[:3]])
    return Check(about, str(expected.total()), shown, not differences)


def none_of(about: str, culprits: list[str] | list[int]) -> Check:
    """Check that nothing is at fault; the first culprits are named."""
    shown = ", ".join(map(str, culprits[:5])) + (
        f" and {len(culprits) - 5} more" if len(culprits) > 5 else ""
    )
    return Check(about, "none", shown or "none", not culprits)


def within(about: str, least: int, found: int, most: int) -> Check:
    """Check that a number lies between two others."""
    return Check(
        about, str(least) if least == most else f"{least} to {most}", str(found), least <= found <= most
    )


def checks(plan: list[Wish], references: list[str], victim: Victim, seen: Evidence) -> Iterator[Check]:
    """Yield every check, in the order of the summary."""
    yield from _orders(plan, references, seen)
    yield from _jobs(seen)
    yield from _mails(seen)
    yield from _invoices(seen)
    yield from _webhooks(seen)
    yield from _conversions(seen)
    yield from _hopeless(seen)
    yield from _disaster(victim)


def _orders(plan: list[Wish], references: list[str], seen: Evidence) -> Iterator[Check]:
    fulfilled = [wish for wish in plan if wish.fulfilled]
    yield equal("orders placed over HTTP", len(fulfilled), len(references))
    yield same_names("orders in the database (refused ones were rolled back)", references, seen.orders)
    jobs = len(fulfilled) * 3 + sum(order.currency != "EUR" for order in seen.orders.values())
    jobs += sum(wish.courier + wish.engraving for wish in fulfilled)
    yield equal("jobs enqueued (none by a refused order)", jobs, seen.statuses.total())


def _jobs(seen: Evidence) -> Iterator[Check]:
    hopeless = sum(len(seen.jobs[kind]) for kind in HOPELESS)
    yield equal("jobs succeeded", seen.statuses.total() - hopeless, seen.statuses[SUCCEEDED])
    yield equal("jobs dead", hopeless, seen.statuses[DEAD])
    hopeful = [jobs for kind, jobs in seen.jobs.items() if kind not in HOPELESS]
    yield none_of("jobs that should have succeeded and did not", ended_otherwise(hopeful, SUCCEEDED))


def _mails(seen: Evidence) -> Iterator[Check]:
    receipts = seen.jobs[Kind.RECEIPT]
    arrived = dict.fromkeys(seen.orders, 0)
    strays = []
    for mail in seen.mails:
        order = seen.orders.get(mail.order_reference)
        if order is None or order.customer.email != mail.recipient:
            strays.append(str(mail))
        else:
            arrived[order.reference] += 1
    lost = receipts.lost_by_order
    yield within("e-mails that arrived", len(seen.orders), len(seen.mails), len(seen.orders) + lost.total())
    yield none_of("orders without an e-mail", [order for order, count in arrived.items() if count == 0])
    repeated = [order for order, count in arrived.items() if count > 1 + lost[order]]
    yield none_of("e-mails repeated without a lost attempt", repeated)
    yield none_of("e-mails to somebody else", strays)


def _invoices(seen: Evidence) -> Iterator[Check]:
    orders = {f"invoices/{reference}.pdf" for reference in seen.orders}
    yield equal("invoices in the database, one for each order", len(orders), len(seen.invoices))
    yield same_names("invoices on disk, under the right names", orders, seen.files)
    broken = [name for name, path in seen.files.items() if not _is_pdf(path.read_bytes())]
    yield none_of("invoices that are no whole PDF", broken)


def _is_pdf(content: bytes) -> bool:
    return (
        content.startswith(b"%PDF-") and content.rstrip().endswith(b"%%EOF") and len(content) >= SMALLEST_PDF
    )


def _webhooks(seen: Evidence) -> Iterator[Check]:
    webhooks = seen.jobs[Kind.WEBHOOK]
    accepted, refused = seen.calls_with(Verdict.ACCEPTED), seen.calls_with(Verdict.REFUSED)
    keys = [f"order-placed-{job}" for job in webhooks.order_of]
    yield same_names("webhooks accepted by the partner, each key exactly once", keys, accepted.elements())
    # A call whose attempt was lost is known to the partner only.
    failed, lost = webhooks.failed.total(), webhooks.lost.total()
    yield within("webhooks refused with 500, each then retried", failed, refused.total(), failed + lost)
    yield within("webhooks repeated after acceptance", 0, seen.calls_with(Verdict.REPLAYED).total(), lost)


def _conversions(seen: Evidence) -> Iterator[Check]:
    rates = reference_rates().per_euro
    wrong = [
        order.reference
        for order in seen.orders.values()
        if order.total_converted
        != (None if order.currency == "EUR" else round(order.total * Decimal(rates[order.currency]), 2))
    ]
    yield none_of("totals converted wrongly or not at all (coroutine)", wrong)


def _hopeless(seen: Evidence) -> Iterator[Check]:
    for kind, allowed in ((Kind.COURIER, tasks.COURIER_ATTEMPTS), (Kind.ENGRAVING, tasks.ENGRAVING_ATTEMPTS)):
        jobs = seen.jobs[kind]
        spent = [
            job for job, state in jobs.states.items() if (state.status, state.attempts) == (DEAD, allowed)
        ]
        yield equal(f"{kind.label} jobs dead after exactly {allowed} attempts", len(jobs), len(spent))
    courier, engraving = seen.jobs[Kind.COURIER], seen.jobs[Kind.ENGRAVING]
    failed, lost = courier.failed.total(), courier.lost.total()
    yield within("bookings the courier turned down", failed, seen.courier_calls, failed + lost)
    yield equal(
        "workers killed by engraving", len(engraving) * tasks.ENGRAVING_ATTEMPTS, engraving.lost.total()
    )


def _disaster(victim: Victim) -> Iterator[Check]:
    begun = interrupted_attempts(victim)
    held = f"{len(victim.jobs)}: {len(begun)} begun, {len(victim.jobs) - len(begun)} only claimed"
    yield Check("jobs in the hands of the process killed with -9", "1 or more", held, bool(victim.jobs))
    otherwise = [attempt.job_id for attempt in begun if attempt.outcome != LOST]
    yield none_of("of these, jobs begun and not recorded as lost", otherwise)


def endings(statuses: dict[str, int]) -> Iterator[Check]:
    """Check how the services ended after SIGTERM; nothing to check while they go on."""
    if statuses:
        yield equal("exit status of the worker after SIGTERM", 0, statuses["workers"])
