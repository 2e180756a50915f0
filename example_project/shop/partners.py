"""The shop's side of its talks with the outside world: webhook, courier, bank."""

import asyncio
import json
import urllib.error
import urllib.request
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from .models import Order

PATIENCE = 20.0
"""Seconds to wait for an answer."""


class PartnerRefused(Exception):
    """The other side answered, and the answer is no; the message has its status and its words."""


def announce(order: Order, *, idempotency_key: str) -> str:
    """Tell the partner of the order and return its verdict.  Raises PartnerRefused, OSError."""
    body = {"event": "order.placed", "order": order.reference, "total": str(order.total), "currency": "EUR"}
    return str(_post("/webhooks/orders", body, {"Idempotency-Key": idempotency_key})["verdict"])


def book_courier(order: Order) -> None:
    """Ask for a courier.  Raises PartnerRefused, OSError."""
    _post("/courier", {"order": order.reference}, {})


async def euro_rate(currency: str) -> Decimal:
    """Return what one euro is worth in the currency.  Raises PartnerRefused, OSError, TimeoutError."""
    status, answer = await asyncio.wait_for(_get(f"/rates/EUR/{currency}"), PATIENCE)
    if status != HTTPStatus.OK:
        raise PartnerRefused(f"the bank answered {status}: {answer}")
    return Decimal(answer["per_euro"])


def _post(path: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    request = urllib.request.Request(
        settings.OUTSIDE_URL + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", **headers},
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            answer: dict[str, Any] = json.load(response)
            return answer
    except urllib.error.HTTPError as refusal:
        raise PartnerRefused(f"{path} answered {refusal.code}: {refusal.read().decode()}") from refusal


async def _get(path: str) -> tuple[int, dict[str, Any]]:
    """Fetch JSON with nothing but asyncio: one request, one connection, HTTP/1.0."""
    address = urlsplit(settings.OUTSIDE_URL)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {address.netloc}\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return int(head.split()[1]), json.loads(body)
