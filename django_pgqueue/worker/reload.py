"""``--reload``: a parent that watches the code and restarts the worker as a subprocess.

Django's autoreloader runs the command in a thread, where signals cannot be handled and forks warn.
"""

import os
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
    command = [sys.executable, *_interpreter_options(), *(word for word in argv if word != "--reload")]
    stopping: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def stop(number: int, _frame: object) -> None:
        stopping.append(number)
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    while True:
        seen = snapshot()
        process = subprocess.Popen(command)  # noqa: S603 - this very command
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
    # python -m django ... : argv[0] is django/__main__.py, which must be run as a module again
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return (
        ["-m", spec.name.removesuffix(".__main__")]
        if spec is not None and not os.path.exists(sys.argv[0])
        else []
    )
