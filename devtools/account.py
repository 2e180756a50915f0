"""The user an embedded server runs as: the caller, or `nobody` for root, whom PostgreSQL refuses.

Keeps everything that follows from that in one place: a directory which that user can reach, and programs
which it can run even when they are installed below a home that only root may enter.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from devtools.binaries import ServerError

SOCKET_PATH_LIMIT = 103 - len("/.s.PGSQL.65535")


class Account:
    """A user to run programs as; `options` are the subprocess arguments that switch to it."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = _nobody()
            self.options = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def make_directory(self) -> Path:
        """Make a temporary directory of this user, its path short enough for a socket."""
        for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):
            if not os.access(parent, os.W_OK | os.X_OK):
                continue
            directory = Path(tempfile.mkdtemp(prefix="pgqueue-", dir=parent)).resolve()
            self._give(directory)
            reachable = self._can("/bin/sh", "-c", 'cd "$0"', str(directory))
            if reachable and len(str(directory)) <= SOCKET_PATH_LIMIT:
                return directory
            directory.rmdir()
        raise ServerError(
            "The embedded PostgreSQL finds no temporary directory: set TMPDIR to a short, open path."
        )

    def reachable(self, source: Path, directory: Path) -> Path:
        """Return programs that this user can run: the source, or a copy of it in the given directory."""
        if not self.options or self._can(str(source / "postgres"), "--version"):
            return source
        package = source.parent.parent
        copy = directory / "programs"
        shutil.copytree(package, copy / package.name, symlinks=True)
        # The programs look for their libraries by a path relative to themselves.
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name, symlinks=True)
        for path in (copy, *copy.rglob("*")):
            self._give(path)
        return copy / package.name / source.relative_to(package)

    def _give(self, path: Path) -> None:
        if self.options:
            os.chown(path, self.options["user"], self.options["group"], follow_symlinks=False)

    def _can(self, *command: str) -> bool:
        try:
            return subprocess.run(command, cwd="/", capture_output=True, **self.options).returncode == 0
        except PermissionError:
            return False


def _nobody() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise ServerError(
            "PostgreSQL refuses to run as root, and there is no user 'nobody' to run it as."
            " Run this as another user, or set DATABASE_URL to use a server of your own."
        ) from None
