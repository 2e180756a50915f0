"""Placing an order: rows, jobs and stock, in one transaction that the caller opens."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import IntegrityError
from django.db.models import F

from . import tasks
from .models import Customer, Order, OrderJob, OrderLine, Product

EURO = "EUR"
Kind = OrderJob.Kind


class OutOfStock(Exception):
    """There is less in stock than was ordered; the message names the product."""


@dataclass(frozen=True, slots=True)
class Basket:
    """What somebody wants.  ``courier`` and ``engraving`` ask for the two jobs that cannot succeed."""

    customer: Customer
    lines: dict[Product, int]
    courier: bool = False
    engraving: bool = False

    @property
    def total(self) -> Decimal:
        """What it costs, in euros."""
        return sum((product.price * quantity for product, quantity in self.lines.items()), Decimal())


def place(basket: Basket) -> Order:
    """Store the order and enqueue its jobs; must run inside ``transaction.atomic()``.

    Raises OutOfStock; the caller's rollback then takes back the order and its jobs, all of them.
    """
    order = Order.objects.create(
        customer=basket.customer, currency=basket.customer.currency, total=basket.total
    )
    OrderLine.objects.bulk_create(
        OrderLine(order=order, product=product, quantity=quantity, unit_price=product.price)
        for product, quantity in basket.lines.items()
    )
    for kind, task in _jobs(basket):
        enqueue(order, kind, task)
    _take_from_stock(basket)
    return order


def enqueue(order: Order, kind: Kind, task: Any) -> None:
    """Enqueue a task for the order and write down which job it is, both in the caller's transaction."""
    result = task.enqueue(order.pk)
    OrderJob.objects.create(order=order, kind=kind, job_id=int(result.id))


def _jobs(basket: Basket) -> Iterator[tuple[Kind, Any]]:
    yield Kind.RECEIPT, tasks.send_receipt
    yield Kind.INVOICE, tasks.make_invoice
    if basket.customer.currency != EURO:
        yield Kind.CONVERSION, tasks.convert_total
    if basket.courier:
        yield Kind.COURIER, tasks.book_courier
    if basket.engraving:
        yield Kind.ENGRAVING, tasks.engrave


def _take_from_stock(basket: Basket) -> None:
    # Rows are locked in the order of their keys, whoever orders what: two baskets cannot deadlock.
    for product in sorted(basket.lines, key=lambda product: product.pk):
        try:
            Product.objects.filter(pk=product.pk).update(stock=F("stock") - basket.lines[product])
        except IntegrityError as error:
            raise OutOfStock(f"There is not enough of {product} in stock.") from error
