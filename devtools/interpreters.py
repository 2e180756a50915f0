"""Finds the Pythons of this machine that can really be used: a name on PATH may be a shim that refuses."""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OLDEST, NEWEST = (3, 11), (3, 14)
NAME = re.compile(r"python3(\.1[1-4])?")
# Prints what a Python is and lacks. Previews, PyPy and free-threaded builds have too few binary wheels; a
# virtual environment may vanish under the one made from it.
PROBE = """
import importlib, json, os, sys, sysconfig
missing = []
for name in ("venv", "ensurepip", "ssl", "sqlite3", "ctypes", "zlib"):
    try:
        importlib.import_module(name)
    except ImportError:
        missing.append(name)
usable = (
    sys.implementation.name == "cpython"
    and sys.version_info.releaselevel == "final"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
    and sys.prefix == sys.base_prefix
)
print(json.dumps([usable, sys.version_info[:3], os.path.realpath(sys.executable), missing]))
"""


class Interpreter(NamedTuple):
    """A Python that runs; `missing` names the standard modules that its installation lacks."""

    version: tuple[int, int, int]
    path: str
    missing: tuple[str, ...]

    @property
    def minor(self) -> str:
        """The version as in "3.13"."""
        return f"{self.version[0]}.{self.version[1]}"


class NoInterpreter(RuntimeError):
    """No usable Python; the message says what to install."""


def choose(minor: str | None = None) -> Interpreter:
    """Return the newest complete Python, or the newest complete one of a minor version ("3.12")."""
    found = [one for one in interpreters() if minor in (None, one.minor)]
    complete = [one for one in found if not one.missing]
    if complete:
        return complete[0]
    if found:
        one = found[0]
        raise NoInterpreter(
            f"{one.path} (Python {one.minor}) lacks {', '.join(one.missing)}."
            f" On Debian and Ubuntu: apt-get install python{one.minor}-venv (or python3-venv)."
        )
    wanted = f"Python {minor}" if minor else f"Python {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    raise NoInterpreter(f"No working {wanted} found on PATH or among pyenv's versions: install one.")


def interpreters() -> list[Interpreter]:
    """Return the supported Pythons that run, newest first."""
    probed = (probe(path) for path in dict.fromkeys(candidates()))
    found = {one for one in probed if one and OLDEST <= one.version[:2] <= NEWEST}
    return sorted(found, reverse=True)


def candidates() -> Iterator[str]:
    """Yield paths that look like a Python 3: the running one, those on PATH, those that pyenv built."""
    yield os.path.realpath(os.path.join(sys.base_prefix, "bin", "python3"))
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    directories = os.environ.get("PATH", os.defpath).split(os.pathsep)
    directories += sorted(glob.glob(os.path.join(glob.escape(pyenv), "versions", "3.1[1-4].*", "bin")))
    for directory in directories:
        try:
            names = os.listdir(directory or ".")
        except OSError:
            continue
        yield from (os.path.realpath(os.path.join(directory, name)) for name in names if NAME.fullmatch(name))


def probe(path: str) -> Interpreter | None:
    """Run a candidate and return what it says of itself, or None if it does not run or is of no use."""
    try:
        done = subprocess.run([path, "-I", "-c", PROBE], capture_output=True, text=True, timeout=30, cwd="/")
        usable, version, executable, missing = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return Interpreter(tuple(version), executable, tuple(missing)) if usable else None


def runs(path: str | Path) -> bool:
    """Tell whether a program, such as the Python of an environment whose base may be gone, still starts."""
    try:
        return subprocess.run([path, "-c", ""], capture_output=True).returncode == 0
    except OSError:
        return False
