"""What is noted of an attempt while its task runs: the end of its log, and how much SQL it asked.

Nothing is made for a task that logs nothing and asks nothing.  Records are caught where they are made, by the
factory of records, not by a handler: a handler on the root logger would miss loggers that do not propagate,
and make ``logging.basicConfig`` and Python's last resort do nothing.  So a record is noted when the levels of
the project's logging let it be made, whoever handles it.
"""

import logging
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created

from . import running
from .errors_as_text import class_path
from .exceptions import TaskTimeout
from .records import Notes
from .storable import clean_text, safe_str

CUT = "[... earlier lines cut ...]\n"
SAY_WHAT_THE_ROW_SAYS = ("django.tasks", "django_tasks")
"""Loggers of the Tasks API: that an attempt started, and how it ended."""


class LogTail:
    """The end of a log: at most ``limit`` bytes as text, while it grows about twice as many characters.

    Several threads may add lines: what they do to the size at the same moment is made good at the next cut.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines: deque[str] = deque()
        self._size = 0
        self._is_cut = False

    def add(self, line: str) -> None:
        """Add a line; one longer than half of all that is kept is cut in its middle."""
        line = clean_text(line, self._limit // 2)
        self._lines.append(line)
        self._size += len(line) + 1
        if self._size > 2 * self._limit:
            self._cut()

    def _cut(self) -> None:
        lines = tuple(self._lines)
        size = sum(map(len, lines)) + len(lines)
        with suppress(IndexError):  # another thread cuts, too
            for line in lines:
                if size <= self._limit:
                    break
                self._lines.popleft()
                size -= len(line) + 1
        self._size = size
        self._is_cut = True

    def text(self) -> str:
        """Return what is kept, in whole lines where that is possible."""
        data = "\n".join(tuple(self._lines)).encode()
        if len(data) > self._limit:
            data = data[len(CUT) - self._limit :]
            _, end, rest = data.partition(b"\n")
            data = rest if end else data
        elif not self._is_cut:
            return data.decode()
        return CUT + data.decode(errors="ignore")


class Notebook:
    """The notes of one attempt."""

    __slots__ = ("queries", "seconds", "tail")

    def __init__(self) -> None:
        self.queries = 0
        self.seconds = 0.0
        self.tail: LogTail | None = None

    def notes(self) -> Notes:
        """Return what is to be stored."""
        text = self.tail.text() if self.tail is not None else ""
        return Notes(text, self.queries, self.seconds) if self.queries else Notes(text)


def notes_of(execution: running.Running) -> Notes | None:
    """Return what was noted of an attempt; None when that is nothing."""
    return execution.notebook.notes() if execution.notebook is not None else None


def _notebook(execution: running.Running) -> Notebook:
    if execution.notebook is None:
        execution.notebook = Notebook()
    return execution.notebook


# --- logs


class _RecordFactory:
    """Makes records as before, and notes those that a task's code makes."""

    def __init__(self, make: Callable[..., logging.LogRecord], limit: int, level: int) -> None:
        self._make = make
        self._limit = limit
        self._level = level

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._make(*args, **kwargs)
        execution = running.current()
        # A record that is made to be filled in later has no level yet.
        if execution is not None and record.levelno and record.levelno >= self._level:
            self._note(execution, record)
        return record

    def _note(self, execution: running.Running, record: logging.LogRecord) -> None:
        if record.name in SAY_WHAT_THE_ROW_SAYS:
            return
        notebook = _notebook(execution)
        if notebook.tail is None:
            notebook.tail = LogTail(self._limit)
        notebook.tail.add(_line(execution, record))


def _line(execution: running.Running, record: logging.LogRecord) -> str:
    started = execution.started
    seconds = 0.0 if started is None else time.monotonic() - started
    line = f"+{seconds:.3f} {record.levelname} {record.name}: {_message(record)}"
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    return line if error is None else f"{line}\n{_traceback(error)}"


# A timeout may arrive in the midst of either: it is meant for the task.


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except TaskTimeout:
        raise
    except Exception:  # noqa: BLE001 - arguments that do not fit the text: logging itself tells the project
        return safe_str(record.msg)


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error)).rstrip()
    except TaskTimeout:
        raise
    except Exception:  # noqa: BLE001 - an error may be such that looking at it raises
        return class_path(error)


# --- SQL


def _timed(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
    execution = running.current()
    if execution is None:
        return execute(sql, params, many, context)
    began = time.perf_counter()
    try:
        return execute(sql, params, many, context)
    finally:
        notebook = _notebook(execution)
        notebook.queries += 1
        notebook.seconds += time.perf_counter() - began


def _time(*, connection: Any, **kwargs: Any) -> None:
    if _timed not in connection.execute_wrappers:
        connection.execute_wrappers.append(_timed)


# --- on and off


def begin(log_tail_bytes: int, log_tail_level: str) -> None:
    """Note from now on, in this process; without bytes for a log only SQL."""
    if log_tail_bytes:
        level = logging.getLevelNamesMapping()[log_tail_level]
        make = logging.getLogRecordFactory()
        logging.setLogRecordFactory(_RecordFactory(make, log_tail_bytes, level))
    connection_created.connect(_time, dispatch_uid=__name__)
    for connection in connections.all(initialized_only=True):
        _time(connection=connection)


@contextmanager
def noting(log_tail_bytes: int, log_tail_level: str) -> Generator[None]:
    """Note meanwhile, on this thread's connections; for tests."""
    make = logging.getLogRecordFactory()
    begin(log_tail_bytes, log_tail_level)
    try:
        yield
    finally:
        logging.setLogRecordFactory(make)
        connection_created.disconnect(dispatch_uid=__name__)
        for connection in connections.all(initialized_only=True):
            if _timed in connection.execute_wrappers:
                connection.execute_wrappers.remove(_timed)
