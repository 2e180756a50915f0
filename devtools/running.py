"""Runs programs for dev.py: in turn with a summary, in its own place, or pytest for its closing line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

from devtools.environments import clean_environ, say

CLOSING = re.compile(r"=*\s*((?:\d+ \w.*|no tests ran) in [\d.]+s(?: \(.*\))?)\s*=*$")
COLOURS = re.compile(r"\x1b\[[\d;]*m")


class Outcome(NamedTuple):
    """The exit status of a run of pytest and its last line."""

    status: int
    closing: str


def run(python: Path, *arguments: str, env: Mapping[str, str] | None = None) -> int:
    """Run a command to its end and return its status; take it along when interrupted."""
    process = subprocess.Popen([str(python), *arguments], env={**clean_environ(), **(env or {})})
    try:
        return process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise


def run_pytest(python: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Outcome:
    """Run a command that ends with pytest's closing line, and pass on what it prints."""
    process = subprocess.Popen(
        [str(python), *arguments],
        env={**clean_environ(), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    closing = ""
    try:
        for line in process.stdout:
            print(line, end="", flush=True)
            found = CLOSING.match(COLOURS.sub("", line.strip()))
            closing = found[1] if found else closing
        return Outcome(process.wait(), closing or f"no closing line, exit status {process.returncode}")
    except BaseException:
        process.terminate()
        process.wait()
        raise


def become(python: Path, *arguments: str) -> NoReturn:
    """Replace this process, so that signals and the exit status need no passing on."""
    sys.stdout.flush()
    os.execve(python, [str(python), *arguments], clean_environ())


def summed_up(steps: Mapping[str, Callable[[], int]]) -> int:
    """Run steps in turn, say how each ended, and return 1 if any failed."""
    results = {}
    for name, step in steps.items():
        say(name)
        began = time.monotonic()
        status = step()
        outcome = f"FAILED ({status})" if status else "passed"
        results[name] = f"{outcome} in {time.monotonic() - began:.0f} s"
    for name, result in results.items():
        say(f"{name}: {result}")
    return int(any("FAILED" in result for result in results.values()))
