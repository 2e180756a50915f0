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
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from devtools.interpreters import Interpreter, runs

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
STAMP = "dev-stamp.json"
FOREIGN = {
    "DJANGO_SETTINGS_MODULE",
    "PIP_PREFIX",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_TARGET",
    "PIP_USER",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTEST_ADDOPTS",
    "VIRTUAL_ENV",
    "__PYVENV_LAUNCHER__",
}
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
    return {**kept, **pip}


def ensure(directory: Path, interpreter: Interpreter, extras: Sequence[str], pins: Sequence[str]) -> Path:
    """Return the Python of an environment that holds the project with extras and pinned requirements.

    An environment that this function did not make (a user's own .venv) is kept and only installed into.
    """
    requirements = ["--editable", f"{ROOT}[{','.join(extras)}]", *pins]
    wanted = {
        "interpreter": [interpreter.path, list(interpreter.version)],
        "pyproject": hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest(),
        "requirements": requirements,
    }
    python = directory / "bin" / "python"
    with _locked():
        made = _read(directory / STAMP)
        if made == wanted and runs(python):
            return python
        ours = made is not None or not directory.exists()
        if ours and (not made or made.get("interpreter") != wanted["interpreter"] or not runs(python)):
            _create(directory, interpreter)
        elif not runs(python):
            raise SetupError(f"{directory} was not made by dev.py and has no working Python: move it away.")
        say(f"installing into {directory.relative_to(ROOT)} (the first time takes about a minute)")
        _install(python, requirements)
        if ours:
            _write(directory / STAMP, wanted)
    return python


def say(message: str) -> None:
    """Print one line of progress."""
    print(f"[dev] {message}", flush=True)


def _create(directory: Path, interpreter: Interpreter) -> None:
    say(f"making {directory.relative_to(ROOT)} with {interpreter.path}")
    _checked([interpreter.path, "-m", "venv", "--clear", str(directory)])
    # From here on the directory is known as ours, even if the installation is interrupted.
    _write(directory / STAMP, {"interpreter": [interpreter.path, list(interpreter.version)]})


def _install(python: Path, requirements: Sequence[str]) -> None:
    command = [str(python), "-m", "pip", "install", "--progress-bar=off", *requirements]
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


def _read(stamp: Path) -> dict[str, object] | None:
    try:
        return dict(json.loads(stamp.read_text()))
    except (OSError, ValueError):
        return None


def _write(stamp: Path, content: Mapping[str, object]) -> None:
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
