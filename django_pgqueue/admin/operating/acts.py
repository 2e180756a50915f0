"""What may be done on these pages: checked, done by a verb, written into the admin log, and said."""

from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.http import HttpRequest

KEPT = 20
"""Entries of the admin log that a page shows."""


def log_act(request: HttpRequest, model: type[models.Model], name: str, shown: str, said: str) -> None:
    """Write into the admin log what somebody has done to the thing of this name."""
    user: Any = request.user
    LogEntry.objects.create(
        user_id=user.pk,
        content_type_id=ContentType.objects.get_for_model(model).pk,
        object_id=name,
        object_repr=shown[:200],
        action_flag=CHANGE,
        change_message=said,
    )


def latest(model: type[models.Model]) -> list[LogEntry]:
    """Return the latest entries of the admin log about things of this kind, newest first."""
    kind = ContentType.objects.get_for_model(model).pk
    entries = LogEntry.objects.filter(content_type_id=kind).select_related("user")
    return list(entries.order_by("-action_time", "-pk")[:KEPT])


def name_of(request: HttpRequest) -> str:
    """Return how the user is called in what others read."""
    user: Any = request.user
    return str(user.get_username())[:255]
