"""tests.settings with the changes of TESTS_SETTINGS on top, and the project whose start-up can be chosen."""

import json
import os
from typing import Any

from tests import settings as base
from tests.settings import *  # noqa: F403


def _laid_over(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {key: _laid_over(below.get(key), value) for key, value in above.items()}
    return above


INSTALLED_APPS = [*base.INSTALLED_APPS, "tests.processes.project.ProjectConfig"]
for _name, _value in json.loads(os.environ.get("TESTS_SETTINGS") or "{}").items():
    globals()[_name] = _laid_over(globals().get(_name), _value)

# Further aliases are the same database, connected to in another way.
DATABASES = {_name: _laid_over(base.DATABASES["default"], _entry) for _name, _entry in DATABASES.items()}  # noqa: F405
