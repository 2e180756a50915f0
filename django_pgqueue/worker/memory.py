"""How much memory a process holds."""

import os
from pathlib import Path


def resident_megabytes(pid: int) -> int | None:
    """Return the resident memory of a process, or None where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
