"""The overview, the queues and the workers: what they show, who may do what; looking changes nothing."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_pgqueue.operating import QueuePause, QueueSample, Rollup, Worker
from django_pgqueue.registry import ChildProcess, Registration
from django_pgqueue.testing import forward_time
from tests import support
from tests.support import fetch

from .jobs import dead
from .site import Tags, plain, text_of, visitor

pytestmark = pytest.mark.django_db
APP = "/admin/django_pgqueue/"
OVERVIEW, QUEUES, WORKERS = APP + "overview/", APP + "queuepause/", APP + "worker/"
PAGES = [OVERVIEW, OVERVIEW + "?window=24h", QUEUES, WORKERS]
LIVE = [OVERVIEW + "live/", OVERVIEW + "live/?window=24h", QUEUES + "live/", WORKERS + "live/"]
ACT, STOP = QUEUES + "act/", WORKERS + "stop/"


def register(worker_id: str = "web-1.10.abc", **changes: Any) -> None:
    """Write a worker's line."""
    line: dict[str, Any] = {
        "worker_id": worker_id,
        "host": "web-1",
        "pid": 10,
        "started_ago": 7200.0,
        "heartbeat": 60.0,
        "queues": ("default",),
        "processes": 2,
        "threads": 4,
        "version": "0.1.0",
        "release": "spring",
        "memory": 321,
        "is_stopping": False,
        "children": (ChildProcess("worker-1", 11, 100, 1),),
    }
    Worker.objects.beat(Registration(**(line | changes)), connection=connection)


def count_attempts() -> None:
    for _ in range(2):  # the first makes the mark
        Rollup.objects.count_attempts(limit=1000, connection=connection)


def tiles(page: str) -> dict[str, str]:
    found = re.findall(r'<span class="pgq-label">(.*?)</span> <strong>(.*?)</strong>', page)
    return {plain(label): plain(value) for label, value in found}


def concerns(page: str) -> list[str]:
    return [plain(found) for found in re.findall(r'<li class="pgq-concern-\w+">(.*?)</li>', page, re.DOTALL)]


def act(client: Client, act: str, queue: str = "default", **fields: str) -> Any:
    return client.post(ACT, {"act": act, "queue": queue, **fields}, follow=True)


# --- the overview


def test_an_empty_queue_has_an_overview(boss: Client) -> None:
    page = text_of(boss.get(OVERVIEW))
    assert tiles(page) == {
        "Ready": "0",
        "Oldest ready": "–",
        "Running": "0",
        "Scheduled": "0",
        "Dead": "0",
        "Failure rate": "–",
    }
    assert "No attempt ended." in page
    assert concerns(page) == ["No worker is running. Workers"]


def test_the_numbers_of_the_present(boss: Client) -> None:
    support.running(2)
    dead(4, queue="emails")
    for _ in range(3):
        support.enqueue()
    support.enqueue(delay=7200.0)
    register()
    page = text_of(boss.get(OVERVIEW))
    found = tiles(page)
    assert (found["Ready"], found["Running"], found["Scheduled"], found["Dead"]) == ("3", "2", "1", "4")
    assert "8 slots of 1 workers" in page
    assert concerns(page) == []


@pytest.mark.django_db(transaction=True)
def test_the_numbers_of_the_past_come_from_rollups(boss: Client) -> None:
    support.make("succeeded")
    support.make("dead", failures=1)
    assert tiles(text_of(boss.get(OVERVIEW)))["Failure rate"] == "–", "nothing was counted yet"
    count_attempts()
    page = text_of(boss.get(OVERVIEW))
    assert tiles(page)["Failure rate"] == "66.7 %"
    assert "2 of 3 attempts, last hour" in page
    assert "1 succeeded, 2 failed or lost" in plain(page)
    assert "tests.tasks.ok" in plain(page)
    assert 'class="pgq-bad-bar"' in page


@pytest.mark.django_db(transaction=True)
def test_a_day_has_other_bins(boss: Client) -> None:
    support.make("succeeded")
    count_attempts()
    page = text_of(boss.get(OVERVIEW + "?window=24h"))
    assert "each bar 15 min" in page
    assert "1 succeeded" in plain(page)
    assert "each bar 1 min" in text_of(boss.get(OVERVIEW + "?window=nonsense"))


def test_a_deep_queue_is_estimated_and_said_to_be(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    support.enqueue_many(30)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE django_pgqueue_jobstate")
    (depth,) = QueueSample.objects.depths(limit=10)
    assert depth.is_estimate
    assert 20 <= depth.ready <= 40
    (exact,) = QueueSample.objects.depths(limit=31)
    assert (exact.ready, exact.is_estimate) == (30, False)


def test_the_oldest_ready_job_is_found_behind_urgent_ones() -> None:
    support.enqueue(priority=-5)
    forward_time(100)
    support.enqueue_many(20, priority=5)
    (depth,) = QueueSample.objects.depths(limit=10)
    assert 100 <= (depth.waited or 0) < 200


def test_what_needs_somebody_is_said_with_the_worst_first(boss: Client) -> None:
    support.enqueue(queue="emails")
    support.enqueue(queue="other")
    forward_time(400)
    register(queues=("default", "other"))
    register("web-2.10.abc", heartbeat=0.001)
    fetch(
        "UPDATE django_pgqueue_worker SET beat_at = now() - interval '1 min' WHERE heartbeat < 1 RETURNING 1"
    )
    QueuePause.objects.pause("default", by="anna")
    assert concerns(text_of(boss.get(OVERVIEW))) == [
        "No worker serves the queue “emails”, where a job has waited for 6 min. Its jobs",
        "1 worker has not been heard of and is taken for dead. Workers",
        "The oldest job of the queue “other” has waited for 6 min. Its jobs",
        "The queue “default” is paused, by anna. Queues",
    ]


def test_jobs_that_wait_without_any_worker_are_the_first_concern(boss: Client) -> None:
    support.enqueue()
    assert concerns(text_of(boss.get(OVERVIEW)))[0] == "No worker is running, and jobs are waiting. Workers"


def test_the_app_s_page_in_the_index_shows_the_overview(boss: Client) -> None:
    support.enqueue()
    page = text_of(boss.get(APP))
    assert tiles(page)["Ready"] == "1"
    assert f'data-pgq-live="{OVERVIEW}live/"' in page
    assert OVERVIEW in text_of(boss.get("/admin/"))


def test_the_app_s_page_shows_a_stranger_no_overview() -> None:
    user = User.objects.create_user("half", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="pause_queue"))
    client = Client()
    client.force_login(user)
    response = client.get(APP)
    assert response.status_code == 404 or not tiles(response.content.decode())


# --- queues


def test_a_queue_is_paused_and_resumed_and_both_are_in_the_log(boss: Client) -> None:
    page = text_of(act(boss, "pause", reason="the mail server is down"))
    assert QueuePause.objects.present()["default"].reason == "the mail server is down"
    assert "“default”: Paused." in page
    assert "Paused by" in page
    assert "the mail server is down" in page
    page = text_of(act(boss, "resume"))
    assert QueuePause.objects.present() == {}
    entries = [(entry.object_id, entry.change_message) for entry in LogEntry.objects.order_by("pk")]
    assert entries == [("default", "Paused. the mail server is down"), ("default", "Resumed.")]
    assert "the mail server is down" in page, "what was done lately stays to be read"


def test_pressing_twice_changes_nothing_and_says_so(boss: Client) -> None:
    act(boss, "pause", reason="first")
    assert "it is so already" in text_of(act(boss, "pause", reason="second"))
    assert QueuePause.objects.present()["default"].reason == "first"
    act(boss, "resume")
    assert "it is so already" in text_of(act(boss, "resume"))
    assert LogEntry.objects.count() == 2


def test_a_drain_ends_as_a_pause_when_nothing_is_left(boss: Client) -> None:
    claimed = support.running(1)
    act(boss, "drain")
    assert QueuePause.objects.end_drains() == []
    support.settle_one("complete", claimed[0].fence)
    assert QueuePause.objects.end_drains() == ["default"]
    assert not QueuePause.objects.present()["default"].is_draining


def test_all_queues_are_paused_at_once(boss: Client) -> None:
    page = text_of(act(boss, "pause", queue=""))
    assert set(QueuePause.objects.present()) == {""}
    assert "All queues were paused by" in page
    assert "no job is begun" in concerns(text_of(boss.get(OVERVIEW)))[-1]
    act(boss, "resume", queue="")
    assert QueuePause.objects.present() == {}


@pytest.mark.parametrize(
    ("name", "queue"), [("pause", "no such queue"), ("explode", "default"), ("drain", ""), ("", "")]
)
def test_what_the_page_does_not_offer_is_refused(boss: Client, name: str, queue: str) -> None:
    assert "cannot be done" in text_of(act(boss, name, queue=queue))
    assert QueuePause.objects.present() == {}


# --- workers


def test_a_worker_with_what_it_runs(boss: Client) -> None:
    (job,) = support.running(1)
    register()
    page = text_of(boss.get(WORKERS))
    assert "web-1, process 10" in page
    assert "321 MB" in page
    assert "spring" in page
    assert f'/job/{job.job_id}/change/">#{job.job_id}' in page
    assert "Jobs of workers without a line" not in page


def test_jobs_of_unknown_workers_are_shown_too(boss: Client) -> None:
    (job,) = support.running(1)
    page = text_of(boss.get(WORKERS))
    assert "Jobs of workers without a line" in page
    assert f"#{job.job_id}" in page


def test_a_worker_is_asked_to_stop_once(boss: Client) -> None:
    register()
    page = text_of(boss.post(STOP, {"worker_id": "web-1.10.abc"}, follow=True))
    assert "was asked to stop" in page
    assert "Asked to stop by" in page
    assert "gone, or was asked before" in text_of(boss.post(STOP, {"worker_id": "web-1.10.abc"}, follow=True))
    assert "gone, or was asked before" in text_of(boss.post(STOP, {"worker_id": "web\x00"}, follow=True))
    assert LogEntry.objects.count() == 1
    register()
    (worker,) = Worker.objects.registered()
    assert worker.stop_requested_at is not None, "its next beat does not forget it"


# --- who may


@pytest.mark.parametrize("address", [*PAGES, *LIVE])
def test_looking_needs_the_permission_to_look(address: str) -> None:
    assert visitor("pause_queue", "stop_worker").get(address).status_code == 403
    assert visitor("view_job").get(address).status_code == 200
    assert Client().get(address).status_code == 302


@pytest.mark.parametrize(
    ("address", "permission", "data"),
    [
        (ACT, "pause_queue", {"act": "pause", "queue": "default"}),
        (STOP, "stop_worker", {"worker_id": "web-1.10.abc"}),
    ],
)
def test_each_act_needs_its_own_permission(address: str, permission: str, data: dict[str, str]) -> None:
    register()
    other = ({"pause_queue", "stop_worker"} - {permission}).pop()
    for outsider in (visitor("view_job", other), visitor(permission)):
        assert outsider.post(address, data).status_code == 403
    assert QueuePause.objects.present() == {}
    assert Worker.objects.registered()[0].stop_requested_at is None
    page = address.rsplit("/", 2)[0] + "/"
    assert f'action="{address}"' not in text_of(visitor("view_job", other).get(page))
    insider = visitor("view_job", permission)
    assert f'action="{address}"' in text_of(insider.get(page))
    assert insider.post(address, data).status_code == 302
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize("address", [ACT, STOP])
def test_get_does_nothing(boss: Client, address: str) -> None:
    assert boss.get(address, {"act": "pause", "queue": "default"}).status_code == 405


@pytest.mark.parametrize("address", [ACT, STOP])
def test_post_without_a_csrf_token_is_refused(address: str) -> None:
    User.objects.create_superuser("boss")
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get())
    assert client.post(address, {"act": "pause", "queue": "default"}).status_code == 403


# --- how


@pytest.mark.parametrize("address", [*PAGES, *LIVE, APP])
def test_get_reads_only(boss: Client, address: str) -> None:
    support.running(1)
    register()
    with transaction.atomic():
        fetch("SELECT set_config('transaction_read_only', 'on', true)")
        text_of(boss.get(address))
        transaction.set_rollback(True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("address", [*PAGES, *LIVE])
def test_the_number_of_queries_is_constant(boss: Client, address: str) -> None:
    boss.get(address)
    with CaptureQueriesContext(connection) as few:
        boss.get(address)
    for number in range(30):
        support.make("succeeded", queue=f"queue-{number}", task_path=f"tests.tasks.task_{number}")
        support.running(1, queue=f"queue-{number}")
        support.enqueue(queue=f"queue-{number}")
        register(f"worker-{number}")
    count_attempts()
    with CaptureQueriesContext(connection) as many:
        boss.get(address)
    assert len(many) == len(few) < 25


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("address", [*PAGES, APP])
def test_nothing_is_inline(boss: Client, address: str) -> None:
    """No script, no style, no handler inside the page: a strict policy lets none of them through."""
    support.make("dead")
    count_attempts()
    for name, attributes in Tags(text_of(boss.get(address))).found:
        assert name != "style"
        assert name != "script" or attributes.get("src") or attributes.get("type") == "application/json"
        assert not [key for key in attributes if key == "style" or key.startswith("on")], (name, attributes)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("address", [*PAGES, *LIVE])
def test_names_are_escaped(boss: Client, address: str) -> None:
    nasty = "<b>&\"'\u202e"
    support.make("dead", queue=nasty, task_path=f"shop.{nasty}")
    support.enqueue(queue=nasty)
    support.running(1, queue=nasty, task_path=f"shop.{nasty}")
    QueuePause.objects.pause(nasty, by=nasty, reason=nasty)
    register(host=nasty, release=nasty, queues=(nasty,))
    count_attempts()
    page = text_of(boss.get(address))
    assert "<b>" not in page
    assert "\u202e" not in re.sub(r'value="[^"]*"|href="[^"]*"', "", page)


def test_the_live_part_is_never_kept(boss: Client) -> None:
    for address in LIVE:
        response = boss.get(address)
        assert "no-store" in response.headers["Cache-Control"]
        assert "<html" not in text_of(response)
