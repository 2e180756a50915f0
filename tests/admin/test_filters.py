"""The filters find what they say, cost index probes, and never widen the list by mistake."""

import datetime as dt
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_pgqueue import sql, states
from django_pgqueue.models import Job
from tests.support import enqueue, enqueue_many, fetch, make, running, settle_one

from .paging import walk_through
from .site import LIST, Tags, ids_of_list, text_of

pytestmark = pytest.mark.django_db


def found(client: Client, **query: str) -> list[int]:
    """Return the ids that the list shows with these parameters, in order of id."""
    return sorted(ids_of_list(text_of(client.get(LIST, query))))


def between(field: str, first: dt.datetime | None = None, last: dt.datetime | None = None) -> dict[str, str]:
    """Return the parameters of a range of times."""
    ends = {"gte": first, "lte": last}
    return {
        f"{field}__range__{end}_{part}": f"{moment:{text}}"
        for end, moment in ends.items()
        if moment
        for part, text in enumerate(("%Y-%m-%d", "%H:%M:%S"))
    }


def enqueued(job_ids: list[int], ago: dt.timedelta) -> None:
    """Move the time of enqueueing of jobs into the past."""
    fetch(
        "UPDATE django_pgqueue_job SET enqueued_at = now() - %s WHERE id = ANY(%s) RETURNING id",
        [ago, job_ids],
    )


@pytest.mark.parametrize("status", states.STATUSES)
def test_state_filter_shows_that_state_only(boss: Client, status: str) -> None:
    made = {each: make(each).job_id for each in states.STATUSES}
    assert found(boss, status=status) == [made[status]]


def test_states_are_counted_as_far_as_is_cheap(boss: Client) -> None:
    enqueue_many(1001)
    make("dead")
    page = text_of(boss.get(LIST))
    assert "Ready (999+)" in page
    assert "Dead (1)" in page
    assert "Cancelled (0)" in page


def test_queue_and_task_filters_show_theirs_only(boss: Client) -> None:
    mail = enqueue(queue="emails", task_path="shop.mail")
    pay = enqueue(task_path="shop.pay")
    assert found(boss, queue="emails") == [mail]
    assert found(boss, task="shop.pay") == [pay]
    assert found(boss, queue="emails", task="shop.pay") == []


def test_queues_of_the_settings_and_of_ready_jobs_are_offered(boss: Client) -> None:
    enqueue(queue="surprise")
    make("dead", queue="over")
    page = text_of(boss.get(LIST))
    for queue in ("default", "other", "emails", "surprise"):
        assert f"?queue={queue}" in page
    assert "?queue=over" not in page
    assert 'aria-current="true">over</a>' in text_of(boss.get(LIST, {"queue": "over"}))


@override_settings(TASKS={"default": {"BACKEND": "django_pgqueue.backend.PgQueueBackend", "QUEUES": []}})
def test_queue_filter_works_when_any_queue_is_allowed(boss: Client) -> None:
    enqueue(queue="surprise")
    assert "?queue=surprise" in text_of(boss.get(LIST))


def test_tasks_are_found_by_probes_not_by_a_distinct_scan(boss: Client) -> None:
    for path in ("shop.c", "shop.a", "shop.b"):
        enqueue_many(3, task_path=path)
    with CaptureQueriesContext(connection) as queries:
        assert Job.objects.task_paths() == ["shop.a", "shop.b", "shop.c"]
        text_of(boss.get(LIST))
    assert not any("DISTINCT" in query["sql"] for query in queries)


@pytest.mark.parametrize(
    "query", [{"status": "nonsense"}, {"queue": "x\x00"}, {"task": "nope"}, {"queue": ""}]
)
def test_value_that_makes_no_sense_finds_nothing(boss: Client, query: dict[str, str]) -> None:
    enqueue()
    assert found(boss, **query) == []


def test_enqueued_range_holds_its_ends(boss: Client) -> None:
    old, middle, new = enqueue_many(2), enqueue_many(2), enqueue_many(2)
    enqueued(old, dt.timedelta(days=3))
    enqueued(middle, dt.timedelta(days=2))
    now = timezone.now()
    day = dt.timedelta(days=1)
    assert found(boss, **between("enqueued_at", now - 2.5 * day, now - 1.5 * day)) == middle
    assert found(boss, **between("enqueued_at", now - 2.5 * day)) == [*middle, *new]
    assert found(boss, **between("enqueued_at", None, now - 1.5 * day)) == [*old, *middle]
    exact = Job.objects.get(pk=middle[0]).enqueued_at.replace(microsecond=0)
    assert found(boss, **between("enqueued_at", exact, exact + dt.timedelta(seconds=1))) == middle


def test_ended_range_holds_jobs_that_ended_in_it(boss: Client) -> None:
    jobs = [make("running").fence for _ in range(3)]
    for hours, fence in enumerate(jobs):
        settle_one("complete", fence, started_ago=hours * 3600 + 1.0, finished_ago=hours * 3600.0)
    make("ready")
    now = timezone.now()
    hour = dt.timedelta(hours=1)
    assert found(boss, **between("state__finished_at", now - 1.5 * hour, now - 0.5 * hour)) == [
        jobs[1].job_id
    ]
    page = text_of(boss.get(LIST, between("state__finished_at", now - 1.5 * hour)))
    assert ids_of_list(page) == [jobs[0].job_id, jobs[1].job_id]


def test_ended_range_merges_the_states_in_order_of_their_ends(boss: Client) -> None:
    verbs = [("complete", {}), ("fail", {"final": True}), ("cancel_held", {})] * 20
    jobs = running(60)
    for place, (job, (verb, values)) in enumerate(zip(jobs, verbs, strict=True)):
        settle_one(verb, job.fence, started_ago=200.0, finished_ago=100.0 - place, **values)
    query = between("state__finished_at", timezone.now() - dt.timedelta(hours=1))
    pages = walk_through(boss, f"?{urlencode(query)}")
    assert [job_id for page in pages for job_id in page] == [job.job_id for job in jobs[::-1]]


def test_ranges_of_both_times_and_a_state_are_combined(boss: Client) -> None:
    dead, _done = make("dead").job_id, make("succeeded").job_id
    hour_ago = timezone.now() - dt.timedelta(hours=1)
    ranges = between("enqueued_at", hour_ago) | between("state__finished_at", hour_ago)
    assert found(boss, status="dead", **ranges) == [dead]


def test_day_without_a_time_is_the_whole_day(boss: Client) -> None:
    job_id = enqueue()
    enqueued([job_id], dt.timedelta(0))
    today = f"{Job.objects.get(pk=job_id).enqueued_at:%Y-%m-%d}"
    assert found(boss, enqueued_at__range__gte_0=today, enqueued_at__range__lte_0=today) == [job_id]


@pytest.mark.parametrize("time", ["12:00", "nonsense", "\x00"])
def test_range_that_cannot_be_read_finds_nothing_and_says_why(boss: Client, time: str) -> None:
    enqueue()
    page = text_of(boss.get(LIST, {"enqueued_at__range__gte_1": time}))
    assert ids_of_list(page) == []
    assert 'class="errorlist' in page
    assert "The filter by time of enqueueing cannot be read" in page


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31", "1970-01-01"])
@pytest.mark.parametrize("end", ["gte", "lte"])
@pytest.mark.parametrize("field", ["enqueued_at", "state__finished_at"])
def test_ends_of_the_calendar_are_no_error(boss: Client, field: str, end: str, day: str) -> None:
    make("dead")
    text_of(boss.get(LIST, {f"{field}__range__{end}_0": day}))


def test_range_form_needs_no_script_and_keeps_the_other_filters(boss: Client) -> None:
    query = {"status": "dead", "q": "pay", "p": "1", "enqueued_at__range__gte_0": "2026-01-02"}
    tags = Tags(text_of(boss.get(LIST, query))).found
    inputs = [attrs for tag, attrs in tags if tag == "input"]
    dates = {attrs["name"]: attrs for attrs in inputs if attrs.get("type") == "date"}
    assert dates["enqueued_at__range__gte_0"]["value"] == "2026-01-02"
    hidden = {(attrs["name"], attrs.get("value")) for attrs in inputs if attrs.get("type") == "hidden"}
    assert {("status", "dead"), ("q", "pay")} <= hidden
    assert ("p", "1") not in hidden


def test_shortcut_reaches_back_one_hour(boss: Client) -> None:
    job_ids = enqueue_many(2)
    enqueued(job_ids[:1], dt.timedelta(hours=2))
    links = [
        a["href"]
        for tag, a in Tags(text_of(boss.get(LIST))).found
        if tag == "a" and "enqueued_at" in (a["href"] or "")
    ]
    assert ids_of_list(text_of(boss.get(LIST + (links[0] or "")))) == job_ids[1:]


@override_settings(TIME_ZONE="Asia/Shanghai")
def test_times_are_the_readers(boss: Client) -> None:
    with timezone.override("Asia/Shanghai"):
        job_id = enqueue()
        local = timezone.localtime(Job.objects.get(pk=job_id).enqueued_at)
    minute = dt.timedelta(minutes=1)
    assert found(boss, **between("enqueued_at", local - minute, local + minute)) == [job_id]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    gaps=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    gone=st.integers(0, 12),
    target=st.integers(-2, 30),
)
def test_first_id_at_is_the_first_job_that_is_not_earlier(
    db: None, gaps: list[int], gone: int, target: int
) -> None:
    for table in (sql.ATTEMPT, sql.STATE, sql.JOB):
        fetch(f"DELETE FROM {table} RETURNING 1")
    moment = start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    times = {}
    for job_id, gap in zip(enqueue_many(len(gaps)), gaps, strict=True):
        times[job_id] = moment = moment + dt.timedelta(seconds=gap)
        fetch("UPDATE django_pgqueue_job SET enqueued_at = %s WHERE id = %s RETURNING id", [moment, job_id])
    for job_id in list(times)[gone // 2 : gone]:
        del times[job_id]
        fetch("DELETE FROM django_pgqueue_job WHERE id = %s RETURNING id", [job_id])
    wanted = start + dt.timedelta(seconds=target)
    first = Job.objects.first_id_at(wanted)
    assert {job_id for job_id in times if job_id >= first} == {
        j for j, when in times.items() if when >= wanted
    }
