"""Everything goes through the alias that the router names for writing. (C46)"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from tests.support import enqueue, make, status_of

from .site import LIST, act, button_of, confirm, page_of, text_of

pytestmark = pytest.mark.django_db


class ReplicaRouter:
    """Sends reads of the queue to an alias that does not exist: asking for it fails."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "replica" if model._meta.app_label == "django_pgqueue" else None

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "default" if model._meta.app_label == "django_pgqueue" else None


@pytest.fixture(autouse=True)
def replica() -> Iterator[None]:
    """Route reads away."""
    with override_settings(DATABASE_ROUTERS=[ReplicaRouter()]):
        yield


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?status=dead",
        "?queue=default&task=tests.tasks.ok",
        "?q=1",
        "?enqueued_at__range__gte_0=2020-01-01",
    ],
)
def test_list_reads_the_write_alias(boss: Client, query: str) -> None:
    enqueue()
    text_of(boss.get(LIST + query))


def test_job_page_and_history_read_the_write_alias(boss: Client) -> None:
    job_id = make("dead").job_id
    text_of(boss.get(page_of(job_id)))
    text_of(boss.get(f"{LIST}{job_id}/history/"))


def test_repairs_use_the_write_alias(boss: Client) -> None:
    first, second, third = (make("dead").job_id for _ in range(3))
    boss.post(button_of(first, "retry"))
    act(boss, "retry_selected", [second])
    text_of(act(boss, "retry_selected", [third], select_across="1"))
    confirm(boss, "retry_selected", "?status=dead")
    assert [status_of(job_id) for job_id in (first, second, third)] == ["ready"] * 3
    text_of(boss.post(button_of(first, "cancel")))
