"""An attempt that asks for itself what a worker is told with its next heartbeat.

In a worker, other processes keep the lease and store the progress.  Here the attempt does it, at the
moment when the task looks.  A coroutine may not touch the database where it runs: it sees what was
known at its start, and its progress is stored at its end.
"""

import asyncio
from contextlib import suppress
from typing import Any

from django.db import DatabaseError, transaction

from .. import leases, running
from ..execution import Execution
from ..models import Job
from ..records import DONE, Renewal


class InlineExecution(Execution):
    """An ``Execution`` on the calling thread; ``watch`` it before the task begins."""

    _connection: Any = None
    _lease = 0.0
    _heard = Renewal(DONE, False)

    def watch(self, connection: Any, lease: float) -> None:
        """Ask this connection from now on; each look renews the lease for ``lease`` seconds."""
        self._connection, self._lease = connection, lease
        self.report = lambda execution: self.store_progress()

    # Two fields become properties that ask the database: pyright calls a property no kind of field.

    @property
    def cancel_requested(self) -> bool:
        """True once somebody asked that this job be cancelled."""
        return self._ask().cancel_requested

    @cancel_requested.setter
    def cancel_requested(self, value: bool) -> None: ...  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def lease_lost(self) -> bool:
        """True once somebody else has the job."""
        return leases.is_lost(self._ask())

    @lease_lost.setter
    def lease_lost(self, value: bool) -> None: ...  # pyright: ignore[reportIncompatibleVariableOverride]

    def store_progress(self) -> None:
        """Write what the task last reported."""
        if self.progress is not None and _may_use_database():
            with running.within(None):
                Job.objects.report_progress([(self.fence, self.progress)], connection=self._connection)

    def _ask(self) -> Renewal:
        if self._connection is not None and _may_use_database():
            # A task may look while its transaction is aborted: then there is no news.
            own = running.within(None)  # a worker asks on another connection
            with own, suppress(DatabaseError), transaction.atomic(using=self._connection.alias):
                self._heard = leases.renew([self.fence], lease=self._lease, connection=self._connection)[
                    self.fence
                ]
        return self._heard


def _may_use_database() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False
