"""A finding of the doctor, and the patient: a backend with its connection."""

from dataclasses import dataclass
from typing import Any

from .. import sql
from ..backend import PgQueueBackend
from ..querying import queue_connection, run

BAD, WARN, NOTE = "bad", "warn", "note"
LEVELS = (BAD, WARN, NOTE)


@dataclass(frozen=True, slots=True)
class Finding:
    """What is amiss: a name for programs, a level, a sentence, and what mends it (SQL, setting, command)."""

    check: str
    level: str
    said: str
    mend: str

    @property
    def rank(self) -> int:
        """Return the place of its level, 0 for the worst."""
        return LEVELS.index(self.level)


class Patient:
    """One backend, looked at through this process's own connection."""

    def __init__(self, backend: PgQueueBackend) -> None:
        self.backend = backend
        self.database: str = backend.settings.database
        self.connection: Any = queue_connection(self.database)

    def ask(self, statement: str, **params: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        return run(self.connection, statement, params)


TABLES = [sql.JOB, sql.STATE, sql.ATTEMPT]


def percent(share: float) -> str:
    """Return a share in words."""
    return f"{100 * share:.0f} %"


def span(seconds: float) -> str:
    """Return a length of time in words."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
