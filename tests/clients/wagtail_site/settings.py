"""A Wagtail project by its own template, on this queue."""

import os
import tempfile

from tests import settings as base
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [
    "tests.clients.wagtail_site.apps.SiteConfig",
    "wagtail.contrib.forms",
    "wagtail.contrib.redirects",
    "wagtail.embeds",
    "wagtail.sites",
    "wagtail.users",
    "wagtail.snippets",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.search",
    "wagtail.admin",
    "wagtail",
    "modelcluster",
    "taggit",
    "django_filters",
    "django.contrib.postgres",
    # Not needed, but allowed, and then there are two sets of checks.
    "django_tasks",
    *(app for app in base.INSTALLED_APPS if app != "tests"),
]
MIDDLEWARE = [*base.MIDDLEWARE, "wagtail.contrib.redirects.middleware.RedirectMiddleware"]
ROOT_URLCONF = "tests.clients.wagtail_site.urls"
# The worker processes inherit the name.
MEDIA_ROOT = os.environ.setdefault("WAGTAIL_SITE_MEDIA", tempfile.mkdtemp(prefix="wagtail-media-"))
MEDIA_URL = "/media/"
WAGTAIL_SITE_NAME = "Clients"
WAGTAILADMIN_BASE_URL = "http://example.com"
WAGTAILSEARCH_BACKENDS = {"default": {"BACKEND": "wagtail.search.backends.database"}}

TASKS = {
    "default": {
        "BACKEND": "django_pgqueue.backend.PgQueueBackend",
        "QUEUES": [],
        "OPTIONS": {"max_attempts": 2, "backoff_base": 0.1, "backoff_cap": 0.1, "poll_interval": 0.2},
    }
}
