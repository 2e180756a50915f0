"""The driver of django-ox."""

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from benchmarks.contenders.drivers import common
from devtools.databases import django_database

settings.configure(
    DATABASES={"default": {**django_database(common.URL or "postgresql://"), "CONN_MAX_AGE": None}},
    INSTALLED_APPS=["django_ox"],
    USE_TZ=True,
    SECRET_KEY="not a secret: benchmarks only",
    TASKS={"default": {"BACKEND": "django_ox.backend.OxBackend"}},
)
django.setup()

from django_ox.bulk import enqueue_many  # noqa: E402 - after django.setup()

from benchmarks.contenders.drivers import django_tasks  # noqa: E402

QUICK = ("--interval", "0.01", "--concurrency", "4", "-v", "0")


def preload(jobs: int) -> dict[str, float]:
    """Enqueue in bulk."""
    connection.ensure_connection()
    return common.timed_many(
        lambda numbers: enqueue_many(django_tasks.nothing, [((job,), {}) for job in numbers]), jobs
    )


def enqueue(jobs: int) -> dict[str, float]:
    """Enqueue one by one."""
    connection.ensure_connection()
    return common.timed(django_tasks.nothing.enqueue, jobs)


if __name__ == "__main__":
    common.main(
        {
            "setup": lambda: call_command("migrate", verbosity=0),
            "preload": preload,
            "enqueue": enqueue,
            "enqueue-many": preload,
            "probe": lambda jobs, interval: common.probe(django_tasks.probe.enqueue, jobs, interval),
            "work": lambda number, of: call_command("ox_worker", *(QUICK if common.BEST else ())),
            "versions": lambda: common.versions("django-ox", "Django", "psycopg"),
        }
    )
