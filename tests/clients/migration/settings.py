"""The project after the change. The old app is still installed: its table holds the old results."""

from tests import settings as base
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*base.INSTALLED_APPS, "django_tasks_db", "tests.clients.migration"]
TASKS = {
    "default": {
        "BACKEND": "django_pgqueue.backend.PgQueueBackend",
        "QUEUES": ["default", "emails"],
        "OPTIONS": {"max_attempts": 1, "poll_interval": 0.2},
    }
}
