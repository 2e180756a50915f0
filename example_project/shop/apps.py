"""The shop as a Django app."""

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """Label ``shop``; connects the signal that enqueues webhooks."""

    name = "example_project.shop"
    verbose_name = "Shop"

    def ready(self) -> None:
        """Connect the receivers."""
        from . import signals  # noqa: F401
