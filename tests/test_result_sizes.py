"""A return value that is too large ends its job with a clear text; one that just fits is stored."""

import copy
from typing import Any

import pytest
from django.conf import settings as project
from django.test import override_settings

from django_pgqueue import testing
from django_pgqueue.tasks import task

from .support import attempts_of, status_of

pytestmark = pytest.mark.django_db

LIMIT = 2000


@pytest.fixture(autouse=True)
def small_results() -> Any:
    tasks = copy.deepcopy(project.TASKS)
    tasks["default"]["OPTIONS"]["max_result_bytes"] = LIMIT
    with override_settings(TASKS=tasks):
        yield


@task
def text(character: str, length: int) -> str:
    return character * length


def run(character: str, bytes_of_json: int) -> Any:
    size = len(character.encode())
    job_id = int(text.enqueue(character, (bytes_of_json - 2) // size).id)
    testing.run_jobs()
    (attempt,) = attempts_of(job_id)
    return status_of(job_id), attempt


@pytest.mark.parametrize("character", ["x", "ü", "😀"])
def test_a_result_of_the_allowed_size_is_stored(character: str) -> None:
    status, attempt = run(character, LIMIT)
    assert status == "succeeded"
    assert len(attempt.return_value.encode()) in range(LIMIT - 6, LIMIT - 1)


@pytest.mark.parametrize("character", ["x", "ü", "😀"])
def test_a_larger_result_ends_the_job_and_says_why(character: str) -> None:
    status, attempt = run(character, LIMIT + 8)
    assert (status, attempt.outcome, attempt.return_value) == ("dead", "failed", None)
    assert attempt.exception_class == "django_pgqueue.exceptions.UnstorableResult"
    assert "the return value (a str) cannot be stored as JSON: it takes 2,00" in attempt.message
    assert "max_result_bytes allows 2,000. Store the data elsewhere and return its id." in attempt.message
