"""The pages without a mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .places import page_of

if TYPE_CHECKING:
    from .chromium import Browser
    from .pages import Admin
    from .shop import Shop

pytestmark = pytest.mark.browser
FEW = 70
"""Presses of Tab: the head and the side of Django's admin come first."""

LOOK = """
const style = getComputedStyle(arguments[0]);
return [style.backgroundColor, style.outlineStyle, style.outlineWidth, style.boxShadow].join(" ");
"""


def test_a_dead_job_is_retried_with_tab_and_enter(admin: Admin, shop: Shop) -> None:
    browser = admin.browser
    with shop.full_disk():
        (job_id,) = shop.queue.enqueue_many(
            "example_project.shop.tasks.make_invoice", [(shop.some_order,)], max_attempts=1
        )
        shop.queue.wait(job_id, "dead")
    admin.enter(to=page_of(job_id))
    button = browser.find(".pgq-buttons button", "Retry")
    unfocused = browser.script(LOOK, button)

    tab_to(browser, "Retry")
    assert browser.script(LOOK, button) != unfocused, "nothing shows where the focus is"
    with browser.new_page():
        browser.press("ENTER")
    assert admin.told == "1 job retried."
    browser.see_after_reloads("Succeeded", ".pgq-head .pgq-pill")


def test_a_traceback_is_unfolded_and_scrolled_with_the_keyboard(admin: Admin, shop: Shop) -> None:
    browser = admin.browser
    with shop.full_disk():
        (job_id,) = shop.queue.enqueue_many(
            "example_project.shop.tasks.make_invoice", [(shop.some_order,)], max_attempts=2
        )
        shop.queue.wait(job_id, "dead")
    admin.enter(to=page_of(job_id))
    assert len(browser.all(".pgq-attempts .pgq-text")) == 1
    tab_to(browser, "Traceback of attempt 1")
    browser.press("ENTER")
    assert len(browser.all(".pgq-attempts .pgq-text")) == 2
    browser.press("TAB")
    assert browser.focused("className") == "pgq-text"


def tab_to(browser: Browser, label: str) -> None:
    """Press Tab until an element with this label has the focus."""
    reached = []
    for _ in range(FEW):
        browser.press("TAB")
        if (reached := [*reached, browser.focused("innerText").strip()])[-1] == label:
            return
    raise AssertionError(f"{FEW} presses of Tab do not reach {label!r}, only {reached}")
