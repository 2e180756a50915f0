"""The lists that operators page through: walks along an index, counts with an end, and dead jobs by cause.

Every question looks at a bounded number of rows, so that a page costs the same in a table of any size; what
was not looked at is said.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import router

from . import sql
from .querying import Connection, queue_connection, run
from .readings import MESSAGE_LENGTH, JobReadings
from .selecting import JobFilter, Place

LOOK = 20_000
"""Rows that one walk looks at, at most, for those that match."""
LOOK_WITH_JOIN = 4_000
"""The same where each row is looked up in another table, too, which takes several times as long."""
COUNTED = 10_000
"""Matching jobs are counted up to here."""
MOST_CAUSES = 500
LOOKED_OF_ALL_CAUSES = 200_000
"""Dead jobs that the page of causes looks at: the latest of each cause, as many of each."""
END_OF_TRACEBACK = 8_000


class Walk(NamedTuple):
    """A stretch of a walk: the jobs that match, in its order, and where it goes on.

    ``end``: the place behind which nothing was looked at, None when the order's end was reached.
    ``is_full``: the limit was reached; else the walk ended for want of rows, or for having looked at as many
    as it may.
    """

    job_ids: list[int]
    places: list[Place]
    end: Place | None
    is_full: bool
    looked: int


class Cause(NamedTuple):
    """Dead jobs that died of one cause; ``counts`` are of equal slots of time, the first one first."""

    cause: str
    jobs: int
    first_at: datetime
    last_at: datetime
    latest_job: int
    counts: list[int]
    is_cut: bool


class Causes(NamedTuple):
    """All causes between two times, the one seen last first."""

    causes: list[Cause]
    since: datetime
    until: datetime
    are_cut: bool


class LastWords(NamedTuple):
    """What the last attempt of a dead job says; ``traceback`` is the end of it."""

    task_path: str
    backend: str
    exception_class: str
    message: str
    traceback: str


class JobLists(JobReadings):
    """The part of ``Job.objects`` that the admin's lists ask."""

    def walk(
        self,
        asked: JobFilter,
        *,
        limit: int,
        place: Place | None = None,
        backwards: bool = False,
        look: int | None = None,
        connection: Connection = None,
    ) -> Walk:
        """Return the next ``limit`` jobs that match behind ``place``, looking at so many rows at most."""
        if not asked.can_match:
            return Walk([], [], None, False, 0)
        statement = sql.walk(asked, backwards=backwards, from_place=place is not None)
        # Without other conditions every row matches: what lies behind the page is not looked at.
        look = (look or _look(asked)) if sql.rests(asked) else limit + 1
        params = {**_params(asked), "limit": limit + 1, "look": look}
        params |= {f"place_{number}": value for number, value in enumerate(place or ())}
        rows = run(connection or self._list_connection(), statement, params)
        found = [row for row in rows if row[1]]
        last = next((row for row in rows if not row[1]), None)
        looked = last[2] if last else 0
        if len(found) > limit:
            found = found[:limit]
            return Walk([row[0] for row in found], [row[3:] for row in found], found[-1][3:], True, looked)
        end = last[3:] if last and looked >= look else None
        return Walk([row[0] for row in found], [row[3:] for row in found], end, False, looked)

    def count_up_to(
        self,
        asked: JobFilter,
        limit: int = COUNTED,
        *,
        look: int | None = None,
        connection: Connection = None,
    ) -> tuple[int, bool]:
        """Return how many jobs match, and whether those are all; it looks at ``look`` rows where it must.

        Where the order's index answers everything, it counts up to ``limit``.
        """
        if not asked.can_match:
            return 0, True
        look = (look or _look(asked)) if sql.rests(asked) else limit + 1
        params = {**_params(asked), "look": look}
        counted, looked = run(connection or self._list_connection(), sql.count(asked), params)[0]
        return min(counted, limit), looked < look

    def is_counted_by_index(self, asked: JobFilter) -> bool:
        """Return whether an index answers all that is asked, so that counting looks at no row twice."""
        return not sql.rests(asked)

    def queues_of(self, job_ids: Sequence[int], *, connection: Connection = None) -> list[str]:
        """Return the names of the queues that these jobs are in, each once."""
        params = {"job_ids": list(job_ids)}
        return [row[0] for row in run(connection or self._list_connection(), sql.QUEUES_OF, params)]

    def children(self, job_id: int, *, after: int, limit: int) -> list[int]:
        """Return the ids behind ``after`` of the jobs that this one's task enqueued, in their order."""
        params = {"job_id": job_id, "after": after, "limit": limit}
        return [row[0] for row in self._read(sql.CHILDREN, params)]

    def causes(self, since: datetime | None, until: datetime | None, *, slots: int) -> Causes:
        """Return the causes of the jobs that died between two times, by default of all."""
        first, last, now = self._read(sql.SPAN_OF_THE_DEAD, {})[0]
        begin: datetime = since or first or now
        end: datetime = max(until or last or now, begin + timedelta(seconds=1))
        params = {"causes": MOST_CAUSES, "since": begin, "until": end, "slots": slots}
        # The first look shares the rows among as many causes as there can be; few causes get more each.
        rows = self._read(sql.CAUSES, {**params, "limit": LOOKED_OF_ALL_CAUSES // 20})
        share = LOOKED_OF_ALL_CAUSES // max(len(rows), 1)
        if any(row[1] >= LOOKED_OF_ALL_CAUSES // 20 for row in rows) and share > LOOKED_OF_ALL_CAUSES // 20:
            rows = self._read(sql.CAUSES, {**params, "limit": share})
        cut = LOOKED_OF_ALL_CAUSES // 20 if share <= LOOKED_OF_ALL_CAUSES // 20 else share
        found = [_cause(row, slots, cut) for row in rows]
        found.sort(key=lambda cause: cause.last_at, reverse=True)
        return Causes(found, begin, end, len(rows) >= MOST_CAUSES)

    def last_words(self, job_ids: Sequence[int]) -> dict[int, LastWords]:
        """Return what the last attempts of a few dead jobs say."""
        params = {
            "job_ids": list(job_ids),
            "characters": MESSAGE_LENGTH,
            "traceback": END_OF_TRACEBACK,
        }
        rows = self._read(sql.LAST_WORDS, params)
        return {job_id: LastWords(*(text or "" for text in row)) for job_id, *row in rows}

    def _list_connection(self) -> Any:
        return queue_connection(self._db or router.db_for_write(self.model))


def _look(asked: JobFilter) -> int:
    return LOOK_WITH_JOIN if sql.joins(asked) else LOOK


def _params(asked: JobFilter) -> dict[str, Any]:
    names: Mapping[str, Any] = {
        "queue": asked.queue,
        "cause": asked.cause,
        "first_id": asked.first_id,
        "end_id": asked.end_id,
        "enqueued_from": asked.enqueued_from,
        "enqueued_to": asked.enqueued_to,
        "finished_from": asked.finished_from,
        "finished_to": asked.finished_to,
    }
    return {**names, "task_paths": list(asked.task_paths or ())}


def _cause(row: tuple[Any, ...], slots: int, cut: int) -> Cause:
    cause, jobs, first_at, last_at, numbers, counts, latest_job = row
    filled = [0] * slots
    for number, count in zip(numbers, counts, strict=True):
        filled[min(max(number, 1), slots) - 1] += count  # the last moment itself is beyond the last slot
    return Cause(cause, jobs, first_at, last_at, latest_job, filled, jobs >= cut)
