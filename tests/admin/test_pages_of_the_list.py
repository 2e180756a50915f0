"""Paging: a walk along an index from any place, and an honest word on how many there are."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_pgqueue import listing
from django_pgqueue.admin import JobAdmin
from django_pgqueue.models import Job
from tests.support import enqueue_many, make

from .jobs import dead
from .paging import link, walk_through
from .site import LIST, ids_of_list, messages_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten rows are a page."""
    monkeypatch.setattr(JobAdmin, "list_per_page", 10)


def ends_of_every_order() -> dict[str, list[int]]:
    """Make 12 jobs for each order that a list can have; return their ids in that order."""
    ready = enqueue_many(12, queue="other", priority=3)
    scheduled = enqueue_many(12, delay=60.0)
    cancelled = enqueue_many(12, queue="emails")
    Job.objects.cancel(cancelled)
    return {
        "?status=ready": ready,
        "?status=ready&queue=other": ready,
        "?status=scheduled": scheduled,
        "?status=cancelled": cancelled[::-1],
        "?queue=emails": cancelled[::-1],
        "?o=1": [*ready, *scheduled, *cancelled],
        "": [*ready, *scheduled, *cancelled][::-1],
        "?task=tests.tasks.ok": [*ready, *scheduled, *cancelled][::-1],
        "?task=tests.tasks.ok&o=1": [*ready, *scheduled, *cancelled],
    }


def test_every_job_is_on_one_page_in_every_order(boss: Client) -> None:
    for query, expected in ends_of_every_order().items():
        pages = walk_through(boss, query)
        assert [job_id for page in pages for job_id in page] == expected, query
        assert max(len(page) for page in pages) == 10


def test_the_way_back_is_the_way_there(boss: Client) -> None:
    for query in ends_of_every_order():
        there = walk_through(boss, query)
        page = text_of(boss.get(LIST + query))
        for _ in there[1:]:
            page = text_of(boss.get(link(page, "Next")))
        back = [ids_of_list(page)]
        while address := link(page, "Previous"):
            page = text_of(boss.get(address))
            back.append(ids_of_list(page))
        assert back == there[::-1], query


def test_jobs_that_end_in_the_same_moment_are_on_one_page_each(boss: Client) -> None:
    job_ids = dead(25)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_pgqueue_jobstate SET finished_at = now()")
    pages = walk_through(boss, "?status=dead")
    assert [job_id for page in pages for job_id in page] == job_ids[::-1]


def test_jobs_that_come_meanwhile_move_nothing_on_later_pages(boss: Client) -> None:
    job_ids = enqueue_many(16)
    following = link(text_of(boss.get(LIST)), "Next")
    enqueue_many(30)
    assert ids_of_list(text_of(boss.get(following))) == job_ids[:6][::-1]


def test_no_offset_and_no_count_of_the_table(boss: Client) -> None:
    enqueue_many(25)
    following = link(text_of(boss.get(LIST)), "Next")
    with CaptureQueriesContext(connection) as queries:
        text_of(boss.get(following))
    statements = [query["sql"] for query in queries]
    assert not any("OFFSET" in text for text in statements)
    assert all("LIMIT" in text for text in statements if "count(" in text.lower())


def test_exact_number_is_told_when_it_was_counted(boss: Client) -> None:
    enqueue_many(8)
    assert "8 jobs" in text_of(boss.get(LIST))
    make("dead")
    assert "1 job<" in text_of(boss.get(LIST + "?status=dead")).replace(" <", "<")


def test_whole_table_is_estimated_not_counted(boss: Client) -> None:
    enqueue_many(30)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {Job._meta.db_table}")
    assert "about 30 jobs" in text_of(boss.get(LIST))


def test_filtered_lists_are_counted_up_to_a_limit(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    dead(30)
    assert "30 jobs" in text_of(boss.get(LIST + "?status=dead"))
    monkeypatch.setattr(Job.objects.count_up_to.__func__, "__defaults__", (20,))
    assert "more than 20 jobs" in text_of(boss.get(LIST + "?status=dead"))


def test_a_page_looks_at_so_many_rows_and_says_so(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rare = enqueue_many(2, queue="rare")
    enqueue_many(100)
    monkeypatch.setattr(listing, "LOOK", 40)
    monkeypatch.setattr(listing, "LOOK_WITH_JOIN", 40)
    page = text_of(boss.get(LIST + "?queue=rare"))
    assert ids_of_list(page) == []
    assert "40 jobs were looked at for this page; the list goes on behind them." in page
    assert "No job matches so far." in page
    pages = walk_through(boss, "?queue=rare")
    assert [job_id for found in pages for job_id in found] == rare[::-1]
    assert len(pages) == 3


def test_select_all_never_names_a_number_that_was_not_counted(boss: Client) -> None:
    enqueue_many(11)
    page = text_of(boss.get(LIST))
    assert "Select all jobs that match, on all pages" in page
    assert '<noscript><label><input type="checkbox" name="select_across" value="1">' in page


PLACES = ["0", "-1", "x", "99999999999999999999", "[]", '"a",1', "1,2", "1.5", "null", "[" * 5000, "true"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("query", ["", "?status=dead", "?status=ready"])
def test_a_place_that_does_not_exist_is_no_error(boss: Client, query: str, place: str) -> None:
    enqueue_many(11)
    for name in ("after", "before"):
        fields = {name: place, **dict(pair.split("=") for pair in query[1:].split("&") if pair)}
        assert boss.get(LIST, fields).status_code in (200, 302)


def test_another_filter_begins_at_its_first_page(boss: Client) -> None:
    enqueue_many(12)
    page = text_of(boss.get(link(text_of(boss.get(LIST)), "Next")))
    filters = [href for href in re.findall(r'<a href="([^"]*)"', page) if "status=" in href]
    assert filters
    assert not any("after=" in href for href in filters)
    assert messages_of(boss) == []
