"""Takes the rows of ended jobs before retention prunes them, so that the checker sees all of them."""

from collections.abc import Callable

import psycopg

from . import tables
from .history import Attempt, State
from .onlooker import Onlooker

LAG = 15.0
"""Seconds after its end at which a job is taken: no transaction that ended it is open any more."""
RETENTION = 60.0
"""Seconds for which the workers keep ended jobs; an outage may keep the harvest waiting for a part of it."""
HARVEST_EVERY = 3.0


class Harvest(Onlooker):
    """Collects what has ended, in the order of the ends."""

    def __init__(self, connect: Callable[[], psycopg.Connection]) -> None:
        super().__init__(connect)
        self._mark: tuple[float, int] = (0.0, 0)
        self.states: dict[int, State] = {}
        self.attempts: dict[tuple[int, int], Attempt] = {}

    def __call__(self) -> None:
        """Collect what can be collected now; while the database is away, later."""
        self.look(self._collect)

    def _collect(self, session: psycopg.Connection) -> None:
        while self._portion(session):
            pass

    def _portion(self, session: psycopg.Connection) -> bool:
        with session.transaction():
            session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            rows = tables.ended(session, self._mark, LAG)
            attempts = tables.attempts(session, [state.job_id for state, _ in rows])
        self.states |= {state.job_id: state for state, _ in rows}
        self.attempts |= {(attempt.job_id, attempt.number): attempt for attempt in attempts}
        if rows:
            self._mark = (rows[-1][1], rows[-1][0].job_id)
        return len(rows) == tables.PORTION
