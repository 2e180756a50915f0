"""Which versions are tested together: the environments of single commands and the matrix of test runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from devtools.environments import CACHE, ensure
from devtools.interpreters import Interpreter, choose

EXTRAS = ("test", "demo")


class Leg(NamedTuple):
    """One combination of versions; `pins` are requirements beyond the project's own."""

    python: str
    django: str
    postgres: int
    pins: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"Python {self.python}, Django {self.django}, PostgreSQL {self.postgres}"

    @property
    def name(self) -> str:
        """Short name, to choose the leg by."""
        return f"py{self.python}-django{self.django}-pg{self.postgres}"

    def environment(self) -> Path:
        """Make the environment and return its Python. Raises NoInterpreter: a missing leg must not pass."""
        return _environment(CACHE / self.name, choose(self.python), self.django, pins=self.pins)


# `make test` adds the newest of each, on PostgreSQL 18. The oldest leg also takes the oldest psycopg.
MATRIX = (
    Leg("3.11", "5.2", 15, ("psycopg[binary]==3.2.*",)),
    Leg("3.12", "6.0", 16),
    Leg("3.13", "6.1", 17),
)


def environment(directory: Path, *more: str) -> Path:
    """Make an environment of the newest Python and the newest Django it can run; return its Python.

    `more` are extras of the project beyond those that the tests and the demo need.
    """
    interpreter = choose()
    django = "6.1" if interpreter.version >= (3, 12) else "5.2"
    return _environment(directory, interpreter, django, more)


def _environment(
    directory: Path,
    interpreter: Interpreter,
    django: str,
    more: tuple[str, ...] = (),
    pins: tuple[str, ...] = (),
) -> Path:
    # Django 5.2 has no django.tasks of its own.
    backport = ["backport"] if django == "5.2" else []
    return ensure(directory, interpreter, [*EXTRAS, *more, *backport], [f"Django=={django}.*", *pins])
