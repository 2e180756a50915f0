"""``QueuePause.objects``: pausing queues, draining them, and letting them go on.

Claims look at the pauses themselves, so each holds from the next claim on.  What runs goes on, and so does
what a child has claimed ahead, a tenth of a second of work.
"""

from datetime import datetime
from typing import NamedTuple

from django.db import router

from . import sql
from .guarded import GuardedManager
from .querying import Connection, queue_connection, run

ALL_QUEUES = ""
"""In place of a queue's name: every queue, whatever it is called."""


class Pause(NamedTuple):
    """A queue that is paused, or drains: works off what it has and is then paused."""

    queue: str
    is_draining: bool
    since: datetime
    by: str
    reason: str


class PauseManager(GuardedManager):
    """See the module."""

    def pause(
        self, queue: str, *, by: str, reason: str = "", drain: bool = False, connection: Connection = None
    ) -> bool:
        """Pause a queue, at once or once it is empty; return False when it was so already."""
        params = {"queue": queue, "by": by, "reason": reason, "is_draining": drain}
        return bool(run(connection or self._connection(), sql.PAUSE, params))

    def resume(self, queue: str, *, connection: Connection = None) -> bool:
        """Let a queue go on; return False when it was not paused."""
        return bool(run(connection or self._connection(), sql.RESUME, {"queue": queue}))

    def present(self, *, connection: Connection = None) -> dict[str, Pause]:
        """Return what is paused or drains, by queue; ``ALL_QUEUES`` stands for all."""
        rows = run(connection or self._connection(), sql.PAUSES, {})
        return {row[0]: Pause(*row) for row in rows}

    def end_drains(self, *, connection: Connection = None) -> list[str]:
        """Pause the queues that were to drain and are empty; return their names."""
        return [row[0] for row in run(connection or self._connection(), sql.END_DRAINS, {})]

    def _connection(self) -> Connection:
        return queue_connection(self._db or router.db_for_write(self.model))
