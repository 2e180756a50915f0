"""The list of jobs: what a row says, the order, the search, and what a page costs."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_pgqueue import sql
from django_pgqueue.models import Job
from django_pgqueue.records import NewJob
from tests.support import claim, enqueue, enqueue_many, make, settle_one

from .jobs import dead
from .site import LIST, ids_of_list, rows_of_list, text_of

pytestmark = pytest.mark.django_db

UNKNOWN = "django_pgqueue.exceptions.UnknownTask"


def row_of(client: Client, job_id: int) -> dict[str, str]:
    """Return the row of a job in the list."""
    (row,) = [row for row in rows_of_list(text_of(client.get(LIST))) if row["id"] == str(job_id)]
    return row


def test_row_says_what_and_where(boss: Client) -> None:
    row = row_of(boss, enqueue(task_path="shop.tasks.pay", queue="emails", priority=7))
    assert (row["task"], row["queue"], row["priority"], row["attempts"]) == (
        "shop.tasks.pay",
        "emails",
        "7",
        "0 of 5",
    )
    assert re.fullmatch(r"\d+ s", row["age"])
    assert row["last_error"] == ""


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("scheduled", r"Scheduled in 59 min"),
        ("ready", r"Ready waiting \d+ s"),
        ("running", r"Running for \d+ s"),
        ("succeeded", r"Succeeded \d+ s ago"),
        ("dead", r"Dead \d+ s ago"),
        ("cancelled", r"Cancelled \d+ s ago"),
    ],
)
def test_state_is_readable_without_its_colour(boss: Client, status: str, words: str) -> None:
    state = row_of(boss, make(status).job_id)["state"]
    assert re.fullmatch(r"\W " + words, state)


def test_running_job_that_was_asked_to_stop_says_so(boss: Client) -> None:
    assert row_of(boss, make("running", cancel_requested=True).job_id)["state"].endswith("asked to stop")


def test_running_attempt_is_counted(boss: Client) -> None:
    assert row_of(boss, make("running", failures=1).job_id)["attempts"] == "2 of 3"
    assert row_of(boss, make("ready", failures=1).job_id)["attempts"] == "1 of 3"


def test_last_error_is_the_latest_failed_attempt_whatever_came_after(boss: Client) -> None:
    job_id = enqueue()
    settle_one("fail", claim(job_id).fence, exception_class="shop.Old", message="first")
    Job.objects.promote_now([job_id])
    settle_one("fail", claim(job_id).fence, exception_class="shop.New", message="second " + "x" * 1000)
    Job.objects.promote_now([job_id])
    settle_one("snooze", claim(job_id).fence)
    row = row_of(boss, job_id)
    assert row["last_error"].startswith("New second xxx")
    assert len(row["last_error"]) < 400


def test_lost_attempt_is_an_error(boss: Client) -> None:
    made = make("running", lease=-1.0)
    Job.objects.rescue(limit=10, server_up=0.0)
    assert row_of(boss, made.job_id)["last_error"].startswith("LeaseExpired the lease ended")


def test_job_that_no_worker_knows_says_exactly_that(boss: Client) -> None:
    job_id = enqueue(task_path="shop.tasks.gone")
    settle_one("snooze", claim(job_id).fence, exception_class=UNKNOWN, message="whatever the worker wrote")
    assert row_of(boss, job_id)["last_error"] == "UnknownTask no worker knows this task"


def test_newest_job_comes_first(boss: Client) -> None:
    job_ids = enqueue_many(3)
    assert ids_of_list(text_of(boss.get(LIST))) == job_ids[::-1]
    assert ids_of_list(text_of(boss.get(LIST + "?o=1"))) == job_ids


@pytest.mark.parametrize("column", range(2, 9))
@pytest.mark.parametrize("sign", ["", "-"])
def test_columns_without_an_index_do_not_sort(boss: Client, sign: str, column: int) -> None:
    options = [("a", 1, "shop.b"), ("c", -1, "shop.a"), ("b", 0, "shop.c")]
    job_ids = [enqueue(queue=queue, priority=priority, task_path=path) for queue, priority, path in options]
    page = text_of(boss.get(f"{LIST}?o={sign}{column}"))
    assert ids_of_list(page) == job_ids[::-1]
    assert len(re.findall(r"<th[^>]*sortable", page)) == 1


def test_filtered_state_brings_the_order_of_its_index(boss: Client) -> None:
    first, second = (make("running").fence for _ in range(2))
    settle_one("fail", second, final=True, finished_ago=5.0, started_ago=6.0)
    settle_one("fail", first, final=True, finished_ago=1.0, started_ago=6.0)
    for query in ("?status=dead", "?status=dead&o=-1"):
        page = text_of(boss.get(LIST + query))
        assert ids_of_list(page) == [first.job_id, second.job_id]
        assert "Ended last first." in page


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("42000001", ["a"]),
        ("tasks.pay", ["a", "b"]),
        ("PAY_L", ["b"]),
        ("shop.tasks.pay_later", ["b"]),
        ("refund", []),
    ],
)
def test_search_takes_an_exact_number_or_a_part_of_a_path(boss: Client, term: str, found: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), 42000000)", [sql.JOB])
    jobs = {"a": enqueue(task_path="shop.tasks.pay"), "b": enqueue(task_path="shop.tasks.pay_later")}
    page = text_of(boss.get(LIST, {"q": term}))
    assert sorted(ids_of_list(page)) == [jobs[name] for name in found]


@pytest.mark.parametrize(
    "junk",
    [
        "x\x00",
        "99999999999999999999",
        "é",
        "9223372036854775808",
        "-1",
        "1e5",
        "%",
        "_",
        "'; DROP",
        "١٢",
        " ٣ ",
    ],
)
def test_search_for_junk_finds_nothing(boss: Client, junk: str) -> None:
    enqueue(task_path="shop.pay")
    assert ids_of_list(text_of(boss.get(LIST, {"q": junk}))) == []


def test_search_never_looks_into_arguments(boss: Client) -> None:
    enqueue(args='["needle"]')
    with CaptureQueriesContext(connection) as queries:
        assert ids_of_list(text_of(boss.get(LIST, {"q": "needle"}))) == []
    assert not any("LIKE" in query["sql"] for query in queries)


@pytest.mark.parametrize(
    "lookup", ["args__contains", "kwargs__icontains", "queue__regex", "state__worker_id", "state__status"]
)
def test_lookups_that_are_no_filter_are_refused(boss: Client, lookup: str) -> None:
    assert boss.get(LIST, {lookup: "x"}).status_code == 400


def test_ten_and_a_hundred_rows_take_the_same_queries(boss: Client) -> None:
    """C61."""
    dead(5)
    enqueue_many(5)
    text_of(boss.get(LIST))
    with CaptureQueriesContext(connection) as few:
        assert len(ids_of_list(text_of(boss.get(LIST)))) == 10
    dead(45, queue="emails")
    enqueue_many(45)
    with CaptureQueriesContext(connection) as many:
        assert len(ids_of_list(text_of(boss.get(LIST)))) == 50
    assert len(many) == len(few) <= 10


def test_wide_columns_are_not_fetched(boss: Client) -> None:
    """C60."""
    big = '"' + "x" * 5_000_000 + '"'
    job_id = enqueue(args=f"[{big}]", kwargs=f'{{"a": {big}}}', metadata=f'{{"m": {big}}}')
    settle_one("fail", claim(job_id).fence, traceback="T" * 5_000_000, message="M" * 5_000_000)
    settle_one("complete", claim(enqueue()).fence, return_value=big)
    with CaptureQueriesContext(connection) as queries:
        page = boss.get(LIST)
    assert len(text_of(page)) < 100_000
    assert len(ids_of_list(text_of(page))) == 2
    for column in ("args", "kwargs", "metadata", "traceback", "return_value"):
        assert not any(
            f'"{column}"' in query["sql"] or f"past.{column}" in query["sql"] for query in queries
        ), column


@pytest.mark.parametrize("args", ["null", "3", '"text"', '{"a": 1}', "[" * 200 + "]" * 200])
def test_rows_that_this_code_cannot_understand_are_shown(boss: Client, args: str) -> None:
    """C62."""
    new = NewJob(task_path="removed.module.task", args=args, kwargs="null", queue="undeclared", metadata="[]")
    job_id = Job.objects.enqueue(new, backend="no-such-alias").job_id
    row = row_of(boss, job_id)
    assert (row["task"], row["queue"]) == ("removed.module.task", "undeclared")


def test_job_without_a_state_is_shown(boss: Client) -> None:
    job_id = enqueue()
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {sql.STATE}")
    assert row_of(boss, job_id)["state"] == "–"


def test_nobody_adds_deletes_or_changes(boss: Client) -> None:
    job_id = enqueue()
    assert boss.get(LIST + "add/").status_code == 403
    assert boss.get(f"{LIST}{job_id}/delete/").status_code == 403
    assert "delete_selected" not in text_of(boss.get(LIST))


def test_empty_list_says_so(boss: Client) -> None:
    assert "No job matches." in text_of(boss.get(LIST))
