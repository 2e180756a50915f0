"""Settings of the shop.

Everything that differs from run to run comes from the environment:

``DATABASE_URL``      PostgreSQL, as libpq spells it (default: the local server's database ``shop``)
``SHOP_FOLDER``       for invoices and the outside world's journal (default: ``.demo`` in the clone)
``OUTSIDE_HTTP_PORT`` and ``OUTSIDE_SMTP_PORT``  where ``manage.py outside_world`` listens on loopback
``SECRET_KEY``        signs sessions; without it each process makes its own, and a restart logs everybody out
"""

import os
from pathlib import Path

from django.core.management.utils import get_random_secret_key

from devtools.databases import django_database

CLONE = Path(__file__).resolve().parent.parent
SHOP_FOLDER = Path(os.environ.get("SHOP_FOLDER", CLONE / ".demo"))
SHOP_FOLDER.mkdir(parents=True, exist_ok=True)
LOOPBACK = "127.0.0.1"

DEBUG = True  # an example to run on one's own machine; the development server serves the static files
SECRET_KEY = os.environ.get("SECRET_KEY") or get_random_secret_key()
ALLOWED_HOSTS = [LOOPBACK, "localhost"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rangefilter",
    "django_pgqueue",
    "example_project.outside",
    "example_project.shop",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "example_project.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


DATABASES = {
    "default": django_database(os.environ.get("DATABASE_URL", "postgresql:///shop")),
    # The journal of the outside world is no part of the shop: what arrived there is evidence, so it
    # is kept where neither the shop nor the queue writes.
    "outside": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": SHOP_FOLDER / "outside.sqlite3",
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    },
}
DATABASE_ROUTERS = ["example_project.outside.router.OutsideRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TASKS = {
    "default": {
        "BACKEND": "django_pgqueue.backend.PgQueueBackend",
        "QUEUES": ["emails", "webhooks", "default"],  # a worker empties them in this order
        "OPTIONS": {
            "max_attempts": 10,
            "backoff_base": 0.5,
            "backoff_cap": 30.0,
            "lease": 15.0,  # half of the default: nobody who watches wants to wait longer for a dead worker
            "heartbeat": 5.0,
        },
    }
}

# The worker logs a line for each event by itself; Django's own line for each task started would bury them.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "loggers": {"django.tasks": {"level": "ERROR"}, "django_tasks": {"level": "ERROR"}},
}

EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = LOOPBACK
EMAIL_PORT = int(os.environ.get("OUTSIDE_SMTP_PORT", "8026"))
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = "Habit & Lustre <orders@habit-and-lustre.example>"

OUTSIDE_URL = f"http://{LOOPBACK}:{os.environ.get('OUTSIDE_HTTP_PORT', '8025')}"

MEDIA_ROOT = SHOP_FOLDER / "media"
STATIC_URL = "static/"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
