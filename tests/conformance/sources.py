"""Fetches the tests of Django's Tasks API: they are in the source distribution only.

`tests/tasks` is unpacked into the clone's cache, once for each version, and nothing else of it is kept.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import django

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "conformance"
FOR_BACKPORT = "6.0.10"
"""Whose tests the backport is held to: its own distribution has none."""
# The tests run on a Django that is installed already, so what its source asks of Python does not matter.
DOWNLOAD = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=django", "--ignore-requires-python"]


def version() -> str:
    """Return the Django version whose tests apply to the installed one."""
    return django.get_version() if django.VERSION >= (6, 0) else FOR_BACKPORT


def folder() -> Path:
    """Return the folder that holds the package `tasks`, fetched if need be; raises CalledProcessError."""
    target = CACHE / version()
    if not target.exists():
        print(f"[conformance] fetching the tests of Django {version()}", flush=True)  # noqa: T201 - takes a while
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            command = [sys.executable, *DOWNLOAD, f"--dest={scratch}", f"Django=={version()}"]
            subprocess.run(command, check=True)
            (archive,) = Path(scratch).glob("*.tar.gz")
            _unpack(archive, Path(scratch) / "tests")
            # Renamed when complete, so that an interrupted download is never taken for a finished one.
            (Path(scratch) / "tests").rename(target)
    return target


def _unpack(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            _, _, inside = member.name.partition("/tests/")
            if inside.startswith("tasks/") and member.isfile():
                file = tar.extractfile(member)
                assert file is not None
                path = target / inside
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.read())
