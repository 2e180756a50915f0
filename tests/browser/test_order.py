"""A customer orders and watches the jobs of the order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .pages import Storefront
    from .shop import Shop

pytestmark = pytest.mark.browser


def test_the_jobs_of_an_order_are_watched_to_their_ends_without_a_reload(
    storefront: Storefront, shop: Shop
) -> None:
    browser = storefront.browser
    with shop.pause():
        reference = storefront.order(currency="USD", courier=True)
        assert storefront.sentence == "0 of 5 jobs have ended."
        assert set(storefront.jobs.values()) == {"Ready"}
        browser.script("window.sameDocument = true")

    browser.see("5 of 5 jobs have ended, 1 of them dead.", "#sentence", timeout=20)
    assert storefront.jobs == {
        "Receipt by e-mail": "Succeeded",
        "Invoice as PDF": "Succeeded",
        "Webhook to the partner": "Succeeded",
        "Total in the customer's currency": "Succeeded",
        "Courier booking": "Dead",
    }
    browser.see("Our booking service is down", ".jobs")
    browser.see("USD today.", ".jobs")
    assert browser.script("return window.sameDocument") is True
    browser.find("a", "Open the invoice (PDF)")
    assert shop.get(f"/orders/{reference}/invoice.pdf").startswith(b"%PDF")
