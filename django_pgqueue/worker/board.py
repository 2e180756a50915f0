"""Shared memory of one child: what it holds, and what the others have to tell it.

A board has a header and a fixed number of entries, one for each job the child holds.  Each field has
one writer.  An entry's generation is odd while the child changes it, so that a reader can tell a torn
read.  The keeper writes only ``beat`` and the verdicts, the supervisor only ``state`` and ``command``.
"""

import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from ..records import Fence

CAPACITY = 1024
"""Jobs that one child may hold at once: prefetched, running, and not yet durably settled."""

# States of a board, written by the supervisor; the keeper turns DEAD into FREE when it has rescued.
FREE, LIVE, DEAD = 0, 1, 2
# Commands to the child.
RUN, STOP, QUIT = 0, 1, 2
# Verdicts on an entry.
NONE, LOST, CANCEL_REQUESTED = 0, 1, 2

_HEADER = {
    name: struct.Struct(code)
    for name, code in {
        "state": "q",
        "command": "q",
        "pid": "q",
        "ready": "q",
        "backend": "q",
        "claiming": "q",
        "quota": "q",
        "used": "q",
        "drained": "q",
        "in_vain": "q",
        "sleeping": "q",
        "beat": "d",
        "born": "d",
    }.items()
}
_OFFSET = {name: index * 8 for index, name in enumerate(_HEADER)}
_TEXTS = {"worker_id": (128, 128), "reason": (256, 256)}
_HEADER_SIZE = 512
_ENTRY = struct.Struct(
    "qqq16sddqqq"
)  # generation, job, version, token, started, deadline, verdict: job, version, code
_BODY = struct.Struct("qq16sdd")
_VERDICT = struct.Struct("qqq")
_GENERATION = struct.Struct("q")
_STARTED = struct.Struct("d")
_JOB = struct.Struct("q")
_JOB_OFFSET, _STARTED_OFFSET, _VERDICT_OFFSET = 8, 40, 56
BOARD_SIZE = _HEADER_SIZE + CAPACITY * _ENTRY.size


class Held(NamedTuple):
    """An entry as another process reads it; ``started`` and ``deadline`` are monotonic, 0 if not set."""

    entry: int
    fence: Fence
    started: float
    deadline: float


@dataclass(frozen=True, slots=True)
class Board:
    """A view of one board inside the shared map."""

    memory: mmap.mmap
    base: int

    def get(self, name: str) -> float:
        """Return a header field."""
        value: float = _HEADER[name].unpack_from(self.memory, self.base + _OFFSET[name])[0]
        return value

    def set(self, name: str, value: float) -> None:
        """Set a header field; each has one writer."""
        _HEADER[name].pack_into(self.memory, self.base + _OFFSET[name], value)

    def get_text(self, name: str) -> str:
        """Return a header text."""
        offset, size = _TEXTS[name]
        raw = self.memory[self.base + offset : self.base + offset + size]
        return raw.rstrip(b"\0").decode("utf-8", "replace")

    def set_text(self, name: str, text: str) -> None:
        """Set a header text, cut to its place."""
        offset, size = _TEXTS[name]
        self.memory[self.base + offset : self.base + offset + size] = text.encode()[:size].ljust(size, b"\0")

    def clear(self) -> None:
        """Forget everything; before a new child takes the board."""
        self.memory[self.base : self.base + BOARD_SIZE] = bytes(BOARD_SIZE)

    def publish(self, index: int, fence: Fence) -> None:
        """Enter a job that was claimed."""
        at = self.base + _HEADER_SIZE + index * _ENTRY.size
        generation = _GENERATION.unpack_from(self.memory, at)[0]
        _GENERATION.pack_into(self.memory, at, generation + 1)
        _BODY.pack_into(
            self.memory, at + 8, fence.job_id, fence.lease_version, fence.lease_token.bytes, 0.0, 0.0
        )
        _VERDICT.pack_into(self.memory, at + _VERDICT_OFFSET, 0, 0, NONE)
        _GENERATION.pack_into(self.memory, at, generation + 2)

    def start(self, index: int, started: float, deadline: float) -> None:
        """Mark a job as started; before its task is called."""
        at = self.base + _HEADER_SIZE + index * _ENTRY.size + _STARTED_OFFSET
        _STARTED.pack_into(self.memory, at + 8, deadline)
        _STARTED.pack_into(self.memory, at, started)

    def withdraw(self, index: int) -> None:
        """Remove a job that is settled or lost."""
        # One aligned word says that an entry is free; what else stands there is overwritten by the next job.
        _JOB.pack_into(self.memory, self.base + _HEADER_SIZE + index * _ENTRY.size + _JOB_OFFSET, 0)

    def held(self) -> Iterator[Held]:
        """Yield the entries in use; a torn one is left out until the next look."""
        start = self.base + _HEADER_SIZE
        for index in range(CAPACITY):
            at = start + index * _ENTRY.size
            before, job_id, version, token, started, deadline, *_ = _ENTRY.unpack_from(self.memory, at)
            if not job_id or before % 2 or _GENERATION.unpack_from(self.memory, at)[0] != before:
                continue
            yield Held(index, Fence(job_id, version, UUID(bytes=token)), started, deadline)

    def judge(self, held: Held, code: int) -> None:
        """Tell the child what became of a lease; it counts only for the fence that it names."""
        at = self.base + _HEADER_SIZE + held.entry * _ENTRY.size + _VERDICT_OFFSET
        _VERDICT.pack_into(self.memory, at, held.fence.job_id, held.fence.lease_version, code)

    def verdict(self, index: int, fence: Fence) -> int:
        """Return the keeper's verdict on an entry of this very claim."""
        at = self.base + _HEADER_SIZE + index * _ENTRY.size + _VERDICT_OFFSET
        job_id, version, code = _VERDICT.unpack_from(self.memory, at)
        return code if (job_id, version) == (fence.job_id, fence.lease_version) else NONE


def make_memory(boards: int) -> tuple[mmap.mmap, int]:
    """Return shared memory for so many boards, and its file descriptor (for processes made by exec)."""
    size = boards * BOARD_SIZE
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("django_pgqueue")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return mmap.mmap(fd, size), fd


def open_memory(fd: int) -> mmap.mmap:
    """Return the memory behind an inherited descriptor."""
    return mmap.mmap(fd, os.fstat(fd).st_size)


def boards_of(memory: mmap.mmap) -> list[Board]:
    """Return all boards of a map."""
    return [Board(memory, base) for base in range(0, len(memory), BOARD_SIZE)]
