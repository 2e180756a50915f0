"""From the front page to jobs that succeed: why many died, those retried and no others; a stop."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devtools.environments import ROOT
from django_pgqueue import sql

from .places import LIST, page_of
from .test_pictures import LARGEST, be_anywhere
from .test_screens import overflow, too_faint

if TYPE_CHECKING:
    from .pages import Admin
    from .scene import Scene
    from .shop import Shop

pytestmark = pytest.mark.browser
FRONT = "/admin/"
CAUSES = "/admin/django_pgqueue/deadjob/"
INVOICE = "example_project.shop.tasks.make_invoice"
CONVERSION = "example_project.shop.tasks.convert_total"
NO_SUCH_ORDER = 10**9
TWO_MINUTES = 120.0


def die(shop: Shop, invoices: int, conversions: int) -> tuple[list[int], list[int]]:
    """Let jobs die of two causes; return their ids."""
    with shop.full_disk():
        first = shop.queue.enqueue_many(INVOICE, [(shop.some_order,)] * invoices, max_attempts=1)
        second = shop.queue.enqueue_many(CONVERSION, [(NO_SUCH_ORDER,)] * conversions, max_attempts=1)
        shop.queue.wait([*first, *second], "dead", timeout=60)
    return first, second


def test_who_has_never_seen_the_app_finds_the_cause_retries_those_and_sees_them_succeed(
    admin: Admin, shop: Shop
) -> None:
    invoices, conversions = die(shop, 300, 40)
    browser = admin.browser
    began = time.monotonic()
    admin.enter(to=FRONT)
    browser.follow("#content a", "Dead jobs by cause")
    browser.see("340 dead jobs of 2 causes")
    browser.see("FileExistsError")  # why
    browser.see("shop/invoices.py")  # where
    browser.follow(".pgq-shortcuts a", "Last 24 hours")
    browser.follow(".pgq-cause .pgq-buttons button", "Retry 300…")
    browser.see("300 dead or cancelled jobs will become ready")
    admin.confirm()
    browser.see("300 jobs retried.", ".messagelist")
    browser.see("Succeeded", "#pgq-bulk-outcomes", timeout=90)
    browser.see("300", "#pgq-bulk-outcomes")
    assert time.monotonic() - began < TWO_MINUTES
    shop.queue.wait(invoices, "succeeded", timeout=90)
    assert {shop.queue.status(job_id) for job_id in conversions} == {"dead"}


def test_a_slow_operation_is_watched_and_stopped(admin: Admin, shop: Shop) -> None:
    _, conversions = die(shop, 0, 30)
    browser = admin.browser
    admin.enter(to=CAUSES)
    browser.follow(".pgq-cause .pgq-buttons button", "Retry 30…")
    browser.find("#pgq-per-minute").send_keys("10")
    admin.confirm()
    browser.see("Running", "#pgq-bulk-state")
    browser.follow(".pgq-bulk button", "Stop")
    browser.see("Stopped", "#pgq-bulk-state")
    browser.see("Stopped by boss")
    left = [job_id for job_id in conversions if shop.queue.status(job_id) == "dead"]
    assert len(left) >= 25


def test_a_job_is_run_again_with_other_arguments(admin: Admin, shop: Shop) -> None:
    (job_id,) = shop.queue.enqueue_many(INVOICE, [(NO_SUCH_ORDER,)], max_attempts=1)
    shop.queue.wait(job_id, "dead")
    browser = admin.browser
    admin.enter(to=page_of(job_id))
    browser.follow(".pgq-buttons a", "Run with other arguments…")
    field = browser.find("#id_args")
    field.clear()
    field.send_keys(f"[{shop.some_order}]")
    browser.follow(".pgq-decide input[type=submit]")
    browser.see(f"Enqueued as a new job, made from job {job_id}.")
    browser.see_after_reloads("Succeeded", ".pgq-head .pgq-pill")
    assert shop.queue.status(job_id) == "dead"


@pytest.fixture
def pages(admin: Admin, scene: Scene, shop: Shop) -> dict[str, str]:
    """The addresses of the pages of causes, of operations and of forms."""
    admin.enter(to=f"{LIST}?status=dead")
    admin.browser.open(CAUSES)
    admin.browser.follow(".pgq-cause .pgq-buttons button", "Discard 1…")
    admin.confirm()
    operation = admin.browser.path
    rerun = page_of(scene.jobs["succeeded"]).replace("/change/", "/rerun/")
    jobs = {name: page_of(scene.jobs[name]) for name in ("scheduled", "cancelled", "succeeded")}
    with_dead = {"causes": CAUSES, "list": LIST, "operation": operation, "rerun": rerun}
    die(shop, 1, 0)
    return {**with_dead, "operations": "/admin/django_pgqueue/bulkoperation/", **jobs}


def test_a_phone_scrolls_them_in_one_direction_and_no_text_is_faint(
    admin: Admin, pages: dict[str, str]
) -> None:
    browser = admin.browser
    browser.be_a_phone()
    ours = {name: path for name, path in pages.items() if name != "operations"}  # Django's own list
    assert {name: overflow(browser, path) for name, path in ours.items()} == {name: [] for name in ours}
    faint = {}
    for name in ("causes", "operation"):
        browser.open(pages[name])
        for dark in (False, True):
            browser.be_dark(dark)
            faint[name, dark] = too_faint(browser)
    assert faint == {key: [] for key in faint}


def test_axe_core_finds_no_grave_fault(admin: Admin, pages: dict[str, str]) -> None:
    from .axe import grave_faults  # noqa: PLC0415 - as everything that a plain run does not need

    faults = {}
    for name, path in pages.items():
        admin.browser.open(path)
        faults[name] = grave_faults(admin.browser)
    assert faults == {name: [] for name in pages}


def test_the_way_from_causes_to_a_preview_needs_no_mouse(admin: Admin, shop: Shop) -> None:
    from .test_keyboard import tab_to  # noqa: PLC0415 - as everything that a plain run does not need

    die(shop, 0, 2)
    browser = admin.browser
    admin.enter(to=CAUSES)
    tab_to(browser, "Retry 2…")
    with browser.new_page():
        browser.press("ENTER")
    browser.see("2 dead or cancelled jobs will become ready")


def test_pictures_of_the_causes_and_of_an_operation(admin: Admin, shop: Shop, tmp_path: Path) -> None:
    folder = ROOT / os.environ.get("PGQUEUE_PICTURES", tmp_path)
    die(shop, 60, 25)
    be_anywhere(shop)
    shop.queue.session.execute(
        f"UPDATE {sql.ATTEMPT} SET message = regexp_replace(message, '/[^'']*/media', '/srv/shop/media')"
    )
    shop.queue.session.execute(
        f"""UPDATE {sql.STATE} SET finished_at = finished_at - random() ^ 2 * interval '9 hours'
            WHERE status = 'dead'"""
    )
    browser = admin.browser
    browser.be_a_desktop(1200, 780)
    admin.enter(to=CAUSES)
    browser.click("#toggle-nav-sidebar")
    pictures = [browser.picture(folder / "causes.png")]
    browser.follow(".pgq-cause .pgq-buttons button", "Retry 60…")
    admin.confirm()
    browser.see("Succeeded", "#pgq-bulk-outcomes", timeout=60)
    pictures.append(browser.picture(folder / "bulk-operation.png"))
    assert [picture.name for picture in pictures if picture.stat().st_size > LARGEST] == []
