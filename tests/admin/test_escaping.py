"""Whatever a job holds is text, on every page. (C67)"""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client

from django_pgqueue import sql
from django_pgqueue.models import Job
from django_pgqueue.records import WorkerIdentity
from tests.support import claim_queue, enqueue, failed, fetch

from .site import LIST, act, button_of, page_of, text_of

pytestmark = pytest.mark.django_db

EVIL = "<img src=x onerror=alert(1)>"
ESCAPED = "&lt;img src=x onerror=alert(1)&gt;"


@pytest.fixture
def evil() -> int:
    """A dead job that is evil in every text it has."""
    job_id = enqueue(
        task_path=EVIL,
        queue=EVIL,
        args=f'["{EVIL}"]',
        kwargs=f'{{"{EVIL}": 1}}',
        metadata=f'{{"m": "{EVIL}"}}',
        unique_key=EVIL,
    )
    worker = WorkerIdentity(EVIL, EVIL, 1)
    (claimed,) = claim_queue(EVIL, worker=worker)
    texts = dict.fromkeys(("exception_class", "message", "traceback"), EVIL)
    Job.objects.fail([failed(claimed.fence, final=True, **texts)], worker=worker)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {sql.JOB} SET backend = %s", [EVIL])
        cursor.execute(f"UPDATE {sql.ATTEMPT} SET log_tail = %s", [EVIL])
    return job_id


def check(page: str, at_least: int) -> None:
    """The evil text is on the page, as text only."""
    assert EVIL not in page
    assert page.replace("<wbr>", "").count(ESCAPED) >= at_least


@pytest.mark.parametrize("query", [{}, {"status": "dead"}, {"queue": EVIL}, {"task": EVIL}, {"q": EVIL}])
def test_list_is_escaped(boss: Client, evil: int, query: dict[str, str]) -> None:
    page = text_of(boss.get(LIST, query))
    assert f">{evil}<" in page
    check(page, 3)


def test_job_page_is_escaped(boss: Client, evil: int) -> None:
    check(text_of(boss.get(page_of(evil))), 12)


def test_return_value_is_escaped(boss: Client, evil: int) -> None:
    fetch(
        f"UPDATE {sql.ATTEMPT} SET outcome = 'succeeded', return_value = to_json(%s::text) RETURNING 1",
        [EVIL],
    )
    check(text_of(boss.get(page_of(evil))), 13)


def test_a_return_value_that_no_page_can_hold_is_shown(boss: Client, evil: int) -> None:
    fetch(
        f"UPDATE {sql.ATTEMPT} SET outcome = 'succeeded', return_value = %s::json RETURNING 1",
        ['{"\\ud800": "\\udfff"}'],
    )
    page = boss.get(f"/admin/django_pgqueue/job/{evil}/change/")
    assert page.status_code == 200
    assert "d800" in page.content.decode()


def test_running_job_is_escaped(boss: Client, evil: int) -> None:
    Job.objects.retry([evil])
    claim_queue(EVIL, worker=WorkerIdentity(EVIL, EVIL, 1))
    check(text_of(boss.get(page_of(evil))), 12)


def test_confirmations_are_escaped(boss: Client, evil: int) -> None:
    check(text_of(act(boss, "retry_selected", [evil], select_across="1")), 2)
    Job.objects.retry([evil])
    check(text_of(boss.post(button_of(evil, "cancel"))), 2)


def test_messages_history_and_recent_actions_are_escaped(boss: Client, evil: int) -> None:
    response = boss.post(button_of(evil, "retry"), follow=True)
    check(text_of(response), 5)
    assert LogEntry.objects.get().object_repr == f"{EVIL} #{evil}"
    check(text_of(boss.get(f"{LIST}{evil}/history/")), 1)
    check(text_of(boss.get("/admin/")), 1)


def test_hidden_fields_and_links_are_escaped(boss: Client, evil: int) -> None:
    nasty = '"><script>alert(1)</script>'
    for query in ({"queue": nasty}, {"q": nasty}, {"enqueued_at__range__gte_0": nasty}, {"task": nasty}):
        assert "<script>alert" not in text_of(boss.get(LIST, query))
    response = act(boss, "retry_selected", [evil], select_across=nasty)
    assert b"<script>alert" not in response.content
