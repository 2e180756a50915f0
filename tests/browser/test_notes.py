"""What was noted of an attempt, and a job's relatives, on its page: on a phone, in dark colours, by links."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from django_pgqueue.models import Job
from django_pgqueue.records import Completed, NewJob, Notes, WorkerIdentity

from .places import page_of
from .test_screens import overflow, too_faint

if TYPE_CHECKING:
    from pathlib import Path

    from .pages import Admin
    from .shop import Shop

pytestmark = pytest.mark.browser
TASKS = "example_project.shop.tasks"
UNSERVED = "night"
LOG = "\n".join(
    [
        "+0.012 INFO shop.orders: order 1042 of ada@example.com, 3 items",
        "+0.180 INFO shop.stock: reserved 3 items; " + "a line that is far longer than a phone is wide, " * 4,
        "+0.950 WARNING shop.courier: answered after 712 ms, with token=abcdef0123456789",
    ]
)


@pytest.fixture
def family(admin: Admin, shop: Shop) -> dict[str, int]:
    """A job with a log and SQL, its parent and 25 children; no worker serves their queue."""
    session = shop.queue.session

    def enqueue(path: str, parent_id: int | None = None, count: int = 1) -> list[int]:
        new = NewJob(f"{TASKS}.{path}", queue=UNSERVED, parent_id=parent_id, args="[1]")
        rows = Job.objects.enqueue_many([new] * count, backend="default", connection=session)
        return [row.job_id for row in rows]

    (parent,) = enqueue("make_invoice")
    (job,) = enqueue("book_courier", parent)
    worker = WorkerIdentity("web-1.4711.ab12", "web-1", 4711)
    for held in Job.objects.claim(
        UNSERVED, limit=2, worker_id=worker.worker_id, lease_token=uuid4(), lease=300.0, connection=session
    ):
        if held.job_id == job:
            done = Completed(held.fence, 1.0, 0.0, '{"parcel": 17}', Notes(LOG, 12, 0.083))
            Job.objects.complete([done], worker=worker, connection=session)
    children = enqueue("send_receipt", job, 25)
    shop.queue.cancel(children[0])
    return {"parent": parent, "job": job, "child": children[0]}


def test_from_a_job_to_its_parent_and_to_its_children(admin: Admin, family: dict[str, int]) -> None:
    browser = admin.browser
    admin.enter(to=page_of(family["job"]))
    assert "12 SQL queries, 83 ms" in browser.text(".pgq-attempts")
    assert "shop.orders: order 1042" in browser.text(".pgq-more")
    assert "abcdef0123456789" not in browser.text()
    assert len(browser.all(".pgq-children li")) == 20
    browser.follow(".pgq-children ~ nav a", "Next")
    assert len(browser.all(".pgq-children li")) == 5
    browser.follow(".pgq-children ~ nav a", "First")
    browser.follow(".pgq-children a", f"#{family['child']}")
    assert admin.state == "Cancelled"
    browser.follow(".pgq-parent a", f"job {family['job']}")
    browser.follow(".pgq-parent a", f"job {family['parent']}")
    assert admin.state == "Running"


def test_it_fits_a_phone_and_stands_out_in_light_and_dark_colours(
    admin: Admin, family: dict[str, int], tmp_path: Path
) -> None:
    from .axe import grave_faults  # noqa: PLC0415 - as everything that a plain run does not need

    browser = admin.browser
    admin.enter(to=page_of(family["job"]))
    assert grave_faults(browser) == []
    for dark in (False, True):
        browser.be_dark(dark)
        assert too_faint(browser) == []
    browser.be_a_phone()
    assert overflow(browser, page_of(family["job"])) == []
