"""Listens to the signals of both Tasks APIs, in the web process and in the workers."""

from typing import Any

from django.apps import AppConfig

SIGNALS = ("task_enqueued", "task_started", "task_finished")


class SiteConfig(AppConfig):
    """The site."""

    name = "tests.clients.wagtail_site"
    label = "wagtail_site"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect a receiver to each signal of each API."""
        from django.tasks import signals as native  # noqa: PLC0415 - the registry is ready only now
        from django_tasks import signals as backport  # noqa: PLC0415

        for api, module in (("django.tasks", native), ("django_tasks", backport)):
            for name in SIGNALS:
                getattr(module, name).connect(_receiver(api, name), weak=False)


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
