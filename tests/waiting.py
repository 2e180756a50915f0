"""Waiting for a fact, or letting trouble last. The only place in the tests that sleeps."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
INTERVAL = 0.02


def wait_until(predicate: Callable[[], T], timeout: float = 10.0, message: str = "") -> T:
    """Call the predicate until it returns something true, and return that.

    Fails the test after `timeout` seconds, with the message and the last value. Errors of the predicate pass
    through.
    """
    deadline = time.monotonic() + timeout
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{message or 'Waited in vain'}: still {value!r} after {timeout} s")
        time.sleep(INTERVAL)
    return value


def wait_for(seconds: float) -> None:
    """Let trouble last."""
    time.sleep(seconds)
