"""Editors fill a Wagtail site; its own tasks, made with the backport's decorator, run on this queue."""

import shutil
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import run_checks
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings
from modelsearch.tasks import insert_or_update_object_task
from wagtail.images.models import Image
from wagtail.models import Page, ReferenceIndex, Site
from wagtail.tasks import delete_file_from_storage_task, update_reference_index_task
from wagtail.test.utils.form_data import nested_form_data, rich_text

from django_pgqueue import states
from django_pgqueue.models import JobState

from ..apis import apis
from ..conftest import Processes
from . import tasks
from .models import Article, Heard

APIS = apis()
ARTICLES = 12
INDEXING = update_reference_index_task.module_path
SEARCHING = insert_or_update_object_task.module_path
DELETING = delete_file_from_storage_task.module_path


@pytest.fixture(scope="module", autouse=True)
def media() -> Iterator[None]:
    yield
    shutil.rmtree(settings.MEDIA_ROOT)


@pytest.fixture
def editor() -> Client:
    """A logged-in editor."""
    user, _ = get_user_model().objects.get_or_create(username="editor", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def home() -> Page:
    return Site.objects.get(is_default_site=True).root_page


def test_a_wrong_setting_is_reported_once() -> None:
    wrong = {"default": {"BACKEND": "django_pgqueue.backend.PgQueueBackend", "OPTIONS": {"leese": 1}}}
    with override_settings(TASKS=wrong):
        messages = run_checks()
    assert [message.id for message in messages] == ["django_pgqueue.E001"]
    assert run_checks() == []


def test_an_editor_uploads_pictures_and_publishes_articles(editor: Client, home: Page) -> None:
    pictures = [upload(editor, name) for name in ("harbour", "lighthouse")]
    for number in range(ARTICLES):
        publish(editor, home, f"Article {number}", pictures[number % 2])
    assert Article.objects.live().count() == ARTICLES
    assert editor.get(Article.objects.first().url).status_code == 200


def test_its_tasks_are_native_jobs_announced_once_in_each_api() -> None:
    paths = Counter(JobState.objects.values_list("job__task_path", flat=True))
    assert set(paths) == {INDEXING, SEARCHING}
    assert paths[SEARCHING] >= ARTICLES + 2
    ids = Counter(map(str, JobState.objects.values_list("job_id", flat=True)))
    for api in APIS:
        heard = Heard.objects.filter(api=api, signal="task_enqueued")
        assert Counter(heard.values_list("result_id", flat=True)) == ids
    assert set(Heard.objects.values_list("sender", flat=True)) == {"django_pgqueue.backend.PgQueueBackend"}


def test_nothing_is_indexed_before_the_worker_and_everything_after_it(processes: Processes) -> None:
    picture = Image.objects.get(title="harbour")
    assert picture.get_usage().count() == 0
    assert ReferenceIndex.objects.count() == 0
    processes.drain()
    assert picture.get_usage().count() == ARTICLES // 2
    assert [article.title for article in Article.objects.search("seven")] == ["Article 7"]
    for result in results():
        assert result.status == "SUCCESSFUL", result.errors
        assert result.return_value is None
        assert len(result.worker_ids) == 1


def test_the_worker_announces_start_and_end_once_in_each_api() -> None:
    ids = Counter(map(str, JobState.objects.values_list("job_id", flat=True)))
    for api in APIS:
        for signal, status in (("task_started", "RUNNING"), ("task_finished", "SUCCESSFUL")):
            heard = Heard.objects.filter(api=api, signal=signal, status=status, attempts=1)
            assert Counter(heard.values_list("result_id", flat=True)) == ids, (api, signal)


def test_a_picture_deleted_before_its_task_ran_fails_for_good(
    editor: Client, home: Page, processes: Processes
) -> None:
    before = {result.id for result in results()}
    picture = upload(editor, "fog")
    path = Path(picture.file.path)
    gone = publish(editor, home, "Article with fog", picture)
    assert editor.post(f"/admin/images/{picture.pk}/delete/").status_code == 302
    assert editor.post(f"/admin/pages/{gone.pk}/delete/").status_code == 302
    assert path.exists()
    processes.drain()
    assert not path.exists()
    new = [result for result in results() if result.id not in before]
    assert [result.status for result in new if result.task.module_path == DELETING] == ["SUCCESSFUL"]
    failed = [result for result in new if result.status == "FAILED"]
    assert {result.task.module_path for result in failed} == {INDEXING, SEARCHING}
    for result in failed:
        assert result.attempts == 2
        assert {error.exception_class.__name__ for error in result.errors} == {"DoesNotExist"}
        assert "matching query does not exist" in result.errors[-1].traceback


def test_an_error_of_either_api_can_be_caught() -> None:
    other = JobState.objects.filter(job__task_path=INDEXING).first()
    wrong_queue = {"queue_name": "a,b"}
    for errors in [import_module(f"{name}.exceptions") for name in APIS]:
        for result_id in ("junk", "0", str(2**62), "6b1f3b0e-5e0c-4c0e-9d0a-8a2f3c8b7a11"):
            with pytest.raises(errors.TaskResultDoesNotExist):
                insert_or_update_object_task.get_result(result_id)
        with pytest.raises(errors.TaskResultMismatch):
            insert_or_update_object_task.get_result(str(other.pk))
        invalid = getattr(errors, "InvalidTask", None) or errors.InvalidTaskError
        with pytest.raises(invalid):
            insert_or_update_object_task.using(**wrong_queue)


def test_tasks_of_all_decorators_run_and_are_read_by_both_apis(processes: Processes) -> None:
    made = {name: getattr(tasks, name) for name in ("native", "backport", "ours")}
    enqueued = {name: task.enqueue({"from": name}) for name, task in made.items()}
    processes.drain()
    for name, task in made.items():
        for api in APIS.values():
            again = api.task_backends["default"].get_result(enqueued[name].id)
            assert again.status == api.TaskResultStatus.SUCCESSFUL
            assert again.return_value == {"from": name}
        assert task.get_result(enqueued[name].id).task == task


def results() -> list[Any]:
    """Return the results of all jobs; each has ended."""
    rows = JobState.objects.values_list("job_id", "status")
    assert {status for _, status in rows} <= set(states.ENDED)
    api = next(iter(APIS.values()))
    return [api.default_task_backend.get_result(str(job_id)) for job_id, _ in rows]


def upload(editor: Client, title: str) -> Image:
    """Upload a picture as the admin's form does."""
    file = SimpleUploadedFile(f"{title}.png", png(), content_type="image/png")
    answer = editor.post("/admin/images/add/", {"title": title, "file": file})
    assert answer.status_code == 302, answer.context["form"].errors
    return Image.objects.get(title=title)


def publish(editor: Client, home: Page, title: str, picture: Image) -> Article:
    """Write and publish an article as the admin's form does."""
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]
    number = title.rpartition(" ")[2]
    body = words[int(number)] if number.isdigit() else number
    form = {
        "title": title,
        "slug": title.lower().replace(" ", "-"),
        "body": rich_text(f"<p>This is about {body}.</p>"),
        "picture": str(picture.pk),
        "action-publish": "action-publish",
    }
    comments = {"comments-TOTAL_FORMS": 0, "comments-INITIAL_FORMS": 0}
    address = f"/admin/pages/add/wagtail_site/article/{home.pk}/"
    answer = editor.post(address, {**nested_form_data(form), **comments})
    assert answer.status_code == 302, answer.context["form"].errors
    return Article.objects.get(title=title)


def png() -> bytes:
    """Return a picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0\0\0\0")) + chunk(b"IEND", b"")
