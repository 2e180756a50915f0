"""The journal in the admin, to be read only."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from .models import CourierCall, Mail, WebhookCall


class JournalAdmin(admin.ModelAdmin):
    """A list that nobody can change."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: rows come from what arrives."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: it is evidence."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: it is evidence."""
        return False


@admin.register(Mail)
class MailAdmin(JournalAdmin):
    """Messages that arrived."""

    list_display = ["recipient", "subject", "order_reference", "size", "received_at"]
    search_fields = ["recipient", "order_reference"]


@admin.register(WebhookCall)
class WebhookCallAdmin(JournalAdmin):
    """Calls of the webhook endpoint."""

    list_display = ["key", "order_reference", "verdict", "received_at"]
    list_filter = ["verdict"]
    search_fields = ["key", "order_reference"]


@admin.register(CourierCall)
class CourierCallAdmin(JournalAdmin):
    """Bookings the courier turned down."""

    list_display = ["order_reference", "received_at"]
