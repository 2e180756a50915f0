"""Django settings of the benchmarks: the queue's defaults, but for what BENCHMARK_OPTIONS (JSON) says."""

import json
import os

from devtools.databases import django_database

SECRET_KEY = "not a secret: benchmarks only"
USE_TZ = True
DATABASES = {"default": django_database(os.environ.get("DATABASE_URL") or "postgresql://127.0.0.1/postgres")}
INSTALLED_APPS = ["django_pgqueue"]
TASKS = {
    "default": {
        "BACKEND": "django_pgqueue.backend.PgQueueBackend",
        "QUEUES": ["default"],
        "OPTIONS": json.loads(os.environ.get("BENCHMARK_OPTIONS") or "{}"),
    }
}
