"""Who listens to the signals of a worker, so that none is kept from anybody and none is made for nobody."""

import logging
from typing import Any

import pytest

from django_pgqueue import announcements, compat
from django_pgqueue.announcements import Audience, is_heard

LEVELS = {"task_started": logging.INFO, "task_finished": logging.ERROR}


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    """The logger of the Tasks API's own lines, heard by nobody: pytest listens to all that are registered."""
    logger = logging.Logger("lines", logging.INFO)  # noqa: LOG001 - not a registered one
    monkeypatch.setattr(compat.signals, "logger", logger)
    monkeypatch.setattr(logging, "lastResort", None)
    return logger


@pytest.mark.parametrize("name", LEVELS)
def test_a_signal_without_receivers_and_without_a_log_is_for_nobody(lines: logging.Logger, name: str) -> None:
    assert not Audience().listens(name, LEVELS[name])


@pytest.mark.parametrize("name", LEVELS)
def test_a_receiver_is_heard_of_at_once(lines: logging.Logger, name: str) -> None:
    audience = Audience()
    assert not audience.listens(name, LEVELS[name])

    def receiver(**kwargs: Any) -> None: ...

    signal = getattr(compat.signals, name)
    signal.connect(receiver)
    try:
        assert audience.listens(name, LEVELS[name])
    finally:
        signal.disconnect(receiver)
    assert not audience.listens(name, LEVELS[name])


def test_without_the_apis_own_receiver_another_one_is_still_heard(lines: logging.Logger) -> None:
    def receiver(**kwargs: Any) -> None: ...

    signal = compat.signals.task_started
    signal.disconnect(compat.signals.log_task_started)
    signal.connect(receiver)
    try:
        assert Audience().listens("task_started", logging.INFO)
    finally:
        signal.disconnect(receiver)
        signal.connect(compat.signals.log_task_started)


def test_a_handler_is_heard_of_within_a_second(
    lines: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(announcements.time, "monotonic", lambda: now[0])
    audience = Audience()
    assert not audience.listens("task_started", logging.INFO)
    lines.handlers.append(logging.NullHandler())
    now[0] = announcements.ASK_AGAIN + 0.01
    assert audience.listens("task_started", logging.INFO)


def handler(level: int = logging.NOTSET, *, refuses: bool = False) -> logging.Handler:
    made = logging.NullHandler(level)
    if refuses:
        made.addFilter(lambda record: False)
    return made


@pytest.mark.parametrize(
    ("handlers", "level", "heard"),
    [
        ([], logging.ERROR, False),
        ([handler()], logging.INFO, True),
        ([handler(logging.ERROR)], logging.INFO, False),
        ([handler(logging.ERROR)], logging.ERROR, True),
        ([handler(refuses=True)], logging.INFO, False),
        ([handler(refuses=True), handler()], logging.INFO, True),
        ([handler()], logging.DEBUG, False),
    ],
)
def test_a_line_is_heard_where_a_handler_takes_it(
    lines: logging.Logger, handlers: list[logging.Handler], level: int, heard: bool
) -> None:
    lines.handlers.extend(handlers)
    assert is_heard(lines, level) is heard


def test_a_line_is_heard_by_the_handlers_above_unless_it_stays_below(lines: logging.Logger) -> None:
    lines.parent = logging.Logger("above")  # noqa: LOG001
    lines.parent.addHandler(handler())
    assert is_heard(lines, logging.INFO)
    lines.propagate = False
    assert not is_heard(lines, logging.INFO)


def test_a_refusing_logger_is_heard_by_nobody(lines: logging.Logger) -> None:
    lines.handlers.append(handler())
    lines.addFilter(lambda record: False)
    assert not is_heard(lines, logging.INFO)


def test_without_any_handler_the_last_resort_hears_warnings(
    lines: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "lastResort", handler(logging.WARNING))
    assert is_heard(lines, logging.ERROR)
    assert not is_heard(lines, logging.INFO)
