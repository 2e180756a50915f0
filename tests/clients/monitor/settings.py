"""The tests' settings with django-tasks-monitor."""

from tests import settings as base
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*base.INSTALLED_APPS, "tasks_monitor"]
TASKS_MONITOR = {"STUCK_AFTER": 0}
