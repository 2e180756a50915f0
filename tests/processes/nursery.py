"""Where worker processes come from: forked from one that has imported Django and done nothing else.

Importing Django takes most of a second of a processor, and these tests start a hundred workers. What is
forked runs ``python -m django`` as in a new interpreter: settings, set-up, command. As a script this file is
that process; it reads requests and writes what became of them, a line of JSON each.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
IMPORTED = (
    "asgiref.sync",
    "asyncio",
    "django.contrib.admin",
    "django.contrib.admin.sites",
    "django.contrib.auth.hashers",
    "django.contrib.staticfiles.checks",
    "django.core.mail",
    "django.core.management",
    "django.db.backends.postgresql.base",
    "django.db.models",
    "django.forms",
    "django.template.backends.django",
    "django.urls",
    "django.utils.autoreload",
    "django.views.generic",
    "faulthandler",
    "logging.handlers",
    "psycopg",
    "psycopg.types.json",
    "psycopg.types.range",
)


def die_with_parent() -> None:
    """Get SIGTERM when the parent ends, however it does."""
    getattr(ctypes.CDLL(None), "prctl", lambda *_: None)(1, signal.SIGTERM)


class Nursery:
    """The test's end: starts workers and knows their exit codes."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", str(Path(__file__))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        self._unread = b""
        self._codes: dict[int, int] = {}
        self._born: list[int] = []

    def start(self, arguments: Sequence[str], environ: Mapping[str, str], log: Path) -> int:
        """Start ``python -m django`` with these arguments in a session of its own; return its pid."""
        request = {"arguments": list(arguments), "environ": dict(environ), "log": str(log)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        while not self._born:
            self._read(PATIENCE)
        return self._born.pop()

    def poll(self, pid: int) -> int | None:
        """Return a process's exit code, None while it runs."""
        while pid not in self._codes and self._read(0.0):
            pass
        return self._codes.get(pid)

    def close(self) -> None:
        """End the nursery."""
        self._process.communicate(timeout=PATIENCE)

    def _read(self, patience: float) -> bool:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        if not select.select([pipe], [], [], patience)[0]:
            assert not patience, "the nursery does not answer"
            return False
        data = os.read(pipe, 65536)
        assert data, "the nursery is gone"
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "code" in said:
                self._codes[said["pid"]] = said["code"]
            else:
                self._born.append(said["pid"])
        return True


# --- the other end


def main() -> None:
    """Serve until standard input ends."""
    die_with_parent()
    for name in IMPORTED:
        with suppress(Exception):  # some ask for settings, but leave most of what they import
            importlib.import_module(name)
    gc.freeze()  # no collection in a child shall touch, and so copy, these pages
    ears, mouth = os.pipe()
    os.set_blocking(mouth, False)
    signal.set_wakeup_fd(mouth)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    unread = b""
    while True:
        readable, _, _ = select.select([0, ears], [], [])
        if ears in readable:
            os.read(ears, 4096)
            report_ends()
        if 0 in readable:
            if not (data := os.read(0, 65536)):
                return
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                say(pid=bear(json.loads(line), [ears, mouth]))


def say(**words: int) -> None:
    os.write(1, json.dumps(words).encode() + b"\n")


def report_ends() -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            say(pid=ended[0], code=os.waitstatus_to_exitcode(ended[1]))


def bear(request: dict[str, Any], inherited: Sequence[int]) -> int:
    """Fork a worker; returns in the parent only, when the child has a session of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        os.read(read, 1)
        os.close(read)
        return pid
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    die_with_parent()
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for fd, place in ((os.open(os.devnull, os.O_RDONLY), 0), (log, 1), (log, 2)):
        os.dup2(fd, place)
    for fd in (read, write, *inherited):
        os.close(fd)
    live(request)


def live(request: dict[str, Any]) -> NoReturn:
    """Be ``python -m django``, but for the end: tearing all those modules down takes longer than it."""
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.path[:0] = [os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = ["django", *request["arguments"]]
    code: Any = 1
    try:
        runpy.run_module("django", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - nothing may return into the nursery's code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
