"""Makes virtual environments inside the clone, and again only when something they depend on has changed.

pip's cache and everything else stays in the clone; the user's own settings for Python, Django and PostgreSQL
do not leak in.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from devtools.interpreters import Interpreter, runs

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
TEMPORARY = CACHE / "tmp"
STAMP = "dev-stamp.json"
FOREIGN = {
    "DJANGO_SETTINGS_MODULE",
    "PIP_PREFIX",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_TARGET",
    "PIP_USER",
    "PYTHONDONTWRITEBYTECODE",  # every worker of every test would compile all of Django again: 3 s each
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTEST_ADDOPTS",
    "VIRTUAL_ENV",
    "__PYVENV_LAUNCHER__",
}
# Compiling what is never imported takes longer than downloading it.
OPTIONS = ("--progress-bar=off", "--no-compile")
SHOWN = ("Collecting", "Building editable", "Installing collected")


class SetupError(RuntimeError):
    """An environment could not be made; the message says which command failed."""


def clean_environ() -> dict[str, str]:
    """Return the environment for every command: the user's, less what would lead it astray."""
    # A DATABASE_URL that leaves out a host or a password means libpq's own variables.
    own_server = bool(os.environ.get("DATABASE_URL"))
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in FOREIGN and (own_server or not name.startswith("PG"))
    }
    pip = {"PIP_CACHE_DIR": str(CACHE / "pip"), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0"}
    # pytest keeps the last temporary files; they too belong in the clone.
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    return {**kept, **pip, "PYTEST_DEBUG_TEMPROOT": str(TEMPORARY)}


def ensure(directory: Path, interpreter: Interpreter, extras: Sequence[str], pins: Sequence[str]) -> Path:
    """Return the Python of an environment that holds the project with extras and pinned requirements."""
    requirements = ["--editable", f"{ROOT}[{','.join(extras)}]", *pins]
    base = {"interpreter": [interpreter.path, list(interpreter.version)]}
    wanted = {
        **base,
        "pyproject": hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest(),
        "requirements": requirements,
    }
    python = directory / "bin" / "python"
    with _locked():
        made = _read(directory / STAMP)
        sound = made.get("interpreter") == base["interpreter"] and runs(python)
        if made == wanted and sound:
            return python
        if not sound:
            say(f"making {directory.relative_to(ROOT)} with {interpreter.path}")
            shutil.rmtree(directory, ignore_errors=True)
            # Each stamp says how far this got, the first only that the folder is dev.py's own.
            _write(directory / STAMP, {})
            _checked([interpreter.path, "-m", "venv", str(directory)])
        _write(directory / STAMP, base)
        say(f"installing into {directory.relative_to(ROOT)} (the first time takes about a minute)")
        _install(python, requirements)
        _write(directory / STAMP, wanted)
    return python


def main_directory() -> Path:
    """Return the clone's .venv, or a folder in the cache where somebody else made a .venv."""
    usual = ROOT / ".venv"
    return CACHE / "venv" if usual.exists() and not (usual / STAMP).exists() else usual


def say(message: str) -> None:
    """Print one line of progress."""
    print(f"[dev] {message}", flush=True)


def _install(python: Path, requirements: Sequence[str]) -> None:
    command = [str(python), "-m", "pip", "install", *OPTIONS, *requirements]
    process = subprocess.Popen(
        command, env=clean_environ(), cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if line.strip().startswith(SHOWN):
            print(f"      {line.strip()[:100]}", flush=True)
    if process.wait():
        raise SetupError(f"pip failed:\n{''.join(said[-30:])}")


def _checked(command: Sequence[str]) -> None:
    done = subprocess.run(command, env=clean_environ(), cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SetupError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _read(stamp: Path) -> dict[str, object]:
    try:
        return dict(json.loads(stamp.read_text()))
    except (OSError, ValueError):
        return {}


def _write(stamp: Path, content: Mapping[str, object]) -> None:
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(json.dumps(content, indent=1) + "\n")


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Let one command at a time make environments: people start the demo and the tests side by side."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another dev.py that is making an environment")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
