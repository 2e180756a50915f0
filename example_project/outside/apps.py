"""The outside world as a Django app, for the sake of its journal."""

from django.apps import AppConfig


class OutsideConfig(AppConfig):
    """Label ``outside``."""

    name = "example_project.outside"
    verbose_name = "Outside world (what really arrived)"
