"""The shop's jobs.

Each may run more than once (a worker can die after the effect and before the outcome is stored), so
each is safe to repeat: the invoice overwrites itself, the webhook carries a key that stays the same
for all attempts of a job.  Only an e-mail cannot be taken back: a lost attempt may send it twice.
"""

import os
import signal
from typing import Any

from django_pgqueue import Backoff, task

from . import invoices, partners, receipts
from .models import Order

WEBHOOK_ATTEMPTS = 20
COURIER_ATTEMPTS = 4
ENGRAVING_ATTEMPTS = 3
QUICK = Backoff(base=0.25, cap=2.0)


@task(queue_name="emails")
def send_receipt(order_id: int) -> None:
    """Send the receipt to the customer."""
    receipts.send(_order(order_id))


@task
def make_invoice(order_id: int) -> str:
    """Render the invoice, store file and row, and return the file's name."""
    return str(invoices.make(_order(order_id)).file)


@task(queue_name="webhooks", takes_context=True, max_attempts=WEBHOOK_ATTEMPTS, backoff=QUICK)
def announce_order(context: Any, order_id: int) -> str:
    """Tell the partner; an answer of 500 raises, and the queue tries again."""
    return partners.announce(_order(order_id), idempotency_key=f"order-placed-{context.job_id}")


@task
async def convert_total(order_id: int) -> str:
    """Ask the bank what the total is in the customer's currency; a coroutine from end to end."""
    order = await Order.objects.aget(pk=order_id)
    order.total_converted = order.total * await partners.euro_rate(order.currency)
    await order.asave(update_fields=["total_converted"])
    return f"{order.total_converted:.2f} {order.currency}"


@task(max_attempts=COURIER_ATTEMPTS, backoff=QUICK)
def book_courier(order_id: int) -> None:
    """Book a courier whose service is always down: fails at each attempt and ends dead."""
    partners.book_courier(_order(order_id))


@task(max_attempts=ENGRAVING_ATTEMPTS, backoff=QUICK)
def engrave(order_id: int) -> None:
    """Stand in for a native library with a memory fault: its process dies at once, mid-job."""
    os.kill(os.getpid(), signal.SIGKILL)


def _order(order_id: int) -> Order:
    return Order.objects.select_related("customer").get(pk=order_id)
