"""Which jobs somebody means: what the list's filters say, as plain data that a bulk operation can keep.

A ``JobFilter`` names an order in which an index gives its jobs; the conditions that this index cannot answer
are looked at row by row, for a bounded number of rows (see ``sql.selecting``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any

from . import states

Place = tuple[Any, ...]
"""Where a walk stands: the values of its order's columns, the last one a job's id."""

BY_ID = "id"
BY_TASK = "task"
BY_CAUSE = "cause"
BY_END = "ended"
ORDERS: Mapping[str, tuple[type, ...]] = {
    BY_ID: (int,),
    BY_TASK: (int,),
    BY_CAUSE: (datetime, int),
    BY_END: (datetime, int),
    states.SCHEDULED: (datetime, int),
    states.READY: (str, int, int, int),
    states.RUNNING: (datetime, int),
}
"""The orders in which jobs can be had, with the types of their columns; the live states have their own."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """The jobs that all of these hold of; None holds of every job.

    ``first_id`` and ``end_id`` bound the ids (the end is not among them), as a range of times of enqueueing
    does.  ``cause`` is of dead jobs; ``cause_told`` is what it was called when they were dead, for people.
    Times are aware.
    """

    status: str | None = None
    queue: str | None = None
    task_paths: tuple[str, ...] | None = None
    cause: str | None = None
    cause_told: str | None = None
    first_id: int | None = None
    end_id: int | None = None
    enqueued_from: datetime | None = None
    enqueued_to: datetime | None = None
    finished_from: datetime | None = None
    finished_to: datetime | None = None
    nothing: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is asked for: all jobs are meant."""
        return self == JobFilter()

    @property
    def order(self) -> str:
        """Return the order in which an index gives these jobs."""
        if self.cause is not None:
            return BY_CAUSE
        if self.status in (states.SCHEDULED, states.READY, states.RUNNING):
            return str(self.status)
        if self.status is not None or self.finished_from is not None or self.finished_to is not None:
            return BY_END
        return BY_TASK if self.task_paths is not None else BY_ID

    @property
    def can_match(self) -> bool:
        """Return whether any job could be meant: conditions may contradict each other."""
        ended = self.finished_from is not None or self.finished_to is not None
        return not (
            self.nothing
            or (self.status is not None and self.status not in states.STATUSES)
            or (self.cause is not None and self.status not in (None, states.DEAD))
            or (ended and self.status in states.LIVE)
        )

    @property
    def statuses(self) -> tuple[str, ...]:
        """Return the states whose jobs could be meant."""
        if not self.can_match:
            return ()
        if self.cause is not None:
            return (states.DEAD,)
        if self.status is not None:
            return (self.status,)
        ended = self.finished_from is not None or self.finished_to is not None
        return tuple(status for status in states.STATUSES if not ended or status in states.ENDED)

    def within(self, status: str) -> "JobFilter":
        """Return the same, narrowed to one state."""
        return replace(self, status=status)

    def as_json(self) -> dict[str, Any]:
        """Return what is asked for in JSON's own types."""
        given = {name: value for name, value in asdict(self).items() if value not in (None, False)}
        return {name: _plain(value) for name, value in given.items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "JobFilter":
        """Return the filter that ``as_json`` gave; raises ValueError for what it cannot have given."""
        unknown = set(stored) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(
                f"a stored filter has {', '.join(sorted(unknown))}, which this version does not know"
            )
        return cls(**{name: _value(name, value) for name, value in stored.items()})


def place_as_json(place: Place) -> list[Any]:
    """Return a place in JSON's own types."""
    return [_plain(value) for value in place]


def place_from_json(order: str, stored: Sequence[Any]) -> Place:
    """Return the place that ``place_as_json`` gave; raises ValueError for one of another order."""
    types = ORDERS[order]
    if not isinstance(stored, list) or len(stored) != len(types):
        raise ValueError(f"{stored!r} is no place in the order {order!r}")
    return tuple(_typed(value, kind) for value, kind in zip(stored, types, strict=True))


def _typed(value: Any, kind: type) -> Any:
    if kind is datetime and isinstance(value, str):
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        return moment
    too_large = isinstance(value, int) and not -(2**63) <= value < 2**63
    if type(value) is not kind or too_large or "\x00" in str(value):
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def _value(name: str, value: Any) -> Any:
    if name == "task_paths":
        return tuple(value)
    return datetime.fromisoformat(value) if name.endswith(("_from", "_to")) else value
