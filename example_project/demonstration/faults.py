"""Why a demo ends early."""

import signal
import sys
from types import FrameType
from typing import NoReturn


class DemoFailed(Exception):
    """Something the demo needs does not work; the message says what and where to look."""


class Interrupted(BaseException):
    """Somebody asked the demo to stop.  No Exception, so that nothing takes it for a fault."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_status = 128 + number


def end_on_signals() -> None:
    """Turn Ctrl-C and SIGTERM into ``Interrupted`` once; tidying up is not interrupted in turn."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    for each in _SIGNALS:
        # nohup has the hang-up ignored, and means it.
        if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN:
            signal.signal(each, stop)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def say(text: str = "") -> None:
    """Print a line at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
