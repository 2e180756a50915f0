"""A ``runworkers`` that ends with the test run; its first argument is the process id of that.

Where the system offers it (Linux), the end of the test run ends the worker too, even by SIGKILL.
"""

import ctypes
import os
import signal
import sys

from django.core.management import execute_from_command_line

PR_SET_PDEATHSIG = 1


def main(parent: str, *arguments: str) -> None:
    """Run ``runworkers`` until it is stopped, or until the process with the id ``parent`` ends."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        sys.exit("the test run has ended already")
    execute_from_command_line(["django", "runworkers", *arguments])


if __name__ == "__main__":
    main(*sys.argv[1:])
