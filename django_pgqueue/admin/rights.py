"""Who may do what on these pages: every act needs its own permission, beside the one to see jobs."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from django_pgqueue.models import Job

from .repairs import Repair

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:  # not generic at run time
    _ModelAdmin = admin.ModelAdmin

MOVE = "move_job"
RERUN = "rerun_job"


def may_view(request: HttpRequest) -> bool:
    """Return whether the user may see jobs."""
    user: Any = request.user  # whatever model the project has for it
    return bool(user.is_active and user.is_staff and user.has_perm(f"{Job._meta.app_label}.view_job"))


def may(request: HttpRequest, act: Repair | str) -> bool:
    """Return whether the user may do this, given as a repair or as the name of a permission."""
    user: Any = request.user
    codename = act.codename if isinstance(act, Repair) else f"{Job._meta.app_label}.{act}"
    return may_view(request) and bool(user.has_perm(codename))


class ReadOnlyAdmin(_ModelAdmin):
    """For models whose rows only the queue's verbs write; whoever may see jobs sees them."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Jobs are enqueued by code, and all else follows from them."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The queue owns every field; what may be done has buttons and permissions of its own."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Discard and prune are verbs of the queue."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may see jobs."""
        return may_view(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return the same: a page is listed for whoever may open it."""
        return may_view(request)
