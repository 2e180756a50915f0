"""The log lines about what became of an attempt: one wording each."""

import logging
from typing import Any

from .. import states
from ..events import log, logger
from ..execution import Complete, Execution, Fail, PutOff, Unknown
from ..records import Answer


def fields_of(execution: Execution) -> dict[str, Any]:
    """Return the fields that name an attempt in a log line."""
    job = execution.job
    return {
        "job": job.job_id,
        "task": job.task_path,
        "queue": job.queue,
        "attempt": execution.number,
        "worker": execution.worker_id,
    }


def log_outcome(execution: Execution, answer: Answer) -> None:
    """Log a settled attempt."""
    decision = execution.decision
    if isinstance(decision, Complete):
        if logger.isEnabledFor(logging.DEBUG):  # building the line costs more than many a task
            log("succeeded", logging.DEBUG, **fields_of(execution))
        return
    fields: dict[str, Any] = fields_of(execution) | {"status": answer.status}
    if isinstance(decision, Fail):
        _log_failure(decision, answer.status, fields)
    elif isinstance(decision, Unknown):
        log("unknown_task", logging.WARNING, **fields)
    elif isinstance(decision, PutOff):
        log("snoozed", **fields)
    else:
        log("cancelled", **fields)


def _log_failure(failed: Fail, status: str | None, fields: dict[str, Any]) -> None:
    event, level = ("dead", logging.ERROR) if status == states.DEAD else ("failed", logging.WARNING)
    delay = failed.delay if status == states.SCHEDULED else None
    log(event, level, **fields, error=failed.exception_class, message=failed.message[:200], retry_in=delay)
