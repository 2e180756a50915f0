"""A shop after a busy morning: jobs in every state that lasts, with real errors behind them."""

from dataclasses import dataclass

from ..waiting import wait_until
from .shop import Shop

AN_HOUR = 3600.0
TASKS = "example_project.shop.tasks"


@dataclass(frozen=True, slots=True)
class Scene:
    """The id of a job for each state."""

    jobs: dict[str, int]


def build(shop: Shop, orders: int = 1) -> Scene:
    """Place orders and wait until their jobs have ended; one job is dead, one waits, one is cancelled."""
    for _ in range(orders):
        order = [(shop.place_order(),)]
    (dead,) = shop.queue.enqueue_many(f"{TASKS}.book_courier", order, max_attempts=2)
    (scheduled,) = shop.queue.enqueue_many(f"{TASKS}.make_invoice", order, delay=AN_HOUR)
    (cancelled,) = shop.queue.enqueue_many(f"{TASKS}.send_receipt", order, queue="emails", delay=AN_HOUR)
    shop.queue.cancel(cancelled)
    wait_until(lambda: _all_ended(shop, scheduled), 20.0, "the orders' jobs did not end")
    succeeded = shop.queue.value("SELECT min(job_id) FROM django_pgqueue_jobstate WHERE status = 'succeeded'")
    return Scene({"scheduled": scheduled, "cancelled": cancelled, "succeeded": succeeded, "dead": dead})


def _all_ended(shop: Shop, scheduled: int) -> bool:
    return shop.queue.value(
        "SELECT bool_and(finished_at IS NOT NULL OR job_id = %s) FROM django_pgqueue_jobstate", [scheduled]
    )
