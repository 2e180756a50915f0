"""The app: wires the system checks and makes sure that the Tasks API's own are registered."""

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _


class PgQueueConfig(AppConfig):
    """django_pgqueue."""

    name = "django_pgqueue"
    verbose_name = _("Background jobs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what Django would not find by itself."""
        # Django registers the checks and signal receivers of its Tasks API only when that is imported.
        from . import compat  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport] - for what it does
        from .checks import check_admin  # noqa: PLC0415

        checks.register(check_admin)
