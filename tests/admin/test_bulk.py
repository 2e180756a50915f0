"""Bulk operations as operators meet them: previewed, asked for, going on, stopped, twice, not allowed."""

import re
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client

from django_pgqueue.admin import bulk
from django_pgqueue.carrying import advance
from django_pgqueue.models import BulkOperation, Job
from tests.support import assert_invariants, enqueue_many, make, status_of

from .jobs import dead
from .site import LIST, act, confirm, messages_of, page_of, plain, text_of, visitor

pytestmark = pytest.mark.django_db
OPERATIONS = "/admin/django_pgqueue/bulkoperation/"


def page_of_operation(number: int) -> str:
    return f"{OPERATIONS}{number}/change/"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave everything to the keepers."""
    monkeypatch.setattr(bulk, "AT_ONCE", 0.0)


def only() -> BulkOperation:
    return BulkOperation.objects.get()


def finish() -> int:
    """Do what keepers do until nothing is due; return how many batches that took."""
    batches = 0
    while advance(limit=10) is not None:
        batches += 1
    return batches


def test_what_a_filter_means_is_retried_at_once_when_it_is_little(boss: Client) -> None:
    taken, left = dead(60, queue="emails"), dead(3, queue="other")
    response = confirm(boss, "retry_selected", "?status=dead&queue=emails")
    assert response.headers["Location"] == page_of_operation(only().pk)
    assert {status_of(job_id) for job_id in taken} == {"ready"}
    assert {status_of(job_id) for job_id in left} == {"dead"}
    assert (only().standing, only().changed, only().user_name) == ("finished", 60, "staff-0")
    assert_invariants()


def test_much_goes_on_in_batches_with_its_progress(boss: Client, slow: None) -> None:
    jobs = dead(35)
    confirm(boss, "retry_selected", "?status=dead", expected="35")
    page = plain(text_of(boss.get(page_of_operation(only().pk))))
    assert "Running" in page
    assert "Found at the start 35" in page
    assert "No worker is connected" in page
    assert advance(limit=10) is not None
    assert only().changed == 10
    page = text_of(boss.get(page_of_operation(only().pk)))
    assert 'value="28"' in page  # per cent
    assert "data-goes-on" in page
    assert finish() == 3
    assert {status_of(job_id) for job_id in jobs} == {"ready"}
    assert "35" in plain(text_of(boss.get(page_of_operation(only().pk))))


def test_its_page_says_what_became_of_its_jobs(boss: Client) -> None:
    jobs = dead(3)
    confirm(boss, "retry_selected", "?status=dead")
    page = plain(text_of(boss.get(page_of_operation(only().pk))))
    assert "Ready 3 the latest:" in page
    assert f"#{jobs[-1]}" in page
    Job.objects.cancel(jobs[:1])
    Job.objects.discard(jobs[:1])
    page = plain(text_of(boss.get(page_of_operation(only().pk))))
    assert "Ready 2" in page
    assert "gone 1" in page


def test_a_second_press_of_the_same_button_is_the_same_operation(boss: Client, slow: None) -> None:
    dead(5)
    token = str(uuid4())
    for _ in range(2):
        confirm(boss, "retry_selected", "?status=dead", token=token)
    assert BulkOperation.objects.count() == 1
    assert LogEntry.objects.count() == 1
    confirm(boss, "retry_selected", "?status=dead", token=str(uuid4()))
    assert BulkOperation.objects.count() == 2


def test_two_operators_at_once_retry_each_job_once(boss: Client, slow: None) -> None:
    jobs = dead(25)
    confirm(boss, "retry_selected", "?status=dead")
    confirm(visitor(is_superuser=True), "discard_selected", "?status=dead")
    finish()
    first, second = BulkOperation.objects.order_by("pk")
    assert first.changed + second.changed == 25
    assert {first.standing, second.standing} == {"finished"}
    alive = [job_id for job_id in jobs if status_of(job_id) == "ready"]
    gone = [job_id for job_id in jobs if status_of(job_id) is None]
    assert (len(alive), len(gone)) == (first.changed, second.changed)
    assert_invariants()


def test_it_can_be_stopped_by_who_may_ask_for_it(boss: Client, slow: None) -> None:
    jobs = dead(25)
    confirm(boss, "retry_selected", "?status=dead")
    advance(limit=10)
    stop = f"{OPERATIONS}{only().pk}/stop/"
    assert boss.get(stop).status_code == 405
    assert visitor("view_job").post(stop).status_code == 403
    assert ">Stop</button>" not in text_of(visitor("view_job").get(page_of_operation(only().pk)))
    boss.post(stop)
    assert finish() == 0
    assert (only().standing, only().stopped_by, only().changed) == ("stopped", "staff-0", 10)
    assert sum(status_of(job_id) == "dead" for job_id in jobs) == 15
    assert LogEntry.objects.latest("pk").change_message == "Stopped."
    boss.post(stop)
    assert "It had ended before." in messages_of(boss)


def test_a_rate_is_kept(boss: Client, slow: None) -> None:
    dead(60)
    confirm(boss, "retry_selected", "?status=dead", per_minute="30")
    assert finish() == 1
    assert only().changed == 1
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_pgqueue_bulkoperation SET created_at = created_at - interval '10 s'")
        cursor.execute("UPDATE django_pgqueue_jobstate SET finished_at = finished_at - interval '20 s'")
    finish()
    assert 6 <= only().changed <= 7
    assert "At most 30 jobs a minute." in plain(text_of(boss.get(page_of_operation(only().pk))))


@pytest.mark.parametrize("rate", ["0", "-1", "x", "1e9", "1000001", "1.5"])
def test_a_rate_that_makes_no_sense_is_refused_and_nothing_is_done(boss: Client, rate: str) -> None:
    job_id = make("dead").job_id
    confirm(boss, "retry_selected", "?status=dead", per_minute=rate)
    assert status_of(job_id) == "dead"
    assert not BulkOperation.objects.exists()
    assert "The rate must be a whole number" in messages_of(boss)[0]


def test_what_dies_again_is_not_taken_again(boss: Client, slow: None) -> None:
    first = dead(12)
    confirm(boss, "retry_selected", "?status=dead")
    advance(limit=10)
    from tests.support import WORKER, claim_queue, failed  # noqa: PLC0415 - of this test only

    again = claim_queue(limit=100)
    Job.objects.fail([failed(job.fence, final=True, finished_ago=0.0) for job in again], worker=WORKER)
    finish()
    assert only().changed == 12
    assert sum(status_of(job_id) == "dead" for job_id in first) == len(again)


def test_every_kind_changes_what_it_says(boss: Client) -> None:
    scheduled = enqueue_many(3, delay=60.0)
    confirm(boss, "run_selected_now", "?status=scheduled")
    assert {status_of(job_id) for job_id in scheduled} == {"ready"}
    confirm(boss, "cancel_selected", "")
    assert {status_of(job_id) for job_id in scheduled} == {"cancelled"}
    confirm(boss, "discard_selected", "?status=cancelled")
    assert {status_of(job_id) for job_id in scheduled} == {None}
    kinds = list(BulkOperation.objects.order_by("pk").values_list("kind", "changed"))
    assert kinds == [("run-now", 3), ("cancel", 3), ("discard", 3)]


def test_it_is_in_the_admin_log_with_what_was_asked(boss: Client) -> None:
    dead(2, queue="emails")
    confirm(boss, "retry_selected", "?status=dead&queue=emails", per_minute="600")
    (entry,) = LogEntry.objects.all()
    assert entry.change_message == (
        "Retry asked for all jobs that match (State: Dead; Queue: emails), at most 600 a minute."
    )
    assert "retry" in str(entry)


def test_the_preview_tells_the_filter_and_offers_a_rate(boss: Client) -> None:
    jobs = dead(12)
    page = text_of(
        act(boss, "retry_selected", jobs[:1], "?status=dead&task=tests.tasks.ok", select_across="1")
    )
    assert "State Dead" in plain(page)
    assert "Task tests.tasks.ok" in plain(page)
    assert 'name="per_minute"' in page
    assert re.search(r'name="token" value="[0-9a-f-]{36}"', page)
    assert not BulkOperation.objects.exists()


def test_the_list_shows_all_and_needs_the_permission_to_see_jobs(boss: Client) -> None:
    dead(1)
    confirm(boss, "retry_selected", "?status=dead")
    page = plain(text_of(boss.get(OPERATIONS)))
    assert "Retry State: Dead" in page
    assert "1 of 1" in page
    assert visitor("view_job").get(OPERATIONS).status_code == 200
    assert visitor().get(OPERATIONS).status_code == 403
    assert visitor().get(page_of_operation(only().pk)).status_code == 403
    assert boss.get(page_of_operation(only().pk + 1)).status_code == 302
    assert boss.get(page_of(1)).status_code == 302
    assert boss.get(f"{LIST}?status=dead").status_code == 200
