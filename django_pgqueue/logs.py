"""For the project's LOGGING: which job wrote a line."""

import logging

from . import running

FIELDS = ("job_id", "task_path", "queue", "attempt")
_OF_EVENTS = ("job", "task", "queue", "attempt")


class JobFilter(logging.Filter):
    """Gives each record ``job_id``, ``task_path``, ``queue`` and ``attempt``; empty text outside of a job.

    Lets every record pass.  What a record has already stays: a handler in another thread asks too late.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields that are missing."""
        for name, value in zip(FIELDS, _values(record), strict=True):
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


def _values(record: logging.LogRecord) -> tuple[object, ...]:
    job = running.current()
    if job is not None:
        return job.job.job_id, job.job.task_path, job.job.queue, job.number
    # The worker's own lines are about a job, and are written where none runs.
    fields = getattr(record, "fields", None)
    if not hasattr(record, "event") or not isinstance(fields, dict):
        fields = {}
    return tuple(fields.get(name, "") for name in _OF_EVENTS)
