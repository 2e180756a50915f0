"""What the figures depend on: versions, settings of the server, the machine."""

import os
import platform
from pathlib import Path
from typing import Any

import django
import psycopg

import django_pgqueue

SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers")


def versions(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Return what took part, the server's durability settings included."""
    said = {
        "django-pgqueue-tasks": django_pgqueue.__version__,
        "python": platform.python_version(),
        "django": django.get_version(),
        "psycopg": f"{psycopg.__version__} ({psycopg.pq.__impl__})",
        "postgresql": _setting(connection, "server_version"),
    }
    return said | {name: _setting(connection, name) for name in SETTINGS}


def is_durable(facts: dict[str, str]) -> bool:
    """Return whether a commit is on disk before the client hears of it."""
    return all(facts[name] == "on" for name in SETTINGS[:3])


def machine() -> dict[str, Any]:
    """Return the machine: system, processor, cores that this process may use, memory, load right now."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024**2
        load = round(os.getloadavg()[0], 2)
    except (OSError, ValueError):
        memory, load = None, None
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_mb": memory,
        "load": load,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _setting(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
    return str(row[0]) if row else ""
