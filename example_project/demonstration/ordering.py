"""The customers: who orders what, and the HTTP requests by which they do."""

import json
import random
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

from example_project.shop.catalogue import STOCK
from example_project.shop.models import Customer, Product

from .faults import DemoFailed

SEED = 20
CLIENTS = 6
COURIERS = 3
ENGRAVINGS = 2
EXCESSIVE = 10
"""Orders of more than there is: each must be refused and leave nothing."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The body of a request; ``fulfilled`` says whether the shop should accept it."""

    email: str
    lines: list[dict[str, Any]]
    courier: bool = False
    engraving: bool = False
    fulfilled: bool = True


def wishes(orders: int) -> list[Wish]:
    """Return that many orders that can be fulfilled and a few that cannot, the same each time."""
    dice = random.Random(SEED)
    emails = list(Customer.objects.values_list("email", flat=True))
    skus = list(Product.objects.values_list("sku", flat=True))
    troubled = dice.sample(range(orders), COURIERS + ENGRAVINGS)
    plan = [
        Wish(
            dice.choice(emails),
            [
                {"sku": sku, "quantity": dice.choice([1, 1, 1, 2, 3])}
                for sku in dice.sample(skus, dice.randint(1, 4))
            ],
            courier=number in troubled[:COURIERS],
            engraving=number in troubled[COURIERS:],
        )
        for number in range(orders)
    ]
    for _ in range(EXCESSIVE):
        too_much = {"sku": dice.choice(skus), "quantity": STOCK + 1}
        plan.insert(dice.randint(0, len(plan)), Wish(dice.choice(emails), [too_much], fulfilled=False))
    return plan


def place(plan: list[Wish], address: str, on_answer: Callable[[], None]) -> Iterator[str]:
    """Send the plan by several clients at once and yield the reference of each order placed.

    ``on_answer`` is called between answers.  Raises DemoFailed for an answer that is not as planned.
    """
    clients = ThreadPoolExecutor(CLIENTS, thread_name_prefix="client")
    try:
        answers = [clients.submit(_post, f"{address}/api/orders/", wish) for wish in plan]
        for wish, future in zip(plan, answers, strict=True):
            status, answer = future.result()
            expected = HTTPStatus.CREATED if wish.fulfilled else HTTPStatus.CONFLICT
            if status != expected:
                raise DemoFailed(f"The shop answered {status} to {wish}, not {expected}: {answer}")
            on_answer()
            if wish.fulfilled:
                yield answer["reference"]
    finally:
        clients.shutdown(cancel_futures=True)


def _post(url: str, wish: Wish) -> tuple[int, dict[str, Any]]:
    body = {name: value for name, value in asdict(wish).items() if name != "fulfilled"}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refusal:
        text = refusal.read().decode(errors="replace")
        return refusal.code, json.loads(text) if text.startswith("{") else {"error": text[:500]}
