"""Dead jobs by cause: each cause once, with its numbers, its place in the project's code, and its buttons."""

import datetime as dt
import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_pgqueue.models import BulkOperation, Job, JobState
from tests.support import OVER, WORKER, claim_queue, enqueue_many, failed, fetch, make, status_of

from .site import ids_of_list, plain, text_of, visitor

pytestmark = pytest.mark.django_db
CAUSES = "/admin/django_pgqueue/deadjob/"
TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/tasks.py", line 12, in pay
    charge(order)
  File "/srv/shop/bank.py", line 40, in charge
    return client.post(url)
  File "/usr/lib/python3.13/site-packages/client/api.py", line 9, in post
    raise Refused(url)
client.Refused: no
"""


def died(count: int, fingerprint: str, *, ago: float = 0.0, **values: object) -> list[int]:
    """Return jobs that died of a cause, so many seconds ago."""
    job_ids = enqueue_many(count)
    claimed = claim_queue(limit=count)
    failures = [
        failed(
            job.fence, final=True, fingerprint=fingerprint, finished_ago=ago, started_ago=ago + 1, **values
        )
        for job in claimed
    ]
    Job.objects.fail(failures, worker=WORKER)
    return job_ids


def heads(page: str) -> list[str]:
    """Return the headlines of the causes."""
    return [plain(found) for found in re.findall(r"<h2><a [^>]*>(.*?)</a></h2>", page, re.DOTALL)]


def test_each_cause_stands_once_with_numbers_and_place(boss: Client) -> None:
    died(3, "a" * 32, exception_class="client.Refused", message="no", traceback=TRACEBACK)
    died(2, "b" * 32, ago=600.0, exception_class="builtins.KeyError", message="'x'")
    page = text_of(boss.get(CAUSES))
    assert heads(page) == ["Refused no", "KeyError 'x'"]
    assert "5 dead jobs of 2 causes" in plain(page)
    assert "shop/bank.py:40 in charge return client.post(url)" in plain(page)
    assert 'aria-label="3 jobs between' in page
    assert page.count("<rect") >= 2


def test_the_numbers_of_a_span_are_those_of_its_list_and_its_retry(boss: Client) -> None:
    """The way of an operator: last night's jobs of one cause, and no others."""
    night = died(4, "a" * 32, ago=3600.0)
    other = died(3, "a" * 32)
    now = timezone.localtime()
    first, last = now - dt.timedelta(hours=2), now - dt.timedelta(minutes=30)
    span = {"since_0": f"{first:%Y-%m-%d}", "since_1": f"{first:%H:%M}"}
    span |= {"until_0": f"{last:%Y-%m-%d}", "until_1": f"{last:%H:%M}"}
    page = text_of(boss.get(CAUSES, span))
    assert "4 dead jobs of 1 cause" in plain(page)
    address = html.unescape(re.findall(r'<form method="post" action="([^"]*)"', page)[0])
    assert sorted(ids_of_list(text_of(boss.get(address)))) == night
    form = {"action": "retry_selected", "select_across": "1", "_selected_action": "0"}
    preview = text_of(boss.post(address, form))
    assert 'value="Yes, retry 4 jobs"' in preview
    assert "Cause ValueError: tests.tasks.ok" in plain(preview)
    boss.post(address, {**form, "confirmed": "yes"})
    assert {status_of(job_id) for job_id in night} == {"ready"}
    operation = f"/admin/django_pgqueue/bulkoperation/{BulkOperation.objects.get().pk}/change/"
    assert "Cause ValueError: tests.tasks.ok" in plain(text_of(boss.get(operation)))
    assert {status_of(job_id) for job_id in other} == {"dead"}


def test_a_retried_job_has_no_cause_and_gets_the_next_one(boss: Client) -> None:
    (job_id,) = died(1, "a" * 32)
    assert JobState.objects.get(pk=job_id).cause == "a" * 32
    Job.objects.retry([job_id])
    assert JobState.objects.get(pk=job_id).cause is None
    (job,) = claim_queue()
    Job.objects.fail([failed(job.fence, final=True, fingerprint="b" * 32)], worker=WORKER)
    assert JobState.objects.get(pk=job_id).cause == "b" * 32


def test_lost_jobs_are_told_apart_by_task() -> None:
    jobs = [
        make("running", lease=OVER, max_attempts=1, task_path=path).job_id for path in ("a.b", "a.c", "a.b")
    ]
    Job.objects.rescue(limit=10, server_up=0.0)
    first, second, third = (JobState.objects.get(pk=job_id).cause for job_id in jobs)
    assert first == third != second


def test_only_the_dead_have_a_cause() -> None:
    died(1, "a" * 32)
    enqueue_many(3)
    tried, cancelled, _ = claim_queue(limit=3)
    Job.objects.cancel([cancelled.job_id])
    Job.objects.fail([failed(job.fence, fingerprint="b" * 32) for job in (tried, cancelled)], worker=WORKER)
    make("running", lease=OVER, max_attempts=2)
    Job.objects.rescue(limit=10, server_up=0.0)
    assert set(JobState.objects.values_list("status", "cause")) == {
        ("dead", "a" * 32),
        ("scheduled", None),
        ("cancelled", None),
        ("running", None),
    }


def test_a_failure_without_a_fingerprint_is_found_all_the_same(boss: Client) -> None:
    died(2, "")
    assert "2 dead jobs of 1 cause" in plain(text_of(boss.get(CAUSES)))


def test_nothing_is_dead(boss: Client) -> None:
    assert "No job is dead." in text_of(boss.get(CAUSES))


def test_many_causes_take_the_same_queries(boss: Client) -> None:
    died(1, "a" * 32)
    boss.get(CAUSES)
    with CaptureQueriesContext(connection) as few:
        text_of(boss.get(CAUSES))
    for number in range(30):
        died(1, f"{number:032}")
    with CaptureQueriesContext(connection) as many:
        assert len(heads(text_of(boss.get(CAUSES)))) == 31
    assert len(few) == len(many)


def test_a_flood_of_one_cause_hides_no_other(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_pgqueue.listing.LOOKED_OF_ALL_CAUSES", 40)
    died(30, "a" * 32)
    died(2, "b" * 32)
    page = plain(text_of(boss.get(CAUSES)))
    assert "20+ dead" in page
    assert "2 dead" in page


def test_buttons_need_their_permissions() -> None:
    died(1, "a" * 32)
    page = text_of(visitor("view_job").get(CAUSES))
    assert "Retry 1…" not in page
    assert "Discard 1…" not in page
    assert "Retry 1…" in text_of(visitor("view_job", "retry_job").get(CAUSES))
    assert visitor().get(CAUSES).status_code == 403


@pytest.mark.parametrize(
    "query", ["?since_1=12:00", "?since_0=x", "?since_0=0001-01-01", "?until_0=9999-12-31"]
)
def test_spans_that_make_no_sense_are_no_error(boss: Client, query: str) -> None:
    died(1, "a" * 32)
    text_of(boss.get(CAUSES + query))


def test_secrets_are_hidden(boss: Client) -> None:
    died(1, "a" * 32, message="refused: password=hunter2hunter2")
    assert "hunter2" not in text_of(boss.get(CAUSES))


def test_a_script_in_an_error_is_text(boss: Client) -> None:
    """C67."""
    died(1, "a" * 32, message="<script>alert(1)</script>", exception_class="x.<b>", traceback="<i>")
    page = text_of(boss.get(CAUSES))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert fetch("SELECT count(*) FROM django_pgqueue_attempt")[0]["count"] == 1
