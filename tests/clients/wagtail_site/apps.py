"""Listens to the signals of all Tasks APIs, in the web process and in the workers."""

from importlib import import_module
from typing import Any

from django.apps import AppConfig

from tests.clients.apis import NAMES

SIGNALS = ("task_enqueued", "task_started", "task_finished")


class SiteConfig(AppConfig):
    """The site."""

    name = "tests.clients.wagtail_site"
    label = "wagtail_site"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect a receiver to each signal of each API."""
        for api in NAMES:
            signals = import_module(f"{api}.signals")  # the registry is ready only now
            for name in SIGNALS:
                getattr(signals, name).connect(_receiver(api, name), weak=False)


def _receiver(api: str, name: str) -> Any:
    def hear(sender: type, task_result: Any, **kwargs: Any) -> None:
        from .models import Heard  # noqa: PLC0415

        Heard.objects.create(
            api=api,
            signal=name,
            sender=f"{sender.__module__}.{sender.__qualname__}",
            result_id=task_result.id,
            status=task_result.status,
            attempts=task_result.attempts,
        )

    return hear
