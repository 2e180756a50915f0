"""The queue's log: one structured line for each event, one wording for each.

A line is ``event key=value key=value``; values with spaces or quotes are quoted as JSON.  Everything
goes to the logger ``django_pgqueue``.
"""

import json
import logging
from typing import Any

logger = logging.getLogger("django_pgqueue")


def log_to_stderr(level: int) -> None:
    """Send the queue's events of this level and above to stderr, unless the project handles them itself."""
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
    if logger.level == logging.NOTSET:
        logger.setLevel(level)


def log(event: str, level: int = logging.INFO, exc_info: Any = None, **fields: Any) -> None:
    """Log one event with its fields; None fields are left out."""
    if logger.isEnabledFor(level):
        line = " ".join(
            [event, *(f"{key}={_shown(value)}" for key, value in fields.items() if value is not None)]
        )
        logger.log(level, "%s", line, exc_info=exc_info, extra={"event": event, "fields": fields})


def log_receiver_error(signal: str, receiver: Any, error: BaseException, **fields: Any) -> None:
    """Log that a signal's receiver raised; the job is not affected."""
    name = getattr(receiver, "__qualname__", repr(receiver))
    log("receiver_failed", logging.ERROR, exc_info=error, signal=signal, receiver=name, **fields)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    text = str(value)
    if text and not any(c in ' "=\n\r\t\\' for c in text) and text.isprintable():
        return text
    return json.dumps(text)
