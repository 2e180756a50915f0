"""Makes an environment of its own for each peer, of the newest versions, when it is first asked for.

They lie under .cache/peers; removing a folder there is how to get newer versions later.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.core.lanes import CannotRun
from devtools.environments import CACHE, clean_environ, say
from devtools.interpreters import NoInterpreter, choose

PEERS = CACHE / "peers"
STAMP = "requirements.json"


def python_environment(name: str, requirements: Sequence[str]) -> Path:
    """Return the Python of an environment with these packages; raises CannotRun."""
    directory = PEERS / name
    python = directory / "bin" / "python"
    if _stamp(directory) == list(requirements):
        return python
    try:
        interpreter = choose()
    except NoInterpreter as error:
        raise CannotRun(str(error)) from None
    say(f"making an environment for {name}")
    shutil.rmtree(directory, ignore_errors=True)
    _run([interpreter.path, "-m", "venv", str(directory)])
    _run([str(python), "-m", "pip", "install", "--quiet", *requirements])
    _write(directory, requirements)
    return python


def node_environment(name: str, requirements: Sequence[str]) -> tuple[str, Path]:
    """Return node and the folder in which these packages are installed; raises CannotRun."""
    node, npm = program("node", "Node.js"), program("npm", "npm")
    directory = PEERS / name
    if _stamp(directory) != list(requirements):
        say(f"making an environment for {name}")
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        _run([npm, "install", "--prefix", str(directory), "--no-audit", "--no-fund", *requirements])
        _write(directory, requirements)
    return node, directory


def program(name: str, what: str) -> str:
    """Return the path of a program; raises CannotRun."""
    found = shutil.which(name)
    if not found:
        raise CannotRun(f"{what} ({name}) is not on PATH")
    return found


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, env=clean_environ(), capture_output=True, text=True)
    if done.returncode:
        raise CannotRun(f"{' '.join(command[:4])} failed: {(done.stdout + done.stderr)[-800:]}")


def _stamp(directory: Path) -> list[str] | None:
    try:
        return list(json.loads((directory / STAMP).read_text()))
    except (OSError, ValueError):
        return None


def _write(directory: Path, requirements: Sequence[str]) -> None:
    (directory / STAMP).write_text(json.dumps(list(requirements)))
