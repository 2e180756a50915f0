"""``JobStep.objects``: recording what a part of a job has done, and reading it back."""

from typing import Any

from django.db import router

from . import sql
from .guarded import GuardedManager
from .querying import Connection, queue_connection, run
from .records import Fence

RECORDED, KNOWN, LOST = "recorded", "known", "lost"


class StepManager(GuardedManager):
    """See the module."""

    def record(
        self, fence: Fence, name: str, result: str, *, locked: bool = False, connection: Connection = None
    ) -> str:
        """Store JSON text as the result of a step, once for a job.

        Returns ``"recorded"``, ``"known"`` when the step has a result already, or ``"lost"`` when the fence
        does not hold any more.  ``locked``: another transaction of the same attempt holds the state row.
        """
        statement = sql.RECORD_STEP_OF_LOCKED if locked else sql.RECORD_STEP
        params = {**fence._asdict(), "name": name, "result": result}
        held, written = run(connection or self._write_connection(), statement, params)[0]
        return LOST if not held else RECORDED if written else KNOWN

    def recorded(self, job_id: int, *, connection: Connection = None) -> dict[str, Any]:
        """Return the results of the steps that a job has done, by their names."""
        return dict(run(connection or self._write_connection(), sql.STEPS, {"job_id": job_id}))

    def _write_connection(self) -> Connection:
        return queue_connection(self._db or router.db_for_write(self.model))
