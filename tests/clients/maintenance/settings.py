"""The tests' settings with django-maintenance-tasks; its times are short."""

from tests import settings as base
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*base.INSTALLED_APPS, "maintenance_tasks", "tests.clients.maintenance"]
# Seconds: a job that has run so long enqueues the next one; a run without news for so long counts as stalled.
MAINTENANCE_TASKS = {"MAX_RUNTIME": 0.3, "STALE_AFTER": 1}
