"""Sends the signals of the Tasks API, in every API that the project has loaded.

On Django 6 a library may still listen to the signals of the ``django-tasks`` backport; both sets fire.
A receiver that raises changes nothing for the job.
"""

import sys
from typing import Any

from . import compat
from .events import log_receiver_error


def send(name: str, *, sender: type, task_result: Any) -> None:
    """Send ``task_enqueued``, ``task_started`` or ``task_finished``; never raises an Exception."""
    for module in _signal_modules():
        for receiver, error in getattr(module, name).send_robust(sender, task_result=task_result):
            if isinstance(error, Exception):
                log_receiver_error(name, receiver, error, job=task_result.id)


def _signal_modules() -> list[Any]:
    backport = sys.modules.get("django_tasks.signals")
    if backport is None or backport is compat.signals:
        return [compat.signals]
    return [compat.signals, backport]
