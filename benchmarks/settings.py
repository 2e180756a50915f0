"""Django settings of the benchmarks: the queue with its default options, nothing else."""

import os

from devtools.databases import django_database

SECRET_KEY = "not a secret: benchmarks only"  # noqa: S105
USE_TZ = True
DATABASES = {"default": django_database(os.environ.get("DATABASE_URL") or "postgresql://127.0.0.1/postgres")}
INSTALLED_APPS = ["django_pgqueue"]
TASKS = {"default": {"BACKEND": "django_pgqueue.backend.PgQueueBackend", "QUEUES": ["default"]}}
