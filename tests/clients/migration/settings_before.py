"""The project as it was."""

from tests.clients.migration.settings import *  # noqa: F403

TASKS = {
    "default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["default", "emails"]},
    "second": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []},
}
