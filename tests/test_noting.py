"""What is noted of an attempt: the end of its log, within bounds, and its SQL; whoever logs, and however."""

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from django_pgqueue import running
from django_pgqueue.exceptions import TaskTimeout
from django_pgqueue.execution import Execution
from django_pgqueue.noting import CUT, LogTail, notes_of, noting
from django_pgqueue.records import Claimed, Notes
from django_pgqueue.storable import MAX_TEXT

LIMIT = 2048
logger = logging.getLogger("tests.noting")
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def attempt(job_id: int = 7) -> Execution:
    """Return an attempt that has started."""
    job = Claimed(
        job_id=job_id,
        lease_version=1,
        attempts=2,
        attempts_allowed=5,
        rank=0,
        position=1,
        claimed_at=NOW,
        backend="default",
        task_path="tests.tasks.ok",
        args="[]",
        kwargs="{}",
        queue="emails",
        priority=0,
        run_after=None,
        enqueued_at=NOW,
        metadata="{}",
        max_attempts=5,
        timeout=None,
        backoff_base=1.0,
        backoff_cap=1.0,
        lease_token=uuid4(),
    )
    return Execution(job, "worker-1", claimed=0.0, started=0.0)


@pytest.fixture
def execution() -> Iterator[Execution]:
    """An attempt that runs here, and is noted."""
    execution = attempt()
    with noting(LIMIT, "INFO"), running.within(execution):
        yield execution


@pytest.fixture(autouse=True)
def _at_info() -> Iterator[None]:
    """Let INFO through, as a project would that wants to see it."""
    before = logging.root.level
    logging.root.setLevel(logging.INFO)
    yield
    logging.root.setLevel(before)


def lines(execution: Execution) -> list[str]:
    """Return the noted lines without their times."""
    notes = notes_of(execution)
    return [line.partition(" ")[2] for line in notes.log_tail.splitlines()] if notes else []


# --- the tail


def test_a_short_log_is_kept_whole() -> None:
    tail = LogTail(LIMIT)
    tail.add("first")
    tail.add("second\nof two lines")
    assert tail.text() == "first\nsecond\nof two lines"


def test_of_a_long_log_the_last_lines_are_kept_and_the_cut_is_said() -> None:
    tail = LogTail(LIMIT)
    for number in range(10_000):
        tail.add(f"line {number}")
    kept = tail.text().splitlines()
    first = int(kept[1].removeprefix("line "))
    assert kept[0] == CUT.strip()
    assert kept[1:] == [f"line {number}" for number in range(first, 10_000)]
    assert LIMIT / 2 < len(tail.text()) <= LIMIT


@pytest.mark.parametrize("letter", ["a", "ä", "€", "𝄞", "\x00", "\ud800"])
@pytest.mark.parametrize("lengths", [[1] * 5000, [700] * 50, [LIMIT], [LIMIT * 50], [3, LIMIT * 3, 3]])
def test_what_is_kept_has_a_bound_in_bytes_and_can_be_stored(letter: str, lengths: list[int]) -> None:
    tail = LogTail(LIMIT)
    for length in lengths:
        tail.add(letter * length)
    text = tail.text()
    assert 0 < len(text.encode()) <= LIMIT
    assert "\x00" not in text


def test_a_long_line_is_cut_in_its_middle() -> None:
    tail = LogTail(LIMIT)
    tail.add(f"begins{'x' * LIMIT * 3}ends")
    text = tail.text()
    assert "characters cut" in text
    assert text.endswith("ends")


def test_while_it_grows_it_holds_little() -> None:
    tail = LogTail(LIMIT)
    most = 0
    for _ in range(1000):
        tail.add("x" * 500)
        most = max(most, sum(map(len, tail._lines)))
    assert most <= 2 * LIMIT + 500


def test_many_threads_may_add_at_once() -> None:
    tail = LogTail(LIMIT)

    def add() -> None:
        for _ in range(3000):
            tail.add("x" * 50)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, tail._lines)) <= 2 * LIMIT + 4 * 51
    assert len(tail.text().encode()) <= LIMIT


# --- which records


def test_a_task_that_logs_nothing_has_no_notes(execution: Execution) -> None:
    assert execution.notebook is None
    assert notes_of(execution) is None


def test_a_line_says_when_how_grave_who_and_what(execution: Execution) -> None:
    logger.info("paid %s for %d", "ada", 3)
    notes = notes_of(execution)
    assert notes is not None
    time, _, rest = notes.log_tail.partition(" ")
    assert time[0] == "+"
    assert float(time) >= 0
    assert rest == "INFO tests.noting: paid ada for 3"
    assert (notes.sql_queries, notes.sql_seconds) == (None, None)


def test_the_projects_levels_and_the_floor_decide(execution: Execution) -> None:
    logging.root.setLevel(logging.DEBUG)
    logger.debug("below the floor")
    logging.root.setLevel(logging.WARNING)
    logger.info("below the project's level")
    logger.warning("seen")
    assert lines(execution) == ["WARNING tests.noting: seen"]


def test_a_logger_that_does_not_propagate_is_heard() -> None:
    """As many projects set up their own; also one that was made after the worker began."""
    execution = attempt()
    with noting(LIMIT, "INFO"), running.within(execution):
        own = logging.getLogger(f"tests.noting.{uuid4()}")
        own.propagate = False
        own.addHandler(logging.NullHandler())
        own.error("mine")
    assert lines(execution) == [f"ERROR {own.name}: mine"]


def test_logging_goes_on_as_if_nobody_noted(
    execution: Execution, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's last resort for a project without handlers, and ``basicConfig``."""
    monkeypatch.setattr(logging.root, "handlers", [])
    logger.warning("nobody handles this")
    assert capsys.readouterr().err == "nobody handles this\n"
    logging.basicConfig(format="configured: %(message)s")
    logger.warning("somebody does")
    assert capsys.readouterr().err == "configured: somebody does\n"
    assert len(lines(execution)) == 2


def test_an_error_comes_with_its_traceback(execution: Execution) -> None:
    try:
        raise KeyError("lost")
    except KeyError:
        logger.exception("it failed")
    assert "Traceback (most recent call last):" in notes_of(execution).log_tail  # type: ignore[union-attr]
    assert notes_of(execution).log_tail.endswith("KeyError: 'lost'")  # type: ignore[union-attr]


class Hostile(Exception):
    """An error that cannot be looked at."""

    def __str__(self) -> str:
        raise RuntimeError("do not look")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("nor at this")


def test_what_cannot_be_written_harms_nobody(execution: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logger.info("one %s %s", "argument")
    logger.info(Hostile())
    try:
        raise Hostile
    except Hostile:
        logger.exception("hostile")
    noted = lines(execution)
    assert noted[0] == "INFO tests.noting: one %s %s"
    assert any("Hostile" in line for line in noted[1:])


def test_a_timeout_that_arrives_while_a_line_is_noted_reaches_the_task(execution: Execution) -> None:
    class Late:
        def __str__(self) -> str:
            raise TaskTimeout("now")

    with pytest.raises(TaskTimeout):
        logger.info("%s", Late())


def test_records_that_are_made_and_not_logged_are_left_alone(execution: Execution) -> None:
    record = logging.makeLogRecord({"msg": "from another process", "levelno": logging.ERROR})
    assert record.getMessage() == "from another process"
    assert execution.notebook is None


def test_what_the_row_says_is_not_noted(execution: Execution) -> None:
    logging.getLogger("django.tasks").warning("Task id=1 state=RUNNING")
    assert execution.notebook is None


def test_a_thread_that_the_task_starts_knows_of_no_job(execution: Execution) -> None:
    thread = threading.Thread(target=lambda: logger.error("from a thread"))
    thread.start()
    thread.join()
    assert execution.notebook is None


def test_without_bytes_nothing_is_noted_of_the_log() -> None:
    execution = attempt()
    with noting(0, "INFO"), running.within(execution):
        logger.error("said")
    assert execution.notebook is None


def test_where_no_job_runs_nothing_is_noted() -> None:
    with noting(LIMIT, "INFO"):
        logger.error("said")
        assert running.current() is None


def test_everything_is_as_before_when_it_ends() -> None:
    before = logging.getLogRecordFactory()
    with noting(LIMIT, "INFO"):
        assert logging.getLogRecordFactory() is not before
    assert logging.getLogRecordFactory() is before
    assert connection.execute_wrappers == []


# --- SQL


@pytest.mark.django_db
def test_sql_is_counted_and_timed(execution: Execution) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.02)")
        cursor.executemany("SELECT %s::int", [(1,), (2,)])
        with pytest.raises(Exception, match="no_such_table"):
            cursor.execute("SELECT * FROM no_such_table")
    notes = notes_of(execution)
    assert notes is not None
    assert (notes.log_tail, notes.sql_queries) == ("", 3)
    assert notes.sql_seconds is not None
    assert 0.02 <= notes.sql_seconds < 10


@pytest.mark.django_db
def test_sql_of_the_queue_itself_is_not_counted(execution: Execution) -> None:
    with running.within(None), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert running.current() is execution
    assert execution.notebook is None


def test_notes_of_a_job_are_nobody_elses() -> None:
    first, second = (attempt() for _ in range(2))
    with noting(LIMIT, "INFO"), running.within(first):
        logger.info("first")
        with running.within(second):
            logger.info("second")
        logger.info("first again")
    assert lines(first) == ["INFO tests.noting: first", "INFO tests.noting: first again"]
    assert lines(second) == ["INFO tests.noting: second"]


def test_notes_that_are_nothing_are_the_defaults() -> None:
    assert Notes() == ("", None, None)
    assert LIMIT < MAX_TEXT
