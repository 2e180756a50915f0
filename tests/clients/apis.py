"""The Tasks APIs of a project that has the backport: Django's own from 6.0 on, and the backport's."""

from importlib import import_module
from types import ModuleType

import django

NAMES = ("django.tasks", "django_tasks") if django.VERSION >= (6, 0) else ("django_tasks",)


def apis() -> dict[str, ModuleType]:
    """Return the APIs by their names, the one that the queue itself uses first."""
    return {name: import_module(name) for name in NAMES}
