"""When a failed job runs again: exponential backoff with full jitter.

The delay before the next attempt is drawn uniformly from 0 to ``min(cap, base * 2 ** (n - 1))``
seconds, where n counts the failures charged to the present budget.  Full jitter spreads a herd of
jobs that failed together over the whole interval (see "Exponential Backoff And Jitter", AWS
Architecture Blog, 2015).  The exponent is bounded before it is used, so no count can overflow.
"""

import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MAX_DELAY = 10 * 365 * 24 * 3600.0
"""Seconds (ten years): the longest delay that is stored; more is cut to it."""

MAX_EXPONENT = 60
"""2 ** 60 seconds is beyond every cap; doubling further cannot change a delay."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """A backoff policy: ``base`` and ``cap`` in seconds.

    Raises ValueError for a negative or non-finite number and for a cap below the base.
    """

    base: float = 5.0
    cap: float = 3600.0

    def __post_init__(self) -> None:
        for name in ("base", "cap"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"Backoff {name} must be a number of seconds, not {value!r}")
            if not 0 <= value <= sys.float_info.max:  # an int may be larger than any float
                raise ValueError(f"Backoff {name} must be finite and not negative, not {value!r}")
        if self.cap < self.base:
            raise ValueError(f"Backoff cap ({self.cap}) must not be below its base ({self.base})")

    def ceiling(self, failures: int) -> float:
        """Return the longest delay in seconds after the given number of charged failures (>= 1)."""
        exponent = min(max(failures, 1) - 1, MAX_EXPONENT)
        return min(self.cap, self.base * 2.0**exponent, MAX_DELAY)

    def delay(self, failures: int) -> float:
        """Return a random delay in seconds after the given number of charged failures (>= 1)."""
        return random.uniform(0.0, self.ceiling(failures))  # noqa: S311 - jitter, not a secret


BackoffFunction = Callable[[BaseException, Any], float | None]
"""``(exception, task_result) -> seconds``; None means "use the default policy"."""


def storable_delay(seconds: float) -> float:
    """Return ``seconds`` as a delay that the database can add to a time.

    A negative delay becomes 0 and a long one ``MAX_DELAY``; raises ValueError for NaN and infinity.
    """
    try:
        seconds = float(seconds)
    except OverflowError:  # an int that no float can hold
        seconds = MAX_DELAY if seconds > 0 else 0.0
    if not math.isfinite(seconds):
        raise ValueError(f"a delay must be a finite number of seconds, not {seconds}")
    return min(max(seconds, 0.0), MAX_DELAY)
