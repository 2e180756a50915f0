"""``--reload``: a parent that watches the code and restarts the worker as a subprocess.

Django's autoreloader runs the command in a thread, where signals cannot be handled and forks warn.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from django.utils.autoreload import iter_all_python_module_files

from ..events import log

LOOK_EVERY = 1.0


def run_with_reload(argv: Sequence[str]) -> int:
    """Run the same command without ``--reload``, again after each change; return its last exit code."""
    options = _interpreter_options()
    arguments = [word for word in (argv[1:] if options else argv) if word != "--reload"]
    command = [sys.executable, *options, *arguments]
    stopping: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def stop(number: int, _frame: object) -> None:
        stopping.append(number)
        # Ctrl-C reaches the worker too; passed on, it would be its second signal, which ends it at once.
        if number == signal.SIGTERM and process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    while True:
        seen = snapshot()
        process = subprocess.Popen(command)  # noqa: S603 - this very command
        if stopping:
            process.send_signal(signal.SIGTERM)  # the signal came when there was no process to tell
        while process.poll() is None and not stopping and snapshot() == seen:
            time.sleep(LOOK_EVERY)
        changed = process.poll() is None and not stopping
        if changed:
            log("code_changed", pid=process.pid)
            process.send_signal(signal.SIGTERM)
        code = process.wait()
        if not changed and (stopping or code == 0):
            return code
        while not changed and not stopping and snapshot() == seen:
            time.sleep(LOOK_EVERY)  # it failed: wait for the next change
        if stopping:
            return code


def snapshot() -> dict[Path, float]:
    """Return the modification times of the project's Python files and of their neighbours."""
    folders = {file.parent for file in iter_all_python_module_files() if _own(file)}
    times = {}
    for folder in folders:
        for file in folder.glob("*.py"):
            try:
                times[file] = file.stat().st_mtime
            except FileNotFoundError:
                continue
    return times


def _own(file: Path) -> bool:
    return not file.is_relative_to(sys.prefix) and not file.is_relative_to(sys.base_prefix)


def _interpreter_options() -> list[str]:
    # python -m django ...: run as a file, django/__main__.py would put its own folder in the place of the
    # project's in sys.path.
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return [] if spec is None else ["-m", spec.name.removesuffix(".__main__")]
