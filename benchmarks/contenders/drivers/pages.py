"""The driver of the benchmark of the admin: opens its pages as a browser does, through the whole of Django.

setup            make the tables, and somebody who may do everything
pages TIMES      open every page so often; {"pages": {name: {"ms": ..., "queries": ..., "rows": ...}}}
retry JOBS       retry so many dead jobs by a filter, as an operator does; the time, and what was locked
"""

import re
import statistics
import time
from datetime import timedelta
from typing import Any

import django
from django.contrib import admin
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import path

from benchmarks.contenders.drivers import common

django.setup()

from django.contrib.auth.models import User  # noqa: E402 - like the next, after django.setup()
from django.test import Client  # noqa: E402
from django.utils import timezone  # noqa: E402

from benchmarks.core.history import NIGHT_TASK  # noqa: E402
from django_pgqueue import sql  # noqa: E402

urlpatterns = [path("admin/", admin.site.urls)]
BASE = "/admin/django_pgqueue/"
LIST = f"{BASE}job/"
ROWS = re.compile(r"field-id|pgq-cause-count")


def setup() -> None:
    """Make the tables, and somebody who may do everything."""
    call_command("migrate", verbosity=0)
    User.objects.create_superuser("boss", "", "boss")


def visitor() -> Client:
    """Return somebody who has logged in."""
    client = Client()
    client.force_login(User.objects.get(username="boss"))
    return client


def pages(times: int) -> dict[str, Any]:
    """Open every page once to warm it, then so often; return the median of each."""
    client = visitor()
    return {"pages": {name: opened(client, address, times) for name, address in addresses().items()}}


def opened(client: Client, address: str, times: int) -> dict[str, Any]:
    """Return the milliseconds, the queries and the rows of one page."""
    with CaptureQueriesContext(connection) as queries:
        response = client.get(address)
    asked = len(queries)
    if response.status_code != 200:
        raise SystemExit(f"{address} answered {response.status_code}")
    took = []
    for _ in range(times):
        began = time.perf_counter()
        client.get(address)
        took.append((time.perf_counter() - began) * 1000)
    rows = len(ROWS.findall(response.content.decode()))
    return {"ms": statistics.median(took), "max_ms": max(took), "queries": asked, "rows": rows}


def addresses() -> dict[str, str]:
    """Return the pages by name: every filter, some that people use together, deep ones, and single jobs."""
    newest = one(f"SELECT max(id) FROM {sql.JOB}")
    middle = one(
        f"SELECT finished_at FROM {sql.STATE} WHERE job_id >= %s AND status = 'succeeded' LIMIT 1",
        newest // 2,
    )
    dead = one(f"SELECT max(job_id) FROM {sql.STATE} WHERE status = 'dead'")
    cause = one(f"SELECT cause FROM {sql.STATE} WHERE job_id = %s", dead)
    deep = f'"{middle:%Y-%m-%dT%H:%M:%S%z}",{newest // 2}'.replace("+", "%2B")
    lists = {
        "list": "",
        "list, page 5,000": f"?after={newest - 250_000 if newest > 250_000 else newest // 2}",
        "list, oldest first": "?o=1",
        **{f"list, {status}": f"?status={status}" for status in STATUSES},
        "list, succeeded, half way back": f"?status=succeeded&after={deep}",
        "list, a common queue": "?queue=q1",
        "list, a rare queue": "?queue=rare",
        "list, a queue that is not there": "?queue=none",
        "list, ready in a queue": "?status=ready&queue=q1",
        "list, succeeded in a rare queue": "?status=succeeded&queue=rare",
        "list, a task": "?task=shop.tasks.t3",
        "list, a rare task": f"?task={NIGHT_TASK}",
        "list, dead of a task": "?status=dead&task=shop.tasks.t3",
        "list, succeeded of a rare task": f"?status=succeeded&task={NIGHT_TASK}",
        "list, dead in a queue": "?status=dead&queue=q1",
        "list, dead of a cause": f"?cause={cause}",
        "list, enqueued in an hour": f"?{span('enqueued_at', 12, 11)}",
        "list, enqueued in an hour in a rare queue": f"?queue=rare&{span('enqueued_at', 12, 11)}",
        "list, ended last night": f"?{span('state__finished_at', 14, 6)}",
        "list, dead last night": f"?status=dead&{span('state__finished_at', 14, 6)}",
        "list, search for a task": "?q=courier",
        "list, search for a job": f"?q={newest // 3}",
    }
    causes = {"causes": "", "causes, last night": f"?{since(14)}"}
    jobs = {"job, dead": dead, "job, succeeded": newest // 2 + 10, "job, running": newest}
    return {
        "front page": "/admin/",
        "app": BASE,
        **{name: LIST + query for name, query in lists.items()},
        **{name: f"{BASE}deadjob/{query}" for name, query in causes.items()},
        **{name: f"{LIST}{job_id}/change/" for name, job_id in jobs.items()},
        "bulk operations": f"{BASE}bulkoperation/",
    }


STATUSES = ("scheduled", "ready", "running", "succeeded", "dead", "cancelled")


def span(field: str, first: float, last: float) -> str:
    """Return the parameters of a range, in hours before now."""
    ends = {"gte": first, "lte": last}
    return "&".join(
        f"{field}__range__{end}_{part}={timezone.now() - timedelta(hours=hours):{text}}"
        for end, hours in ends.items()
        for part, text in enumerate(("%Y-%m-%d", "%H:%M:%S"))
    )


def since(hours: float) -> str:
    """Return the parameters of a span on the page of causes."""
    moment = timezone.now() - timedelta(hours=hours)
    return f"since_0={moment:%Y-%m-%d}&since_1={moment:%H:%M}"


def one(query: str, *parameters: Any) -> Any:
    """Return the first column of the first row."""
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchone()[0]


def retry(jobs: int) -> dict[str, Any]:
    """Preview and retry about so many dead jobs, the oldest, in bulk; return the seconds and the numbers."""
    end = one(
        f"""SELECT finished_at FROM {sql.STATE} WHERE status = 'dead' AND finished_at IS NOT NULL
            ORDER BY finished_at OFFSET %s LIMIT 1""",
        jobs - 1,
    )
    until = "state__finished_at__range__lte"
    query = f"{LIST}?status=dead&{until}_0={end:%Y-%m-%d}&{until}_1={end:%H:%M:%S}"
    client = visitor()
    form = {"action": "retry_selected", "select_across": "1", "_selected_action": "0"}
    began = time.perf_counter()
    preview = client.post(query, form).content.decode()
    seen = time.perf_counter()
    client.post(query, {**form, "confirmed": "yes"})
    pressed = time.perf_counter()
    batches = finish()
    done = time.perf_counter()
    found = re.search(r'value="Yes, retry ([\d,]+) job', preview)
    retried = one("SELECT changed FROM django_pgqueue_bulkoperation ORDER BY id DESC LIMIT 1")
    return {
        "previewed": int(found[1].replace(",", "")) if found else 0,
        "retried": retried,
        "preview_ms": (seen - began) * 1000,
        "press_ms": (pressed - seen) * 1000,
        "retry_s": done - seen,
        "longest_batch_ms": max(batches, default=0.0),
    }


def finish() -> list[float]:
    """Do what a keeper does until no operation is left; return the milliseconds of each batch."""
    from django.db import transaction  # noqa: PLC0415 - of this command only

    from django_pgqueue.carrying import advance  # noqa: PLC0415

    took: list[float] = []
    while True:
        began = time.perf_counter()
        with transaction.atomic():
            batch = advance()
        if batch is None:
            return took
        took.append((time.perf_counter() - began) * 1000)


if __name__ == "__main__":
    common.main({"setup": setup, "pages": pages, "retry": retry})
