"""Starts and ends the programs that take part, and reads from outside what they use.

Processor time and memory come from /proc; where there is none (macOS) those figures are left out.
"""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from devtools.environments import ROOT

PATIENCE = 900.0
"""Seconds that a driver may take."""
GRACE = 10.0
"""Seconds that a worker gets to stop."""
PROC = Path("/proc")


class Failed(RuntimeError):
    """A program that takes part did not do what it should; the message has the end of what it said."""


def answer_of(command: Sequence[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """Run a driver to its end and return the JSON object of its last line, or an empty one."""
    done = subprocess.run(
        command, env=dict(environ), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode:
        raise Failed(f"{' '.join(command[-3:])} failed: {(done.stdout + done.stderr)[-2000:]}")
    last = (done.stdout.strip().splitlines() or [""])[-1]
    return dict(json.loads(last)) if last.startswith("{") else {}


class Workers:
    """Worker processes of one contender; as a context manager they are stopped at its end."""

    def __init__(self, commands: Sequence[Sequence[str]], environ: Mapping[str, str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in stop()
        self._processes = [
            subprocess.Popen(
                command,
                env=dict(environ),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )
            for command in commands
        ]

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def alive(self) -> bool:
        """Return True; raises Failed when one has ended."""
        for process in self._processes:
            if process.poll() is not None:
                raise Failed(f"a worker ended with {process.returncode}: {self.said()}")
        return True

    def said(self) -> str:
        """Return the end of what the workers printed."""
        self._log.seek(max(self._log.seek(0, os.SEEK_END) - 2000, 0))
        return self._log.read().decode(errors="replace")

    def sessions(self) -> list[int]:
        """Return the ids of the sessions that the workers and their children live in."""
        return [process.pid for process in self._processes]

    def stop(self) -> None:
        """Ask them to stop, then make them; their children too."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        wait_for(lambda: all(p.poll() is not None for p in self._processes), GRACE, pause=0.02)
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._log.close()


def wait_for(fact: Callable[[], object], seconds: float, pause: float = 0.005) -> bool:
    """Wait until something is true; return False when the time is over."""
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


# --- what they use


def cpu_of_sessions(sessions: Sequence[int]) -> float | None:
    """Return the seconds of processor time of all processes in some sessions, with ended children."""
    if not PROC.is_dir():
        return None
    return sum(_cpu(fields, ended=True) for fields in _processes() if int(fields[3]) in sessions)


def cpu_of_server(postmaster: int | None) -> float | None:
    """Return the seconds of processor time of a PostgreSQL server: postmaster, backends, ended ones."""
    if postmaster is None or not PROC.is_dir():
        return None
    every = {fields[-1]: fields for fields in _processes()}
    own = every.get(str(postmaster))
    backends = [fields for fields in every.values() if fields[1] == str(postmaster)]
    return (_cpu(own, ended=True) if own else 0.0) + sum(_cpu(fields, ended=False) for fields in backends)


def memory_of(process: int) -> float | None:
    """Return the resident memory of a process in MB (10^6 bytes), None if it cannot be read."""
    try:
        pages = int((PROC / str(process) / "statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def count_of_sessions(sessions: Sequence[int]) -> int | None:
    """Return how many processes live in some sessions."""
    if not PROC.is_dir():
        return None
    return sum(int(fields[3]) in sessions for fields in _processes())


def _processes() -> list[list[str]]:
    """Return the fields of /proc/PID/stat from the state on, and the process id at the end."""
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            found.append([*text.rpartition(")")[2].split(), entry.name])
    return found


def _cpu(fields: Sequence[str], *, ended: bool) -> float:
    return sum(map(int, fields[11 : 15 if ended else 13])) / os.sysconf("SC_CLK_TCK")
