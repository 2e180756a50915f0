"""Paging: one bounded look, and an honest word on how many there are."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_pgqueue.admin import changelist, paginator
from django_pgqueue.models import Job
from tests.support import enqueue_many, make

from .site import LIST, ids_of_list, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """Pages end at 120 rows."""
    monkeypatch.setattr(paginator, "LIMIT", 120)
    monkeypatch.setattr(changelist, "LIMIT", 120)
    return 120


def test_every_job_is_on_one_page(boss: Client) -> None:
    job_ids = enqueue_many(101)
    seen = [job_id for page in (1, 2, 3) for job_id in ids_of_list(text_of(boss.get(f"{LIST}?p={page}")))]
    assert seen == job_ids[::-1]


def test_exact_number_is_told_when_it_was_counted(boss: Client) -> None:
    enqueue_many(101)
    assert "101 jobs" in text_of(boss.get(LIST))
    make("dead")
    assert "1 job " in text_of(boss.get(LIST + "?status=dead"))


def test_pages_end_at_the_limit_and_say_so(boss: Client, small_limit: int) -> None:
    job_ids = enqueue_many(130)
    with CaptureQueriesContext(connection) as queries:
        page = text_of(boss.get(LIST + "?p=3&queue=default"))
    looks = [
        query["sql"]
        for query in queries
        if 'WHERE "django_pgqueue_job"."queue" = \'default\'' in query["sql"]
    ]
    assert [statement[-9:] for statement in looks] == ["LIMIT 121"]
    assert ids_of_list(page) == job_ids[::-1][100:120]
    assert "more than 120 jobs" in page
    assert "The pages end at 120 jobs; filters reach the others." in page
    assert boss.get(LIST + "?p=4&queue=default").status_code == 302


def test_whole_table_is_estimated_not_counted(boss: Client, small_limit: int) -> None:
    enqueue_many(130)
    assert "more than 120 jobs" in text_of(boss.get(LIST))
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {Job._meta.db_table}")
    with CaptureQueriesContext(connection) as queries:
        assert "about 130 jobs" in text_of(boss.get(LIST))
    counts = [query["sql"] for query in queries if "count(" in query["sql"].lower()]
    assert all("LIMIT" in statement for statement in counts)


def test_select_all_never_names_a_number_that_was_not_counted(boss: Client, small_limit: int) -> None:
    enqueue_many(130)
    assert "Select all jobs that match, on all pages" in text_of(boss.get(LIST))
    assert "Select all 120" not in text_of(boss.get(LIST))


def test_select_all_works_without_script(boss: Client) -> None:
    enqueue_many(51)
    assert '<noscript><label><input type="checkbox" name="select_across" value="1">' in text_of(
        boss.get(LIST)
    )


@pytest.mark.parametrize("page", ["0", "-1", "x", "99999999999999999999"])
def test_page_that_does_not_exist_is_no_error(boss: Client, page: str) -> None:
    enqueue_many(51)
    assert boss.get(LIST, {"p": page}).status_code in (200, 302)
