"""Sends the signals of the Tasks API, in every API that the project has loaded.

On Django 6 a library may still listen to the signals of the ``django-tasks`` backport; both sets fire.
A receiver that raises changes nothing for the job.
"""

import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

from . import compat
from .events import log_receiver_error

ASK_AGAIN = 1.0
"""Seconds for which it is remembered whether anybody would hear a signal."""


def send(name: str, *, sender: type, task_result: Any) -> None:
    """Send ``task_enqueued``, ``task_started`` or ``task_finished``; never raises an Exception."""
    for module in _signal_modules():
        for receiver, error in getattr(module, name).send_robust(sender, task_result=task_result):
            if isinstance(error, Exception):
                log_receiver_error(name, receiver, error, job=task_result.id)


def listens(name: str, level: int) -> bool:
    """Return whether a signal reaches anybody now, be it by the log line of ``level`` that it makes."""
    return _has_receivers(name) or _has_readers(level)


class Audience:
    """Knows whether a signal reaches anybody, so that a worker need not make results that nobody sees.

    Each API has a receiver of its own that logs a line; without other receivers, and where no handler
    takes that line (as in Django's default LOGGING without DEBUG), a signal is not worth sending.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[float, int, bool]] = {}

    def listens(self, name: str, level: int) -> bool:
        """Return whether to send the signal ``name``, whose own log line would be of ``level``.

        Remembered for a second, or until a receiver comes or goes.
        """
        now = time.monotonic()
        receivers = sum([len(getattr(module, name).receivers) for module in _signal_modules()])
        asked_at, counted, heard = self._known.get((name, level), (float("-inf"), -1, False))
        if now - asked_at > ASK_AGAIN or counted != receivers:
            heard = listens(name, level)
            self._known[name, level] = (now, receivers, heard)
        return heard


def _has_receivers(name: str) -> bool:
    """Return whether anybody receives a signal but the receiver that its API has for the log."""
    for module in _signal_modules():
        own = id(getattr(module, f"log_{name}"))
        if any(key[0] != own for key, *_ in getattr(module, name).receivers):
            return True
    return False


def _has_readers(level: int) -> bool:
    """Return whether anybody would read the lines of this level in an API's log."""
    return any(is_heard(module.logger, level) for module in _signal_modules())


def is_heard(logger: logging.Logger, level: int) -> bool:
    """Return whether any handler would take a record of this logger and level."""
    if not logger.isEnabledFor(level):
        return False
    record = logger.makeRecord(logger.name, level, __file__, 0, "", (), None)
    if not logger.filter(record):
        return False
    handlers = list(_handlers(logger))
    if not handlers:
        return logging.lastResort is not None and level >= logging.lastResort.level
    return any(level >= handler.level and handler.filter(record) for handler in handlers)


def _handlers(logger: logging.Logger | None) -> Iterator[logging.Handler]:
    while logger is not None:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None


def _signal_modules() -> list[Any]:
    backport = sys.modules.get("django_tasks.signals")
    if backport is None or backport is compat.signals:
        return [compat.signals]
    return [compat.signals, backport]
