"""Imports Django's tests as the package `tasks`, which their own assertions want, with a few names mapped.

The files stay as they were published; the loader changes what Python sees, line by line.
"""

import re
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

import django

PACKAGE = "tasks"
OURS = {
    # The backends under test. Each setting that names one of Django's names ours instead.
    r"django\.tasks\.backends\.(dummy|immediate)": "tests.conformance.backends",
    r"DummyBackend": "StoredBackend",
    r"ImmediateBackend": "DrainedBackend",
    # Test cases that may use the database.
    r"from django\.test import": "from tests.conformance.cases import",
}
BACKPORT = {
    r"django\.tasks": "django_tasks",
    r"InvalidTaskBackend": "InvalidTaskBackendError",
    r"InvalidTask": "InvalidTaskError",
    # A message that differs by one letter.
    r"support async Tasks": "support async tasks",
}


def mapped(source: str) -> str:
    """Return the source of a test module as it is compiled."""
    names = OURS if django.VERSION >= (6, 0) else OURS | BACKPORT
    for name, ours in names.items():
        source = re.sub(rf"\b{name}\b", ours, source)
    return source


class Loader(SourceLoader):
    """Loads one module with its names mapped; keeps no bytecode."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get_filename(self, fullname: str) -> str:
        """Return the published file, which tracebacks then show."""
        return str(self._path)

    def get_data(self, path: str) -> bytes:  # type: ignore[override]
        """Return the mapped source."""
        return mapped(Path(path).read_text()).encode()


class Finder(MetaPathFinder):
    """Finds the package and its modules in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of `tasks` and what is below it, None for everything else."""
        name, *below = fullname.split(".")
        if name != PACKAGE:
            return None
        directory = self._folder.joinpath(name, *below)
        package = directory.is_dir()
        file = directory / "__init__.py" if package else directory.with_suffix(".py")
        if not file.exists():
            return None
        locations = [str(directory)] if package else None
        return spec_from_file_location(
            fullname, file, loader=Loader(file), submodule_search_locations=locations
        )


def install(folder: Path) -> None:
    """Make `import tasks` find Django's tests."""
    sys.meta_path.insert(0, Finder(folder))
