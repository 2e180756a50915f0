"""A job again with other arguments, in another queue, with another priority; and its timeline."""

import json
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_pgqueue.durable import JobStep
from django_pgqueue.models import Job
from tests.support import claim, enqueue, fence_of, make, settle_one, state_of, status_of

from .site import messages_of, page_of, plain, text_of, visitor

pytestmark = pytest.mark.django_db


def rerun_of(job_id: int) -> str:
    return page_of(job_id).replace("/change/", "/rerun/")


def move_of(job_id: int) -> str:
    return page_of(job_id).replace("/change/", "/move/")


def newest() -> Job:
    return Job.objects.order_by("-pk").select_related("state")[0]


# --- with other arguments


def test_it_makes_a_new_job_and_leaves_the_old_one(boss: Client) -> None:
    old = make(
        "dead", task_path="tests.tasks.mail", args='["ann@example.org", 2]', queue="emails", priority=7
    ).job_id
    page = text_of(boss.get(rerun_of(old)))
    assert "ann@example.org" in page
    response = boss.post(rerun_of(old), {"args": '["bob@example.org", 2]', "kwargs": "{}"})
    new = newest()
    assert response.headers["Location"] == page_of(new.pk)
    assert (new.args, new.kwargs, new.queue, new.priority) == (["bob@example.org", 2], {}, "emails", 7)
    assert (new.metadata["rerun_of"], new.state.status) == (old, "ready")
    assert status_of(old) == "dead"
    page = text_of(boss.get(page_of(new.pk)))
    assert f'Made with other arguments from <a href="{page_of(old)}">job {old}</a>' in " ".join(page.split())
    assert LogEntry.objects.get().change_message == f"Run again with other arguments, as job {new.pk}."


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ("[1", "{}", "This cannot be read as JSON"),
        ("{}", "{}", "A list is needed."),
        ("[1, 2]", "[]", "An object is needed."),
        ("[NaN, 2]", "{}", "This cannot be read as JSON"),
        ("[1, 2, 3]", "{}", "too many positional arguments"),
        ("[]", "{}", "missing a required argument"),
        ("[" * 5000, "{}", "This cannot be read as JSON"),
    ],
)
def test_what_the_task_cannot_take_is_refused_with_the_reason(
    boss: Client, args: str, kwargs: str, why: str
) -> None:
    old = make("dead", task_path="tests.tasks.mail", args="[1, 2]").job_id
    page = text_of(boss.post(rerun_of(old), {"args": args, "kwargs": kwargs}))
    assert why in plain(page).replace("&#x27;", "'")
    assert newest().pk == old


def test_a_task_that_this_code_lacks_is_refused(boss: Client) -> None:
    old = make("dead", task_path="no.such.task").job_id
    assert "no.such.task" in text_of(boss.post(rerun_of(old), {"args": "[]", "kwargs": "{}"}))
    assert newest().pk == old


def test_hidden_values_stay_hidden_and_are_put_back(boss: Client) -> None:
    old = make(
        "dead",
        task_path="tests.tasks.ok",
        kwargs='{"user": {"name": "Ann", "password": "hunter2hunter2"}, "api_key": "k-12345678"}',
    ).job_id
    page = text_of(boss.get(rerun_of(old)))
    assert "hunter2" not in page
    assert "k-12345678" not in page
    shown = re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)[1].replace("&quot;", '"')
    edited = json.loads(shown)
    edited["user"]["name"] = "Bob"
    boss.post(rerun_of(old), {"args": "[]", "kwargs": json.dumps(edited)})
    assert newest().kwargs == {
        "user": {"name": "Bob", "password": "hunter2hunter2"},
        "api_key": "k-12345678",
    }
    edited["note"] = edited["api_key"]
    page = text_of(boss.post(rerun_of(old), {"args": "[]", "kwargs": json.dumps(edited)}))
    assert "stands for a hidden value" in page


def test_it_needs_its_own_permission() -> None:
    job_id = make("dead").job_id
    client = visitor("view_job", "retry_job")
    assert "Run with other arguments" not in text_of(client.get(page_of(job_id)))
    assert client.get(rerun_of(job_id)).status_code == 403
    assert client.post(rerun_of(job_id), {"args": "[]", "kwargs": "{}"}).status_code == 403
    assert visitor("view_job", "rerun_job").get(rerun_of(job_id)).status_code == 200
    assert visitor("view_job", "rerun_job").get(rerun_of(job_id + 1)).status_code == 302


def test_a_look_at_the_form_changes_nothing(boss: Client) -> None:
    job_id = make("dead").job_id
    boss.get(rerun_of(job_id))
    assert newest().pk == job_id


# --- another queue, another priority


@pytest.mark.parametrize("status", ["ready", "scheduled"])
def test_a_waiting_job_moves(boss: Client, status: str) -> None:
    job_id = make(status).job_id
    assert 'name="queue"' in text_of(boss.get(page_of(job_id)))
    boss.post(move_of(job_id), {"queue": "emails", "priority": "9"})
    job = Job.objects.get(pk=job_id)
    assert (job.queue, job.priority) == ("emails", 9)
    assert (state_of(job_id).queue, state_of(job_id).priority) == ("emails", 9)
    assert messages_of(boss) == ["Moved to the queue “emails”. Priority changed to 9."]
    assert status_of(job_id) == status


def test_a_moved_job_is_claimed_from_its_new_queue(boss: Client) -> None:
    job_id = enqueue()
    boss.post(move_of(job_id), {"queue": "emails", "priority": "0"})
    assert claim(job_id).queue == "emails"


@pytest.mark.parametrize("status", ["running", "succeeded", "dead", "cancelled"])
def test_a_job_that_does_not_wait_stays_where_it_is(boss: Client, status: str) -> None:
    job_id = make(status).job_id
    assert 'name="queue"' not in text_of(boss.get(page_of(job_id))).partition("changelist-filter")[0]
    boss.post(move_of(job_id), {"queue": "emails", "priority": "9"})
    assert state_of(job_id).queue == "default"
    assert messages_of(boss) == ["Nothing was changed: the job does not wait any more."]


@pytest.mark.parametrize(
    "fields", [{"queue": "none", "priority": "0"}, {"queue": "emails", "priority": "101"}, {}]
)
def test_what_makes_no_sense_is_refused(boss: Client, fields: dict[str, str]) -> None:
    job_id = enqueue()
    boss.post(move_of(job_id), fields)
    assert state_of(job_id).queue == "default"
    assert len(messages_of(boss)) == 1


def test_moving_needs_its_own_permission_and_a_post(boss: Client) -> None:
    job_id = enqueue()
    assert visitor("view_job").post(move_of(job_id), {"queue": "emails", "priority": "1"}).status_code == 403
    assert 'name="priority"' not in text_of(visitor("view_job").get(page_of(job_id)))
    assert boss.get(move_of(job_id)).status_code == 405


@pytest.mark.parametrize("queue", ["", "x" * 129, "a\nb"])
def test_the_verb_refuses_names_that_no_queue_can_have(queue: str) -> None:
    with pytest.raises(ValueError, match="printable name"):
        Job.objects.move([1], queue)


@pytest.mark.parametrize("priority", [101, -101, True, 1.0])
def test_the_verb_refuses_what_is_no_priority(priority: int) -> None:
    with pytest.raises(ValueError, match="whole numbers from -100 to 100"):
        Job.objects.reprioritise([1], priority)


# --- discard


def test_discard_asks_first_and_deletes_all_rows(boss: Client) -> None:
    job_id = make("dead", failures=1).job_id
    address = page_of(job_id).replace("/change/", "/discard/")
    assert "Nothing brings it back." in text_of(boss.post(address))
    assert status_of(job_id) == "dead"
    assert boss.post(address, {"confirmed": "yes"}).status_code == 302
    assert status_of(job_id) is None
    assert not Job.objects.filter(pk=job_id).exists()


# --- the timeline


def test_the_timeline_tells_waits_attempts_and_who_ran_them(boss: Client) -> None:
    made = make("dead", failures=1)
    page = text_of(boss.get(page_of(made.job_id)))
    section = plain(page.partition('id="pgq-timeline"')[2].partition("</section>")[0])
    assert "attempt 1: failed worker-1" in section
    assert "attempt 2: failed worker-1" in section
    assert 'class="pgq-strip"' in page
    assert page.count('<rect class="pgq-fill-failed"') == 2


def test_the_timeline_of_a_running_job_ends_with_it(boss: Client) -> None:
    job_id = make("running").job_id
    assert "attempt 1 runs" in plain(text_of(boss.get(page_of(job_id))))
    settle_one("complete", fence_of(job_id))
    assert "attempt 1: succeeded" in plain(text_of(boss.get(page_of(job_id))))


def test_own_frames_come_before_the_whole_traceback(boss: Client) -> None:
    job_id = enqueue()
    text = """Traceback (most recent call last):
  File "/srv/shop/tasks.py", line 12, in pay
    charge(order)
  File "/usr/lib/python3.13/site-packages/client/api.py", line 9, in post
    raise Refused(url)
client.Refused: no
"""
    settle_one("fail", claim(job_id).fence, final=True, traceback=text)
    page = plain(text_of(boss.get(page_of(job_id))))
    assert page.index("shop/tasks.py:12 in pay charge(order)") < page.index(
        "Traceback (most recent call last)"
    )


# --- the steps


def test_the_steps_that_are_done_are_shown_without_their_secrets(boss: Client) -> None:
    job = make("running")
    JobStep.objects.record(job.fence, "charge", '{"receipt": 17, "token": "t-12345678"}')
    page = text_of(boss.get(page_of(job.job_id)))
    section = page.partition('id="pgq-steps"')[2].partition("</section>")[0]
    assert "charge" in section
    assert "17" in section
    assert "t-12345678" not in page
    assert 'id="pgq-steps"' not in text_of(boss.get(page_of(enqueue())))
