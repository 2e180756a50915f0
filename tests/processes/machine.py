"""What this machine has beside Python and PostgreSQL."""

import subprocess


def faketime_library() -> str | None:
    """Return the path of libfaketime, if the machine has it."""
    found = subprocess.run(
        [
            "sh",
            "-c",
            "ls /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 2>/dev/null",
        ],
        capture_output=True,
        text=True,
    )
    return next(iter(found.stdout.split()), None)
