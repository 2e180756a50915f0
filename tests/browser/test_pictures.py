"""The pictures of the documentation, taken anew in each run and looked at for their size only.

``PGQUEUE_PICTURES=docs/images python3 dev.py browser -k pictures`` puts them where the pages have them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devtools.environments import ROOT
from django_pgqueue import sql

from .places import page_of
from .scene import build

if TYPE_CHECKING:
    from .pages import Admin
    from .shop import Shop

pytestmark = pytest.mark.browser
LARGEST = 150_000
"""Bytes: who clones the repository gets them, too."""


def test_pictures_of_the_list_and_of_a_dead_job(admin: Admin, shop: Shop, tmp_path: Path) -> None:
    browser = admin.browser
    scene = build(shop, orders=3)
    folder = ROOT / os.environ.get("PGQUEUE_PICTURES", tmp_path)
    be_anywhere(shop)
    let_hours_pass(shop)
    browser.be_a_desktop(1200, 780)
    admin.enter()
    browser.click("#toggle-nav-sidebar")
    pictures = [browser.picture(folder / "job-list.png")]
    browser.open(page_of(scene.jobs["dead"]))
    browser.see("Traceback (most recent call last)", ".pgq-attempts")
    pictures.append(browser.picture(folder / "dead-job.png"))
    assert [picture.name for picture in pictures if picture.stat().st_size > LARGEST] == []


def be_anywhere(shop: Shop) -> None:
    """Take the names of this machine and its folders out of what the pages show."""
    shop.queue.session.execute(
        f"""UPDATE {sql.ATTEMPT} SET
            traceback = regexp_replace(
                replace(traceback, %s, '/srv/shop'), '"/[^"]*/lib/(python3\\.\\d+)/', '"/usr/lib/\\1/', 'g'),
            worker_id = regexp_replace(worker_id, '^[^.]*', 'web-1'), host = 'web-1'""",
        [str(ROOT)],
    )


def let_hours_pass(shop: Shop) -> None:
    """Set the jobs some minutes apart, the newest in the present."""
    newest = shop.queue.value(f"SELECT max(id) FROM {sql.JOB}")
    for table, job_id, columns in (
        (sql.JOB, "id", ["enqueued_at"]),
        (sql.STATE, "job_id", ["finished_at"]),
        (sql.ATTEMPT, "job_id", ["started_at", "finished_at"]),
    ):
        earlier = [f"{column} = {column} - (%(newest)s - {job_id}) * interval '7 min'" for column in columns]
        shop.queue.session.execute(f"UPDATE {table} SET {', '.join(earlier)}", {"newest": newest})
