"""Retry, Cancel, Run now: only where they apply, told in numbers, logged, by the thousand."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from django_pgqueue import sql, states
from django_pgqueue.admin import repairs
from django_pgqueue.models import Job
from tests.support import claim, enqueue, enqueue_many, fetch, make, rows_of, settle_one, status_of

from .jobs import dead
from .site import LIST, act, button_of, confirm, messages_of, page_of, plain, text_of, visitor

pytestmark = pytest.mark.django_db


def one_of_each() -> dict[str, int]:
    """Return a job in each state."""
    return {status: make(status).job_id for status in states.STATUSES}


def logged() -> list[tuple[str, str, str]]:
    """Return the admin log: the id, the name and the message of each entry."""
    entries = LogEntry.objects.order_by("pk")
    assert {entry.action_flag for entry in entries} <= {CHANGE}
    return [(str(entry.object_id), entry.object_repr, entry.get_change_message()) for entry in entries]


def test_retry_takes_dead_and_cancelled_jobs_only(boss: Client) -> None:
    """C64."""
    made = one_of_each()
    untouched = {
        made[status]: rows_of(made[status])
        for status in states.STATUSES
        if status not in ("dead", "cancelled")
    }
    act(boss, "retry_selected", list(made.values()))
    assert [status_of(made["dead"]), status_of(made["cancelled"])] == ["ready", "ready"]
    assert {job_id: rows_of(job_id) for job_id in untouched} == untouched
    assert messages_of(boss) == ["2 jobs retried, 4 skipped because they are not dead or cancelled."]


def test_cancel_ends_waiting_jobs_and_asks_running_ones(boss: Client) -> None:
    made = one_of_each()
    act(boss, "cancel_selected", list(made.values()), confirmed="yes")
    assert [status_of(made["scheduled"]), status_of(made["ready"])] == ["cancelled", "cancelled"]
    assert status_of(made["running"]) == "running"
    assert Job.objects.get(pk=made["running"]).state.cancel_requested_at
    assert messages_of(boss) == [
        "2 jobs cancelled, 1 running job asked to stop, 3 skipped because they have ended."
    ]


def test_run_now_takes_scheduled_jobs_only(boss: Client) -> None:
    made = one_of_each()
    act(boss, "run_selected_now", list(made.values()))
    assert status_of(made["scheduled"]) == "ready"
    assert status_of(made["dead"]) == "dead"
    assert messages_of(boss) == ["1 job made ready, 5 skipped because they are not scheduled."]


@pytest.mark.parametrize(
    ("name", "status", "after", "message"),
    [
        ("retry", "dead", "ready", "1 job retried."),
        ("retry", "cancelled", "ready", "1 job retried."),
        ("retry", "running", "running", "1 skipped because it is not dead or cancelled."),
        ("retry", "succeeded", "succeeded", "1 skipped because it is not dead or cancelled."),
        ("run-now", "scheduled", "ready", "1 job made ready."),
        ("run-now", "ready", "ready", "1 skipped because it is not scheduled."),
        ("cancel", "dead", "dead", "1 skipped because it has ended."),
    ],
)
def test_button_does_what_it_says_or_tells_why_not(
    boss: Client, name: str, status: str, after: str, message: str
) -> None:
    job_id = make(status).job_id
    response = boss.post(button_of(job_id, name))
    assert (response.status_code, response.headers["Location"]) == (302, page_of(job_id))
    assert status_of(job_id) == after
    assert messages_of(boss) == [message]


def test_cancel_button_asks_first(boss: Client) -> None:
    job_id = make("running").job_id
    page = plain(text_of(boss.post(button_of(job_id, "cancel"))))
    assert "1 running job will be asked to stop" in page
    assert Job.objects.get(pk=job_id).state.cancel_requested_at is None
    boss.post(button_of(job_id, "cancel"), {"confirmed": "yes"})
    assert Job.objects.get(pk=job_id).state.cancel_requested_at
    assert messages_of(boss) == ["1 running job asked to stop."]


def test_retry_from_a_page_opened_before_the_job_ran_again_is_told(boss: Client) -> None:
    """C64."""
    job_id = make("dead").job_id
    Job.objects.retry([job_id])
    claimed = claim(job_id)
    act(boss, "retry_selected", [job_id], query="?status=dead")
    assert status_of(job_id) == "running"
    assert settle_one("complete", claimed.fence) == "done"
    assert messages_of(boss) == ["1 skipped because it is not dead or cancelled."]


@pytest.mark.django_db(transaction=True)
def test_two_identical_posts_at_once_retry_once() -> None:
    """C64."""
    job_ids = dead(20)
    clients = [visitor(is_superuser=True) for _ in range(2)]

    def post(client: Client) -> int:
        try:
            return act(client, "retry_selected", job_ids).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor() as threads:
        assert list(threads.map(post, clients)) == [302, 302]
    assert sorted(entry[0] for entry in logged()) == sorted(str(job_id) for job_id in job_ids)
    told = sorted(text for client in clients for text in messages_of(client))
    assert told == ["20 jobs retried.", "20 skipped because they are not dead or cancelled."]


def test_one_clash_of_keys_stops_no_other_job(boss: Client) -> None:
    """C65."""
    jobs = [make("dead", unique_key=f"key-{number}").job_id for number in range(50)]
    live = [enqueue(unique_key=f"key-{number}") for number in (3, 7)]
    act(boss, "retry_selected", jobs)
    assert messages_of(boss) == ["48 jobs retried, 2 conflict with live jobs of the same unique keys."]
    assert [status_of(jobs[number]) for number in (3, 7)] == ["dead", "dead"]
    assert {status_of(job_id) for job_id in live} == {"ready"}
    assert len(logged()) == 48


def test_two_dead_jobs_of_one_key_become_one_live_job(boss: Client) -> None:
    """C65."""
    jobs = [make("dead", unique_key="key").job_id for _ in range(2)]
    act(boss, "retry_selected", jobs)
    assert messages_of(boss) == ["1 job retried, 1 conflicts with a live job of the same unique key."]
    assert [status_of(job_id) for job_id in jobs] == ["dead", "ready"]


def test_each_changed_job_is_in_the_log_with_its_user() -> None:
    """C68."""
    client = visitor("view_job", "retry_job", "cancel_job", "run_job")
    user = User.objects.get()
    made = one_of_each()
    act(client, "retry_selected", list(made.values()))
    boss_id = LogEntry.objects.values_list("user", flat=True).distinct().get()
    assert boss_id == user.pk
    name = "tests.tasks.ok #"
    assert sorted(logged()) == sorted(
        (str(made[status]), f"{name}{made[status]}", "Retried.") for status in ("dead", "cancelled")
    )
    LogEntry.objects.all().delete()
    act(client, "cancel_selected", list(made.values()), confirmed="yes")
    assert {message for _id, _name, message in logged()} == {"Cancelled.", "Asked to stop."}
    LogEntry.objects.all().delete()
    job_id = make("scheduled").job_id
    client.post(button_of(job_id, "run-now"))
    assert logged() == [(str(job_id), f"{name}{job_id}", "Made ready to run now.")]


def test_confirmation_counts_what_would_change_and_changes_nothing(boss: Client) -> None:
    made = one_of_each()
    more = [make("dead").job_id for _ in range(11)]
    response = act(boss, "retry_selected", [made["ready"]], select_across="1")
    page = plain(text_of(response))
    assert "13 dead or cancelled jobs will become ready" in page
    assert "and 3 more" in page
    assert f"#{more[-1]}" in page
    assert 'value="Yes, retry 13 jobs"' in text_of(response)
    assert {status_of(job_id) for job_id in more} == {"dead"}


def test_confirmation_of_a_cancel_tells_waiting_from_running(boss: Client) -> None:
    made = one_of_each()
    page = plain(text_of(act(boss, "cancel_selected", list(made.values()))))
    assert "2 waiting jobs will be cancelled at once." in page
    assert "1 running job will be asked to stop" in page
    assert status_of(made["ready"]) == "ready"


def test_confirmation_of_nothing_offers_no_button(boss: Client) -> None:
    page = text_of(act(boss, "cancel_selected", [make("dead").job_id]))
    assert "nothing would change" in page
    assert "Yes, " not in page


def test_confirmed_form_is_what_the_page_posts(boss: Client) -> None:
    jobs = dead(60)
    query = "?status=dead&queue=default"
    page = text_of(act(boss, "retry_selected", jobs[:1], query, select_across="1"))
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(
        r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page.partition('id="content-main"')[2]
    ):
        fields.setdefault(name, []).append(value)
    boss.post(LIST + query, fields)
    assert messages_of(boss) == ["60 jobs retried."]


def test_all_across_pages_means_those_that_the_filters_leave(boss: Client) -> None:
    """C66."""
    taken = dead(60, queue="emails")
    left = dead(3, queue="other")
    confirm(boss, "retry_selected", "?status=dead&queue=emails")
    assert messages_of(boss) == ["60 jobs retried."]
    assert {status_of(job_id) for job_id in taken} == {"ready"}
    assert {status_of(job_id) for job_id in left} == {"dead"}


@pytest.mark.parametrize(
    "query", ["?enqueued_at__range__gte_1=12:00", "?status=nonsense", "?q=x%00", "?task=none"]
)
def test_filter_that_makes_no_sense_retries_nothing(boss: Client, query: str) -> None:
    job_id = make("dead").job_id
    confirm(boss, "retry_selected", query)
    assert status_of(job_id) == "dead"
    assert "There was nothing to do." in messages_of(boss)


def test_an_error_in_the_log_leaves_the_jobs_as_they_were(
    boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("no log today")

    monkeypatch.setattr(repairs, "_log", fail)
    job_id = make("dead").job_id
    with pytest.raises(RuntimeError, match="no log today"):
        boss.post(button_of(job_id, "retry"))
    assert status_of(job_id) == "dead"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("name", "status"), [("retry", "dead"), ("run-now", "scheduled")])
def test_worker_that_sleeps_is_woken(
    connect: Callable[[], psycopg.Connection], name: str, status: str
) -> None:
    sleeper = connect()
    sleeper.execute(sql.LISTEN)
    sleeper.execute(sql.SLEEP, {"queue": "emails"})
    job_id = make(status, queue="emails").job_id
    visitor(is_superuser=True).post(button_of(job_id, name))
    heard = [notice.payload for notice in sleeper.notifies(timeout=5.0, stop_after=1)]
    assert heard == ["emails"]


def test_nothing_selected_changes_nothing(boss: Client) -> None:
    job_id = make("dead").job_id
    act(boss, "retry_selected", [])
    assert status_of(job_id) == "dead"


def test_actions_of_jobs_pruned_meanwhile_are_counted_as_skipped(boss: Client) -> None:
    kept, gone = make("dead").job_id, make("dead").job_id
    for table, column in ((sql.STATE, "job_id"), (sql.ATTEMPT, "job_id"), (sql.JOB, "id")):
        fetch(f"DELETE FROM {table} WHERE {column} = %s RETURNING 1", [gone])
    act(boss, "retry_selected", [kept, gone])
    assert messages_of(boss) == ["1 job retried, 1 skipped because it is not dead or cancelled."]
    assert [entry[0] for entry in logged()] == [str(kept)]


def test_numbers_are_written_for_people(boss: Client) -> None:
    Job.objects.cancel(enqueue_many(1100))
    confirm(boss, "retry_selected", "?status=cancelled")
    assert messages_of(boss) == ["1,100 jobs retried."]
