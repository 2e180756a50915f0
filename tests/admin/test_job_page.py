"""The page of one job: everything about it, nothing to edit, at the same cost whatever its history."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_pgqueue import sql, states
from django_pgqueue.models import Job
from django_pgqueue.records import NewJob, Notes
from tests.support import WORKER, claim, enqueue, enqueue_many, fetch, make, settle_one

from .jobs import with_attempts
from .site import LIST, Tags, button_of, buttons_of, page_of, plain, rows_of_list, text_of, visitor

pytestmark = pytest.mark.django_db

ALL = ("view_job", "retry_job", "cancel_job", "run_job")


def read(client: Client, job_id: int, query: str = "") -> str:
    """Return what a person reads on the page of a job."""
    page = text_of(client.get(page_of(job_id) + query))
    return plain(re.search(r'<div id="content-main".*', page, re.DOTALL)[0])  # type: ignore[index]


def test_every_field_is_there(boss: Client) -> None:
    job_id = enqueue(
        task_path="shop.tasks.pay",
        args='[1, "käse"]',
        kwargs='{"currency": "€"}',
        metadata='{"tenant": "north"}',
        queue="emails",
        priority=-7,
        delay=3600.0,
        max_attempts=9,
        timeout=42.5,
        backoff_base=1.5,
        backoff_cap=77.0,
        unique_key="pay-1",
    )
    text = read(boss, job_id)
    for words in ("shop.tasks.pay", "Queue emails", "Priority -7", "Backend default", "Unique key pay-1"):
        assert words in text
    for words in (
        "0 of 9",
        "Budget of attempts 9",
        "Backoff from 1.5 s",
        "Backoff up to 77 s",
        "Timeout 42.5 s",
    ):
        assert words in text
    for words in ('[ 1, "käse" ]', '{ "currency": "€" }', '{ "tenant": "north" }'):
        assert words in text
    assert "Due in 59 min" in text


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("scheduled", r"Due in 59 min \d+ s\."),
        ("ready", r"Waiting for a worker of the queue “default” for \d"),
        ("running", r"Attempt 1 runs for \d"),
        ("succeeded", r"Succeeded \d+(\.\d)? s ago\."),
        (
            "dead",
            r"Died \d+(\.\d)? s ago after attempt 1 of 3; it stays until somebody retries it "
            r"or its retention is over\.",
        ),
        ("cancelled", r"Cancelled \d+(\.\d)? m?s ago\."),
    ],
)
def test_state_is_told_in_a_sentence(boss: Client, status: str, sentence: str) -> None:
    assert re.search(sentence, read(boss, make(status).job_id))


def test_running_job_names_its_worker_and_its_lease(boss: Client) -> None:
    text = read(boss, make("running", cancel_requested=True).job_id)
    assert f"on {WORKER.worker_id}." in text
    assert "Its lease ends in 2" in text
    assert "It was asked to stop" in text


@pytest.mark.parametrize(
    ("report", "words", "share"),
    [
        (
            '{"done": 40, "total": 160, "message": "sending"}',
            "Progress: 25 % 40 of 160: sending",
            "25 %",
        ),
        ('{"done": 3.5, "total": null, "message": ""}', "Progress: 3.5", ""),
        ('{"done": 9, "total": 0, "message": "odd"}', "Progress: 9 of 0: odd", ""),
        ('{"done": 9, "total": 3, "message": "<b>"}', "Progress: 100 % 9 of 3: <b>", "100 %"),
        ('["nonsense"]', "", ""),
    ],
)
def test_progress_of_a_running_task_is_shown(boss: Client, report: str, words: str, share: str) -> None:
    made = make("running")
    assert Job.objects.report_progress([(made.fence, report)]) == [made.job_id]
    text = read(boss, made.job_id)
    assert words in text
    assert ("Progress:" in text) == bool(words)
    state = rows_of_list(text_of(boss.get(LIST)))[0]["state"]
    assert re.fullmatch(r"▶ Running for \d+ s" + (f", {share}" if share else ""), state)


def test_lease_that_is_over_is_told(boss: Client) -> None:
    assert re.search(r"Its lease ended \d+(\.\d)? s ago", read(boss, make("running", lease=-5.0).job_id))


def test_attempt_tells_outcome_times_worker_and_traceback(boss: Client) -> None:
    job_id = enqueue()
    traceback = "Traceback (most recent call last):\n  File “a.py”, line 1\nबीजक 無効"
    values = {"exception_class": "shop.NoOrder", "message": "no\norder", "traceback": traceback}
    settle_one("fail", claim(job_id).fence, **values)
    assert f">{traceback}</pre>" in text_of(boss.get(page_of(job_id)))
    text = read(boss, job_id)
    assert "1 ✕ Failed" in text
    assert "1.0 s worker-1 process 4711 on host-1 shop.NoOrder no order" in text


def test_newest_traceback_is_open_the_others_folded(boss: Client) -> None:
    job_id = with_attempts(3)
    details = [attrs for tag, attrs in Tags(text_of(boss.get(page_of(job_id)))).found if tag == "details"]
    assert ["open" in attrs for attrs in details] == [True, False, False]


def test_return_value_is_shown(boss: Client) -> None:
    job_id = enqueue()
    settle_one("complete", claim(job_id).fence, return_value='{"sent": [1, 2]}')
    assert 'Return value { "sent": [ 1, 2 ] }' in read(boss, job_id)


def test_running_attempt_heads_the_table(boss: Client) -> None:
    text = read(boss, make("running", failures=2).job_id)
    assert text.index("3 ▶ Running") < text.index("2 ✕ Failed") < text.index("1 ✕ Failed")


def test_job_that_no_worker_knows_says_so(boss: Client) -> None:
    job_id = enqueue(task_path="shop.gone")
    settle_one(
        "snooze", claim(job_id).fence, exception_class="django_pgqueue.exceptions.UnknownTask", message="x"
    )
    assert "django_pgqueue.exceptions.UnknownTask no worker knows this task" in read(boss, job_id)


def test_five_and_two_hundred_attempts_take_the_same_queries(boss: Client) -> None:
    """C61."""
    few, many = with_attempts(5), with_attempts(200)
    text_of(boss.get(page_of(few)))
    with CaptureQueriesContext(connection) as for_few:
        text_of(boss.get(page_of(few)))
    with CaptureQueriesContext(connection) as for_many:
        page = text_of(boss.get(page_of(many)))
    assert len(for_few) == len(for_many) <= 9
    assert page.count('<th scope="row">') == 25


def test_attempts_are_paged_newest_first(boss: Client) -> None:
    job_id = with_attempts(30)
    first, second = read(boss, job_id), read(boss, job_id, "?attempts=2")
    assert "message 30" in first
    assert "message 6" in first
    assert "message 5 " not in first
    assert "Page 1 of 2, 30 attempts ended Older" in first
    assert "message 5 " in second
    assert "Newer Page 2 of 2" in second


@pytest.mark.parametrize("number", ["0", "-1", "99", "x", "", "٣", "9" * 30])
def test_page_of_attempts_that_does_not_exist_is_no_error(boss: Client, number: str) -> None:
    text_of(boss.get(page_of(with_attempts(1)), {"attempts": number}))


def test_large_values_are_cut_before_they_travel(boss: Client) -> None:
    """C60."""
    job_id = enqueue(args='["' + "x" * 5_000_000 + '"]')
    settle_one("fail", claim(job_id).fence, traceback="T" * 5_000_000, message="M" * 200_000)
    with CaptureQueriesContext(connection) as queries:
        page = text_of(boss.get(page_of(job_id)))
    assert len(page) < 500_000
    fetched = [query["sql"] for query in queries if '"args"' in query["sql"]]
    assert fetched
    assert all('LEFT(("django_pgqueue_job"."args")::text, 100001)' in statement for statement in fetched)
    assert "[… cut here: only the first 100,000 characters are shown]" in page


def test_traceback_of_64_kilobytes_is_whole(boss: Client) -> None:
    job_id = enqueue()
    traceback = "\n".join(f"line {number}" for number in range(6000))[:64_000]
    settle_one("fail", claim(job_id).fence, traceback=traceback)
    assert f">{traceback}</pre>" in text_of(boss.get(page_of(job_id)))


def test_characters_that_turn_a_line_around_are_shown_as_escapes(boss: Client) -> None:
    job_id = enqueue(args='["\u202eevil"]')
    settle_one("fail", claim(job_id).fence, message="\u202eevil", traceback="\x1b[31mred\r\nnext")
    page = text_of(boss.get(page_of(job_id)))
    assert "\u202e" not in page
    assert r"\u202eevil" in page
    assert "\\u001b[31mred\nnext</pre>" in page


@pytest.mark.parametrize(
    "args",
    ["null", "3", '"text"', "{}", "[" * 3000 + "]" * 3000, "[" * 500 + "]" * 500, "[" + "9" * 5000 + "]"],
)
def test_job_that_this_code_cannot_understand_is_shown(boss: Client, args: str) -> None:
    """C62."""
    new = NewJob(task_path="removed.module.task", args=args, kwargs="7", queue="undeclared", metadata="[]")
    job_id = Job.objects.enqueue(new, backend="no-such-alias").job_id
    text = read(boss, job_id)
    assert "Backend no-such-alias" in text
    assert "removed.module.task" in text
    assert len(text_of(boss.get(page_of(job_id)))) < 50_000


def test_retry_of_a_removed_task_gives_a_message(boss: Client) -> None:
    """C62."""
    job_id = make("dead", task_path="removed.module.task").job_id
    response = boss.post(button_of(job_id, "retry"), follow=True)
    assert "1 job retried." in plain(text_of(response))


def test_job_without_a_state_is_shown(boss: Client) -> None:
    job_id = make("dead").job_id
    fetch(f"DELETE FROM {sql.STATE} RETURNING 1")
    assert "This job has no state" in read(boss, job_id)


@pytest.mark.parametrize("object_id", ["0", "-1", "99999999999999999999", "x", "x%00", "1.5", "é"])
def test_job_that_does_not_exist_leads_back(boss: Client, object_id: str) -> None:
    assert boss.get(f"{LIST}{object_id}/change/").status_code == 302
    assert boss.post(f"{LIST}{object_id}/retry/").status_code == 302


def test_nothing_can_be_edited(boss: Client) -> None:
    job_id = make("dead").job_id
    tags = Tags(
        re.search(r'<div id="content-main".*', text_of(boss.get(page_of(job_id))), re.DOTALL)[0]
    ).found  # type: ignore[index]
    assert not [tag for tag, _ in tags if tag in ("textarea", "select")]
    assert {attrs["name"] for tag, attrs in tags if tag == "input"} == {"csrfmiddlewaretoken"}
    before = fetch(f"SELECT * FROM {sql.JOB}")
    assert boss.post(page_of(job_id), {"queue": "other", "priority": "5"}).status_code == 403
    assert fetch(f"SELECT * FROM {sql.JOB}") == before


BUTTONS = {
    "scheduled": ["Run now", "Cancel"],
    "ready": ["Cancel"],
    "running": ["Cancel"],
    "succeeded": [],
    "dead": ["Retry"],
    "cancelled": ["Retry"],
}


@pytest.mark.parametrize("status", states.STATUSES)
def test_buttons_appear_where_they_apply(status: str) -> None:
    page = text_of(visitor(*ALL).get(page_of(make(status).job_id)))
    assert buttons_of(page) == BUTTONS[status]


@pytest.mark.parametrize("status", states.STATUSES)
def test_buttons_do_not_appear_without_their_permission(status: str) -> None:
    assert buttons_of(text_of(visitor("view_job").get(page_of(make(status).job_id)))) == []


def test_cancel_is_not_offered_twice(boss: Client) -> None:
    assert buttons_of(text_of(boss.get(page_of(make("running", cancel_requested=True).job_id)))) == []


def test_history_shows_who_did_what(boss: Client) -> None:
    job_id = make("dead").job_id
    boss.post(button_of(job_id, "retry"))
    assert "Retried." in text_of(boss.get(f"{LIST}{job_id}/history/"))


@pytest.mark.parametrize("query", ["", "?status=dead", "?q=tests"])
def test_pages_hold_no_script_or_style_of_their_own(boss: Client, query: str) -> None:
    job_id = make("dead").job_id
    for address in (LIST + query, page_of(job_id)):
        page = text_of(boss.get(address))
        for tag, attrs in Tags(page).found:
            assert tag != "style", address
            assert tag != "script" or attrs.get("src"), address
            assert not [name for name in attrs if name == "style" or name.startswith("on")], (address, tag)
        assert "django_pgqueue/admin.css" in page


# --- notes and relatives


def noted(job_id: int, **values: Any) -> None:
    """End the job's attempt with these notes."""
    settle_one("complete", claim(job_id).fence, notes=Notes(**values))


def test_the_end_of_the_log_and_the_sql_are_shown(boss: Client) -> None:
    job_id = enqueue()
    noted(job_id, log_tail="+0.001 INFO shop: <b>first</b>\n+0.002 INFO shop: second", sql_queries=1234)
    page = text_of(boss.get(page_of(job_id)))
    assert "1,234 SQL queries, 0 ms" in page
    assert "<details open>\n          <summary>End of its log</summary>" in page
    assert "+0.001 INFO shop: &lt;b&gt;first&lt;/b&gt;\n+0.002 INFO shop: second</pre>" in page


def test_one_statement_is_one(boss: Client) -> None:
    job_id = enqueue()
    noted(job_id, sql_queries=1, sql_seconds=1.5)
    assert "1 SQL query, 1.5 s" in text_of(boss.get(page_of(job_id)))


def test_where_nothing_was_noted_nothing_is_said(boss: Client) -> None:
    job_id = enqueue()
    noted(job_id)
    page = text_of(boss.get(page_of(job_id)))
    assert "SQL quer" not in page
    assert "End of its log" not in page


def test_secrets_in_the_log_are_hidden(boss: Client) -> None:
    """What was hidden in the arguments, and what names itself a secret."""
    job_id = enqueue(task_path="tests.tasks.takes", kwargs='{"api_token": "s3cr3t-value"}')
    noted(job_id, log_tail="+0.001 INFO shop: with s3cr3t-value and password=hunter2 for ada")
    page = text_of(boss.get(page_of(job_id)))
    assert "s3cr3t-value" not in page
    assert "hunter2" not in page
    assert "for ada" in page


def test_the_parent_is_linked_with_its_state(boss: Client) -> None:
    parent = make("dead", task_path="shop.tasks.check_out")
    child = enqueue(parent_id=parent.job_id)
    page = text_of(boss.get(page_of(child)))
    assert f'Enqueued by <a href="{page_of(parent.job_id)}">job {parent.job_id}</a>' in page
    assert f"Enqueued by job {parent.job_id}, shop.tasks.check_out ✕ Dead" in read(boss, child)


def test_a_parent_that_is_gone_is_said_to_be_gone(boss: Client) -> None:
    child = enqueue(parent_id=123_456)
    assert "Enqueued by job 123456, which is gone." in read(boss, child)


def test_a_job_without_relatives_says_nothing_of_them(boss: Client) -> None:
    page = read(boss, enqueue())
    assert "Enqueued by" not in page
    assert "Jobs that it enqueued" not in page


def test_children_are_linked_with_their_states(boss: Client) -> None:
    parent = enqueue()
    dead, ready = make("dead", parent_id=parent), make("ready", parent_id=parent)
    page = text_of(boss.get(page_of(parent)))
    assert page.index(page_of(dead.job_id)) < page.index(page_of(ready.job_id))
    assert f"✕ Dead #{dead.job_id} tests.tasks.ok ≡ Ready #{ready.job_id} tests.tasks.ok" in read(
        boss, parent
    )
    assert "Pages of the jobs that it enqueued" not in page


def test_many_children_are_paged_by_place(boss: Client) -> None:
    parent = enqueue()
    children = enqueue_many(45, parent_id=parent)
    found: list[list[int]] = []
    address: str | None = ""
    while address is not None:
        page = text_of(boss.get(page_of(parent) + address))
        found.append([int(number) for number in re.findall(r">#(\d+)</a>", page)])
        following = re.search(r"\?children=\d+", page)
        address = following[0] if following else None
    assert found == [children[:20], children[20:40], children[40:]]
    assert ">First</a>" in page
    assert "There are no more." in read(boss, parent, f"?children={children[-1]}")


@pytest.mark.parametrize("after", ["0", "-1", "x", "", "٣", "9" * 18, "9" * 30])
def test_a_place_among_children_that_makes_no_sense_is_no_error(boss: Client, after: str) -> None:
    parent = enqueue()
    enqueue(parent_id=parent)
    text_of(boss.get(page_of(parent), {"children": after}))


def test_ten_and_a_thousand_children_take_the_same_queries(boss: Client) -> None:
    """C61."""
    few, many = enqueue(parent_id=1), enqueue(parent_id=1)
    enqueue_many(10, parent_id=few)
    enqueue_many(1000, parent_id=many)
    text_of(boss.get(page_of(few)))
    with CaptureQueriesContext(connection) as for_few:
        text_of(boss.get(page_of(few)))
    with CaptureQueriesContext(connection) as for_many:
        text_of(boss.get(page_of(many)))
    assert len(for_few) == len(for_many) <= 11
