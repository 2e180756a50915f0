"""A member of staff finds jobs that need help and helps them, by the pages alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .people import VIEWER
from .places import page_of

if TYPE_CHECKING:
    from .pages import Admin, Storefront
    from .shop import Shop

pytestmark = pytest.mark.browser
INVOICE = "example_project.shop.tasks.make_invoice"
CONVERSION = "example_project.shop.tasks.convert_total"
NO_SUCH_ORDER = 10**9
AN_HOUR = 3600.0


def test_a_dead_job_is_found_read_mended_and_retried(
    admin: Admin, storefront: Storefront, shop: Shop
) -> None:
    browser = admin.browser
    with shop.full_disk() as disk:
        storefront.order()
        browser.see("3 of 3 jobs have ended, 1 of them dead.", "#sentence", timeout=20)

        admin.log_in()
        assert len(admin.listed) == 3
        admin.filter_by("Dead")
        (job_id,) = admin.listed
        admin.follow_job(job_id)
        assert admin.state == "Dead"
        browser.see("FileExistsError", ".pgq-last-error")
        traceback = browser.find(".pgq-text:not([role])").text
        assert "Traceback (most recent call last)" in traceback
        assert "in make_invoice" in traceback
        assert admin.buttons == ["Retry", "Discard"]

        disk.mend()
        admin.press("Retry")
        assert admin.told == "1 job retried."
        browser.see_after_reloads("Succeeded", ".pgq-head .pgq-pill")
        assert browser.text(".pgq-attempts").count("Failed") == 2
        assert admin.buttons == []
        browser.see(".pdf", ".pgq-attempts")  # what the task returned


def test_several_selected_jobs_are_retried_and_the_others_left_alone(admin: Admin, shop: Shop) -> None:
    with shop.full_disk() as disk:
        orders = [(shop.some_order,)] * 3
        dead = shop.queue.enqueue_many(INVOICE, orders, max_attempts=1)
        shop.queue.wait(dead, "dead")
        disk.mend()

    admin.enter()
    admin.filter_by("Dead")
    assert sorted(admin.listed) == dead
    admin.select(*dead[:2])
    admin.act("Retry selected jobs")
    assert admin.told == "2 jobs retried."

    shop.queue.wait(dead[:2], "succeeded")
    admin.open_list("?status=dead")
    assert admin.listed == dead[2:]


def test_a_scheduled_job_is_run_now(admin: Admin, shop: Shop) -> None:
    (job_id,) = shop.queue.enqueue_many(INVOICE, [(shop.some_order,)], delay=AN_HOUR)

    admin.enter(to=page_of(job_id))
    assert admin.state == "Scheduled"
    assert admin.buttons == ["Run now", "Cancel"]
    admin.press("Run now")
    admin.browser.see_after_reloads("Succeeded", ".pgq-head .pgq-pill")


def test_a_scheduled_job_is_cancelled_after_a_question(admin: Admin, shop: Shop) -> None:
    (job_id,) = shop.queue.enqueue_many(INVOICE, [(shop.some_order,)], delay=AN_HOUR)

    admin.enter(to=page_of(job_id))
    admin.press("Cancel")
    admin.browser.see("Are you sure?")
    assert shop.queue.status(job_id) == "scheduled"
    admin.confirm()
    assert admin.state == "Cancelled"
    assert admin.buttons == ["Retry", "Discard"]


def test_who_may_only_view_sees_no_buttons_and_no_actions(admin: Admin, shop: Shop) -> None:
    (job_id,) = shop.queue.enqueue_many(CONVERSION, [(NO_SUCH_ORDER,)], max_attempts=1)
    shop.queue.wait(job_id, "dead")

    admin.enter(VIEWER)
    assert admin.listed == [job_id]
    assert not admin.browser.all("select[name=action], .action-select, button[name=index]")
    admin.follow_job(job_id)
    admin.browser.see("DoesNotExist", ".pgq-last-error")
    assert admin.buttons == []
