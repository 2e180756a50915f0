"""What a dead child leaves behind, and who gets it.

Two things.  On its board stands what it held: given back at once, started jobs charged, the others free.
And a claim may have been on its way when it died: the server commits it a moment later, for a worker
that is gone and never entered it in its board.  Those jobs never started, so they go back free as well;
the look is repeated until the dead child's backend has ended, for only then can nothing follow.
"""

import time
from collections.abc import Callable

from .. import leases
from ..connections import PrivateConnection
from ..events import log
from ..models import Job
from ..records import WorkerIdentity
from .board import DEAD, FREE, Board

PATIENCE = 5.0
"""Seconds after which a backend that does not end is left to its lease (a connection cut off elsewhere)."""
CLAIMS_WITHIN = 60.0
"""Seconds: a claim on its way is not older."""
LOOK_EVERY = 0.1


class Deaths:
    """Gives back what dead children held; the boards tell which are dead."""

    def __init__(
        self, boards: list[Board], host: str, connection: PrivateConnection, notice: Callable[[], None]
    ) -> None:
        self._boards = boards
        self._host = host
        self._connection = connection
        self._notice = notice
        self._seen: dict[int, float] = {}

    def pending(self) -> bool:
        """True while a dead child's board has not been cleared."""
        return any(board.get("state") == DEAD for board in self._boards)

    def give_back(self) -> None:
        """Look after every dead child once; raises psycopg.Error and goes on at the next call."""
        for index, board in enumerate(self._boards):
            if board.get("state") != DEAD or self._connection.pause:
                continue
            since = self._seen.setdefault(index, time.monotonic())
            if self._look_after(board) or time.monotonic() - since > PATIENCE:
                del self._seen[index]
                board.clear()
                board.set("state", FREE)

    def _look_after(self, board: Board) -> bool:
        worker = WorkerIdentity(board.get_text("worker_id"), self._host, int(board.get("pid")))
        held = list(board.held())
        with self._connection.hot() as connection:
            # Asked first: what a backend that has ended committed is seen by the statements after.
            over = not Job.objects.backend_lives(int(board.get("backend")), connection=connection)
            rescued = leases.give_back(
                [(entry.fence, entry.started) for entry in held],
                worker=worker,
                reason=board.get_text("reason") or "died",
                connection=connection,
            )
            released = Job.objects.release_unheld(
                [entry.fence.job_id for entry in held],
                worker_id=worker.worker_id,
                within=CLAIMS_WITHIN,
                connection=connection,
            )
        if released:
            log("released_unheld", jobs=len(released), worker=worker.worker_id)
        if rescued or released:
            self._notice()
        return over
