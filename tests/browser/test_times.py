"""The filter by the time of enqueueing (django-admin-rangefilter's, with a form of ours)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from django_pgqueue import sql

if TYPE_CHECKING:
    from .pages import Admin
    from .shop import Shop

pytestmark = pytest.mark.browser


@pytest.fixture
def spread(shop: Shop) -> list[int]:
    """Four jobs, enqueued at 9:30 on four days in a row, the oldest first."""
    job_ids = shop.queue.enqueue_many("example_project.shop.tasks.make_invoice", [(1,)] * 4, delay=3600.0)
    days = "enqueued_at = '2026-03-10 09:30+00'::timestamptz + (id - %s) * interval '1 day'"
    shop.queue.session.execute(f"UPDATE {sql.JOB} SET {days}", [job_ids[0]])
    return job_ids


def test_a_range_of_times_is_typed_in_and_narrows_the_list(admin: Admin, spread: list[int]) -> None:
    browser = admin.browser
    admin.enter()
    assert admin.listed == spread[::-1]
    admin.filter_from_to("2026-03-11 09:30", "2026-03-12 21:00")
    assert admin.listed == [spread[2], spread[1]]
    typed = browser.script(
        "return [...document.querySelector('.pgq-times').elements].map(field => field.value)"
    )
    assert [value for value in typed if value] == ["2026-03-11", "09:30", "2026-03-12", "21:00"]

    browser.follow(".pgq-times a", "Clear")
    assert admin.listed == spread[::-1]


def test_a_shortcut_narrows_the_list_and_keeps_the_other_filters(
    admin: Admin, spread: list[int], shop: Shop
) -> None:
    now = shop.queue.enqueue_many("example_project.shop.tasks.make_invoice", [(1,)] * 2, delay=3600.0)
    shop.queue.cancel(now[0])
    admin.enter()
    admin.filter_by("Scheduled")
    first_filter = ".pgq-times:first-of-type + .pgq-shortcuts a"
    with admin.browser.new_page():
        admin.browser.all(first_filter, "Last hour")[0].click()
    assert admin.listed == [now[1]]
