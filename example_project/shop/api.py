"""Ordering by JSON: what a request must look like, said in the answer when it does not.

{"email": "known@example.com", "lines": [{"sku": "amethyst", "quantity": 2}],
 "courier": false, "engraving": false}
"""

import json
from typing import Any, TypeGuard

from .checkout import Basket
from .forms import LARGEST_ORDER
from .models import Customer, Product


class BadRequest(Exception):
    """The request cannot be understood; the message says what is wrong with it."""


def read_basket(body: bytes) -> Basket:
    """Return the basket a request asks for.  Raises BadRequest."""
    try:
        asked = json.loads(body)
    except ValueError as error:
        raise BadRequest(f"The body is not JSON: {error}.") from error
    if not isinstance(asked, dict):
        raise BadRequest(f"The body must be an object, not {type(asked).__name__}.")
    return Basket(
        _customer(asked.get("email")),
        _lines(asked.get("lines")),
        courier=_flag(asked, "courier"),
        engraving=_flag(asked, "engraving"),
    )


def _customer(email: Any) -> Customer:
    customer = Customer.objects.filter(email=email).first() if _is_word(email) else None
    if customer is None:
        raise BadRequest(f"'email' must be the address of a customer, not {email!r}.")
    return customer


def _lines(lines: Any) -> dict[Product, int]:
    if not isinstance(lines, list) or not lines:
        raise BadRequest('\'lines\' must be a list with at least one {"sku": ..., "quantity": ...}.')
    quantities: dict[str, int] = {}
    for line in lines:
        sku, quantity = (line.get("sku"), line.get("quantity")) if isinstance(line, dict) else (None, None)
        if not _is_word(sku) or type(quantity) is not int or not 0 < quantity <= LARGEST_ORDER:
            raise BadRequest(
                f"A line needs a 'sku' and a 'quantity' from 1 to {LARGEST_ORDER}, not {line!r}."
            )
        quantities[sku] = quantities.get(sku, 0) + quantity
    if max(quantities.values()) > LARGEST_ORDER:
        raise BadRequest(f"The lines of one product may add up to {LARGEST_ORDER}, not more.")
    products = {
        product.sku: product for product in Product.objects.filter(sku__in=quantities).defer("picture")
    }
    if unknown := quantities.keys() - products.keys():
        raise BadRequest(f"There is no product {min(unknown)!r}.")
    return {products[sku]: quantity for sku, quantity in quantities.items()}


def _is_word(value: Any) -> TypeGuard[str]:
    """Tell whether a value is text that the database can look for: no NUL, no half of a surrogate pair."""
    return isinstance(value, str) and value.isascii() and value.isprintable()


def _flag(asked: dict[str, Any], name: str) -> bool:
    value = asked.get(name, False)
    if not isinstance(value, bool):
        raise BadRequest(f"{name!r} must be true or false, not {value!r}.")
    return value
