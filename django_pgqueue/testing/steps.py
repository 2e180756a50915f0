"""Steps in a test's own transaction, as durable as they are in a worker.

A worker records a step on a connection of its own, so the record stays when the task's transaction is rolled
back.  Here it is kept until the task is over and written then, behind the same fence.
"""

from typing import Any

from .. import running
from ..durable import JobStep
from ..records import Fence
from ..steps import KNOWN, LOST, RECORDED
from .inline import InlineExecution


class InlineSteps:
    """Where ``run_jobs`` keeps the steps of one attempt."""

    thread_sensitive = True

    def __init__(self, execution: InlineExecution, connection: Any) -> None:
        self._execution = execution
        self._connection = connection
        self._done: dict[str, tuple[Fence, str]] = {}

    def recorded(self, job_id: int) -> dict[str, Any]:
        """Return the results of the steps that earlier attempts did."""
        with running.within(None):
            return JobStep.objects.recorded(job_id, connection=self._connection)

    def record(self, fence: Fence, name: str, text: str, *, locked: bool) -> str:
        """Keep a result until the task is over."""
        if self._execution.lease_lost:
            return LOST
        if name in self._done:
            return KNOWN
        self._done[name] = (fence, text)
        return RECORDED

    def store(self) -> None:
        """Write what was done, whatever became of the task."""
        for name, (fence, text) in self._done.items():
            JobStep.objects.record(fence, name, text, connection=self._connection)
