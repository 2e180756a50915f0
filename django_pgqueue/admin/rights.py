"""Who may do what on these pages: every act needs its own permission, beside the one to see jobs."""

from typing import Any

from django.http import HttpRequest

from django_pgqueue.models import Job

from .repairs import Repair

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
