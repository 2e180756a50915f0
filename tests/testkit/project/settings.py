"""The queue has a database of its own; a third one is there for no test."""

import os
from typing import Any

from devtools.databases import django_database

SECRET_KEY = "not a secret: tests only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "rangefilter",
    "django_pgqueue",
]


def _database(name: str) -> dict[str, Any]:
    database = django_database(os.environ["DATABASE_URL"])
    return {**database, "TEST": {"NAME": f"test_kit_{name}_{os.environ['TESTKIT_RUN']}"}}


DATABASES = {
    "default": _database("default"),
    "queue": _database("queue"),
    "forbidden": _database("forbidden"),
}

DATABASE_ROUTERS = ["django_pgqueue.routers.QueueRouter"]
TASKS = {
    "default": {
        "BACKEND": "django_pgqueue.backend.PgQueueBackend",
        "QUEUES": ["default", "emails"],
        "OPTIONS": {"database": "queue", "backoff_base": 0.1, "backoff_cap": 1.0},
    },
}
SILENCED_SYSTEM_CHECKS = ["django_pgqueue.W001"]
