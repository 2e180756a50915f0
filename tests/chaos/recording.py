"""The record that processes write for themselves: one line of JSON per fact, one file per process.

A line is handed to the kernel by one ``write`` before the process goes on, so that neither SIGKILL nor an
outage of the database can hide an execution or bring two of them together. ``CHAOS_RECORD`` names the folder.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VARIABLE = "CHAOS_RECORD"
LEDGER = "CHAOS_LEDGER"
"""Tells the processes of a run how transfers are made; see ``ledger``."""
BEGAN, ENDED, DIES, WROTE, ASKED = "began", "ended", "dies", "wrote", "asked"

_files: dict[int, int] = {}


def write(*fact: Any) -> None:
    """Append one fact to this process's own file; its first word says what it is."""
    pid = os.getpid()
    if pid not in _files:
        path = os.path.join(os.environ[VARIABLE], f"{pid}.jsonl")
        _files.clear()  # a forked process must not write into its parent's
        _files[pid] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(_files[pid], json.dumps([time.monotonic(), *fact]).encode() + b"\n")


def read(folder: Path) -> Iterator[tuple[int, list[Any]]]:
    """Yield ``(pid, [time, word, ...])`` of all files, in the order of each."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open() as lines:
            for line in lines:
                yield int(path.stem), json.loads(line)
