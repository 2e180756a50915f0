"""The overview, queues and workers as people use them: live, by keyboard, on a phone, in dark colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..waiting import wait_until
from .test_keyboard import tab_to
from .test_screens import overflow, too_faint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .chromium import Browser
    from .pages import Admin
    from .scene import Scene
    from .shop import Shop

pytestmark = pytest.mark.browser
APP = "/admin/django_pgqueue/"
OVERVIEW, QUEUES, WORKERS = f"{APP}overview/", f"{APP}queuepause/", f"{APP}worker/"
PAGES = (OVERVIEW, f"{OVERVIEW}?window=24h", QUEUES, WORKERS, APP)
HIDE = "Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});"
TILES = """
return Object.fromEntries([...document.querySelectorAll(".pgq-tile")].map((tile) =>
    [tile.querySelector(".pgq-label").innerText, tile.querySelector("strong").innerText]))
"""


@pytest.fixture(autouse=True)
def nothing_paused(shop: Shop) -> Iterator[None]:
    """Pauses outlive the jobs, which alone are cleared between two tests."""
    yield
    shop.queue.session.execute("DELETE FROM django_pgqueue_queuepause")


def tiles(browser: Browser) -> dict[str, str]:
    return browser.script(TILES)


def seen(shop: Shop) -> None:
    """Wait until the worker has counted every attempt that ended."""
    missing = """
        SELECT count(*) - (SELECT coalesce(sum(succeeded + failed + lost + snoozed + released + cancelled), 0)
                           FROM django_pgqueue_rollup WHERE span = 60)
        FROM django_pgqueue_attempt"""
    wait_until(lambda: shop.queue.value(missing) <= 0, 40.0, "attempts were not counted")


def test_somebody_new_finds_the_overview_from_the_front_page(admin: Admin, scene: Scene, shop: Shop) -> None:
    browser = admin.browser
    seen(shop)
    admin.enter(to="/admin/")
    browser.follow("#content a", "BACKGROUND JOBS")
    assert tiles(browser)["Dead"] == "1"
    browser.follow(".pgq-tile-dead a")
    browser.see("book_courier")


def test_figures_come_anew_without_a_reload_until_somebody_stops_them(admin: Admin, shop: Shop) -> None:
    browser = admin.browser
    admin.enter(to=OVERVIEW)
    browser.script("window.sameDocument = true")
    assert tiles(browser)["Scheduled"] == "0"
    shop.queue.enqueue_many("example_project.shop.tasks.make_invoice", [(1,)] * 3, delay=3600.0)
    wait_until(lambda: tiles(browser)["Scheduled"] == "3", 15.0, "no new figures")
    browser.click("button", "Pause updates")
    shop.queue.enqueue_many("example_project.shop.tasks.make_invoice", [(1,)] * 2, delay=3600.0)
    before = browser.text("#pgq-now")
    assert (
        browser.script("return document.querySelector('[data-pgq-toggle]').getAttribute('aria-pressed')")
        == "true"
    )
    browser.click("button", "Pause updates")
    wait_until(lambda: tiles(browser)["Scheduled"] == "5", 15.0, "no new figures after going on")
    assert browser.text("#pgq-now") != before
    assert browser.script("return window.sameDocument") is True


def test_nothing_is_asked_while_nobody_looks(admin: Admin) -> None:
    browser = admin.browser
    admin.enter(to=OVERVIEW)
    count = "return performance.getEntriesByType('resource').filter(e => e.name.includes('/live/')).length"
    browser.script(HIDE + "document.dispatchEvent(new Event('visibilitychange'));", True)
    asked = browser.script(count)
    # Time that must pass without a request can only be waited for: longer than one period.
    moment = browser.script("return performance.now()")
    wait_until(lambda: browser.script("return performance.now()") > moment + 7000, 20.0, "time stood still")
    assert browser.script(count) == asked
    browser.script(HIDE + "document.dispatchEvent(new Event('visibilitychange'));", False)
    wait_until(lambda: browser.script(count) > asked, 5.0, "it did not look at once when it was seen again")


def test_a_queue_is_paused_with_a_reason_and_resumed_by_keyboard(admin: Admin, shop: Shop) -> None:
    browser = admin.browser
    admin.enter(to=QUEUES)
    card = "section[aria-labelledby]:has(input[value=emails])"
    browser.find(f"{card} input[name=reason]").send_keys("The provider is down")
    with browser.new_page():
        browser.click(f"{card} button[value=pause]")
    browser.see("“emails”: Paused.", ".messagelist")
    browser.see("Paused by boss", card)
    browser.see("The provider is down", card)

    browser.script(f"document.querySelector('{card} button').focus()")
    with browser.new_page():
        browser.press("ENTER")
    browser.see("“emails”: Resumed.", ".messagelist")
    assert shop.queue.value("SELECT count(*) FROM django_pgqueue_queuepause") == 0


def test_what_somebody_types_is_not_taken_away_by_new_figures(admin: Admin) -> None:
    browser = admin.browser
    admin.enter(to=QUEUES)
    field = browser.all("input[name=reason]")[0]
    field.send_keys("half a sen")
    moment = browser.script("return performance.now()")
    wait_until(lambda: browser.script("return performance.now()") > moment + 6500, 20.0, "time stood still")
    assert browser.script("return document.activeElement.value") == "half a sen"


def test_the_worker_that_runs_is_shown_with_its_processes(admin: Admin, shop: Shop) -> None:
    browser = admin.browser
    admin.enter(to=WORKERS)
    browser.see("alive", ".pgq-worker-card")
    assert f"process {shop.worker.pid}" in browser.text(".pgq-worker-card h2")
    assert f"process {shop.worker.child}" in browser.text(".pgq-worker-card")


def test_the_pages_fit_on_a_phone(admin: Admin, scene: Scene, shop: Shop) -> None:
    browser = admin.browser
    seen(shop)
    browser.be_a_phone()
    admin.enter()
    assert {path: overflow(browser, path) for path in PAGES} == {path: [] for path in PAGES}
    browser.open(QUEUES)
    for button in browser.all(".pgq-act button"):
        assert button.rect["x"] + button.rect["width"] <= 390
        assert button.rect["height"] >= 24


def test_every_text_stands_out_from_its_background(admin: Admin, scene: Scene, shop: Shop) -> None:
    browser = admin.browser
    seen(shop)
    admin.enter()
    faint = {}
    for path in PAGES:
        browser.open(path)
        for dark in (False, True):
            browser.be_dark(dark)
            faint[path, dark] = too_faint(browser)
    assert faint == {key: [] for key in faint}


def test_the_overview_is_walked_through_with_the_tabulator(admin: Admin, scene: Scene) -> None:
    browser = admin.browser
    admin.enter(to=OVERVIEW)
    browser.click("#toggle-nav-sidebar")
    tab_to(browser, "last 24 hours")
    with browser.new_page():
        browser.press("ENTER")
    assert browser.path == f"{OVERVIEW}?window=24h"


def test_pictures_speak_to_those_who_cannot_see_them(admin: Admin, scene: Scene, shop: Shop) -> None:
    browser = admin.browser
    seen(shop)
    admin.enter(to=OVERVIEW)
    labels = browser.script(
        "return [...document.querySelectorAll('svg[role=img]')].map(svg => svg.getAttribute('aria-label'))"
    )
    assert len(labels) >= 4
    assert all(labels)
    assert any("succeeded" in label for label in labels)
