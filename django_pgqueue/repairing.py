"""The verbs of operators besides cancel, retry and run now: discard, move, reprioritise.

See ``managers`` for what holds of all verbs.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from . import sql
from .conf import MAX_QUEUE_NAME
from .holding import HeldJobs
from .querying import ROWS_PER_STATEMENT, Connection, chunks, plain_ids, run

HIGHEST_PRIORITY = 100


class Moved(NamedTuple):
    """A waiting job that has a new place: its queue, and its status, scheduled or ready."""

    job_id: int
    queue: str
    status: str


class RepairedJobs(HeldJobs):
    """The part of ``Job.objects`` with which operators put jobs right."""

    def discard(self, job_ids: Iterable[int | str], *, connection: Connection = None) -> list[int]:
        """Delete dead and cancelled jobs with all their rows; return the ids of those that are gone."""
        return [row[0] for row in self._of_each_chunk(sql.DISCARD, job_ids, {}, connection)]

    def move(self, job_ids: Iterable[int | str], queue: str, *, connection: Connection = None) -> list[Moved]:
        """Put waiting jobs into another queue, at its end; return those that were moved.

        Raises ValueError for a name that no queue can have.
        """
        if not queue or len(queue) > MAX_QUEUE_NAME or not queue.isprintable():
            raise ValueError(
                f"a queue has a printable name of 1 to {MAX_QUEUE_NAME} characters, not {queue!r}"
            )
        rows = self._of_each_chunk(sql.MOVE, job_ids, {"queue": queue}, connection)
        return [Moved(*row) for row in rows]

    def reprioritise(
        self, job_ids: Iterable[int | str], priority: int, *, connection: Connection = None
    ) -> list[Moved]:
        """Give waiting jobs another priority; return those that have it now.

        Raises ValueError for what is no priority.
        """
        if type(priority) is not int or abs(priority) > HIGHEST_PRIORITY:
            raise ValueError(
                f"priorities are whole numbers from -{HIGHEST_PRIORITY} to {HIGHEST_PRIORITY}: {priority!r}"
            )
        rows = self._of_each_chunk(sql.REPRIORITISE, job_ids, {"priority": priority}, connection)
        return [Moved(*row) for row in rows]

    def _of_each_chunk(
        self, statement: str, job_ids: Iterable[int | str], params: dict[str, Any], connection: Connection
    ) -> list[tuple[Any, ...]]:
        connection = connection or self._write_connection()
        return [
            row
            for chunk in chunks(plain_ids(job_ids), ROWS_PER_STATEMENT)
            for row in run(connection, statement, {**params, "job_ids": chunk})
        ]

    def write_connection(self) -> Connection:
        """Return the connection that the verbs run on when they are given none."""
        return self._write_connection()
