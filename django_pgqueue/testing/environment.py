"""What a test tells the worker that it starts, in variables that all its processes inherit."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from django.conf import ENVIRONMENT_VARIABLE, settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.test import testcases

PROJECT = "PGQUEUE_TEST_SETTINGS"
"""The name of the project's settings module."""
CHANGES = "PGQUEUE_TEST_CHANGES"
"""JSON: the test's databases by alias, and other settings to change."""
SETTINGS = "django_pgqueue.testing.worker_settings"
_KEYS = ("NAME", "USER", "PASSWORD", "HOST", "PORT")


def worker_environment(session_name: str, changed: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a worker whose database sessions all carry ``session_name``.

    Raises ImproperlyConfigured when the settings are in no module that another process could import.
    """
    module = os.environ.get(ENVIRONMENT_VARIABLE)
    if not module:
        raise ImproperlyConfigured(
            f"A worker reads the project's settings for itself: {ENVIRONMENT_VARIABLE} must name their "
            "module. Settings made by settings.configure() exist in this process only."
        )
    changes = {
        "settings": {**_tasks(), **changed},
        "databases": {
            connection.alias: {
                **{key: connection.settings_dict[key] for key in _KEYS},
                "OPTIONS": {"application_name": session_name},
            }
            for connection in connections.all()
            if is_allowed(connection)
        },
    }
    return {
        **os.environ,
        ENVIRONMENT_VARIABLE: SETTINGS,
        PROJECT: module,
        CHANGES: json.dumps(changes),
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
    }


def _tasks() -> dict[str, Any]:
    """Return TASKS as the test sees it, when it is plain: tests override it more than anything else."""
    try:
        return {"TASKS": json.loads(json.dumps(settings.TASKS))}
    except TypeError:
        return {}


def is_allowed(connection: Any) -> bool:
    """True for a PostgreSQL database that the running test may use."""
    # TestCase.databases shows nowhere else; an alias it leaves out may have no test database at all.
    forbidden = isinstance(connection.connect, testcases._DatabaseFailure)  # pyright: ignore[reportPrivateUsage]
    return connection.vendor == "postgresql" and not forbidden
