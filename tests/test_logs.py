"""``JobFilter``: a project's log lines say which job wrote them."""

import logging
import logging.config
import logging.handlers
import queue
from collections.abc import Iterator
from typing import Any

import pytest

from django_pgqueue import running
from django_pgqueue.events import log
from django_pgqueue.logs import FIELDS, JobFilter

from .test_noting import attempt

logger = logging.getLogger("tests.logs")


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """What a handler with the filter gets."""
    found: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    handler = Keep()
    handler.addFilter(JobFilter())
    logging.root.addHandler(handler)
    yield found
    logging.root.removeHandler(handler)


def fields_of(record: logging.LogRecord) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in FIELDS)


def test_a_line_of_a_task_names_its_job(records: list[logging.LogRecord]) -> None:
    with running.within(attempt(7)):
        logger.warning("said")
    assert fields_of(records[0]) == (7, "tests.tasks.ok", "emails", 3)


def test_outside_of_a_job_the_fields_are_empty(records: list[logging.LogRecord]) -> None:
    logger.warning("said")
    assert fields_of(records[0]) == ("", "", "", "")


def test_what_a_record_has_already_stays(records: list[logging.LogRecord]) -> None:
    with running.within(attempt(7)):
        logger.warning("said", extra={"queue": "of customers"})
    assert fields_of(records[0]) == (7, "tests.tasks.ok", "of customers", 3)


def test_a_handler_in_another_thread_sees_the_job(records: list[logging.LogRecord]) -> None:
    """With the filter on the handler that hands over, as ``QueueHandler`` does."""
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    handing_over = logging.handlers.QueueHandler(waiting)
    handing_over.addFilter(JobFilter())
    logger.addHandler(handing_over)
    try:
        with running.within(attempt(7)):
            logger.warning("said")
    finally:
        logger.removeHandler(handing_over)
    late = waiting.get_nowait()
    JobFilter().filter(late)
    assert fields_of(late) == (7, "tests.tasks.ok", "emails", 3)


def test_the_queues_own_lines_name_the_job_that_they_are_about(records: list[logging.LogRecord]) -> None:
    log("failed", logging.WARNING, job=9, task="shop.tasks.pay", queue="default", attempt=2, error="x")
    log("supervisor_gone", logging.ERROR, worker="w")
    assert [fields_of(record) for record in records] == [
        (9, "shop.tasks.pay", "default", 2),
        ("", "", "", ""),
    ]
