"""Ends an embedded server whose owner is gone, whatever ended the owner, and removes its directory.

Run as a script: `watcher.py OWNER_PID DIRECTORY`. Standard input is a pipe that only the owner writes to:
the process id of the running server, 0 when it has stopped it. End of file, or another parent, means that
the owner is done or dead. A forked child of the owner can keep the pipe open; the parent's id still tells.
"""

import os
import select
import shutil
import signal
import sys
import time

PATIENCE = 15.0


def main(owner: int, directory: str) -> None:
    """Watch until the owner is gone, then leave nothing behind."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    server = follow(owner)
    if server:
        end(server, os.path.join(directory, "data", "postmaster.pid"))
    remove(directory)


def follow(owner: int) -> int:
    """Return the process id of the server that the owner left running, or 0."""
    server = 0
    while os.getppid() == owner:
        if select.select([0], [], [], 1.0)[0]:
            written = os.read(0, 4096)
            if not written:
                break
            server = int(written.split()[-1])
    return server


def end(server: int, pid_file: str) -> None:
    """Stop the server at once; its data is about to be deleted."""
    deadline = time.monotonic() + PATIENCE
    try:
        os.kill(server, signal.SIGQUIT)
        # The file goes last; the process id may stay on as a zombie where nobody reaps orphans.
        while os.path.exists(pid_file) and time.monotonic() < deadline:
            os.kill(server, 0)
            time.sleep(0.02)
        if os.path.exists(pid_file):
            os.kill(server, signal.SIGKILL)
    except ProcessLookupError:
        pass


def remove(directory: str) -> None:
    """Delete the directory, again while a dying process still writes to it."""
    deadline = time.monotonic() + PATIENCE
    while os.path.exists(directory) and time.monotonic() < deadline:
        shutil.rmtree(directory, ignore_errors=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
