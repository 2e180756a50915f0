"""Settings of a worker that a test has started: the project's, on the test's databases, without real mail.

They are a settings module and not a patch, because every process of a worker reads the settings for
itself.  The environment names the project's module and the changes; see ``environment``.
"""

import json
import os
from importlib import import_module
from typing import Any

from .environment import CHANGES, PROJECT

LOCMEM = "django.core.mail.backends.locmem.EmailBackend"
FORBIDDEN: dict[str, Any] = {"ENGINE": "django.db.backends.dummy"}
"""A database that the test may not use: its settings may name the real one."""

_project = import_module(os.environ[PROJECT])
_changes = json.loads(os.environ[CHANGES])
globals().update({name: value for name, value in vars(_project).items() if name.isupper()})


def _changed(alias: str, database: dict[str, Any]) -> dict[str, Any]:
    change: dict[str, Any] | None = _changes["databases"].get(alias)
    if change is None:
        return FORBIDDEN
    return database | change | {"OPTIONS": database.get("OPTIONS", {}) | change["OPTIONS"]}


DATABASES = {alias: _changed(alias, database) for alias, database in _project.DATABASES.items()}
if hasattr(_project, "MAILERS"):
    MAILERS = {alias: {"BACKEND": LOCMEM} for alias in _project.MAILERS}
else:
    EMAIL_BACKEND = LOCMEM
globals().update(_changes["settings"])
