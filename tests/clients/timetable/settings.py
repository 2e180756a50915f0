"""The tests' settings with django-crontask."""

from tests import settings as base
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*base.INSTALLED_APPS, "crontask", "tests.clients.timetable"]
