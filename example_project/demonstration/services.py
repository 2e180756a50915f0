"""The processes of the demo: each a ``manage.py`` command with a log file, all of them ended at the end."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from .faults import DemoFailed, say

MANAGE = Path(__file__).resolve().parent.parent / "manage.py"
START = 30.0
END = 35.0
"""Seconds: longer than the workers' grace."""


class Services:
    """Processes in sessions of their own, so that a Ctrl-C in the terminal reaches the demo alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, name: str, *arguments: str) -> int:
        """Start ``manage.py`` with the arguments and return its process id; output goes to NAME.log."""
        with self.log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, str(MANAGE), *arguments],
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self._processes[name].pid

    def log(self, name: str) -> Path:
        """Return where a service's output goes."""
        return self._folder / f"{name}.log"

    def wait_for(self, url: str) -> None:
        """Return once the address answers.  Raises DemoFailed."""
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            self.check()
            with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                urllib.request.urlopen(url, timeout=5).close()
                return
            time.sleep(0.05)
        raise DemoFailed(f"{url} does not answer. Its log is in {self._folder}.")

    def check(self) -> None:
        """Raise DemoFailed if a service has ended by itself."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                tail = "\n".join(self.log(name).read_text(errors="replace").splitlines()[-15:])
                raise DemoFailed(
                    f"{name} ended with {process.returncode}. The end of {self.log(name)}:\n{tail}"
                )

    def stop(self) -> dict[str, int]:
        """End all with SIGTERM, the last started first; return the exit statuses; kill what does not end."""
        statuses = {}
        while self._processes:
            name, process = self._processes.popitem()
            process.send_signal(signal.SIGTERM)
            try:
                statuses[name] = process.wait(END)
            except subprocess.TimeoutExpired:
                say(f"{name} did not end within {END:.0f} s of SIGTERM and is killed.")
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                statuses[name] = process.wait()
        return statuses


def free_port() -> int:
    """Return a port of the loopback interface that nobody uses now."""
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        port: int = candidate.getsockname()[1]
        return port
