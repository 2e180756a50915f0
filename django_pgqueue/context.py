"""What a running task sees of its job and may ask of it: the context of a task with ``takes_context``."""

import json
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from .compat import AnyContext
from .exceptions import Cancel, LeaseLost
from .stepping import Steps
from .storable import clean_text, dump_json

if TYPE_CHECKING:
    from .execution import Execution

P = ParamSpec("P")
R = TypeVar("R")


class JobContext(AnyContext):
    """What a task with ``takes_context`` gets: Django's context and the job behind it."""

    _execution: "Execution"
    _own_steps: Steps | None = None

    # The parent is a frozen dataclass: its fields are set past its __setattr__.
    def __init__(self, execution: "Execution") -> None:
        object.__setattr__(self, "task_result", execution.result)
        object.__setattr__(self, "_execution", execution)

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._execution.number

    @property
    def job_id(self) -> int:
        """The job's id."""
        return self._execution.job.job_id

    @property
    def worker_id(self) -> str:
        """The worker that runs this attempt."""
        return self._execution.worker_id

    @property
    def metadata(self) -> dict[str, Any]:
        """What was stored with the job at its enqueueing."""
        metadata: dict[str, Any] = json.loads(self._execution.job.metadata)
        return metadata

    @property
    def idempotency_key(self) -> str:
        """The same for all attempts of this job, and of no other: for APIs that take such a key.

        The time of enqueueing is part of it, to the microsecond: a restored or recreated database gives
        ids again that it gave before.
        """
        job = self._execution.job
        return f"{job.backend}-{job.job_id}-{round(job.enqueued_at.timestamp() * 1_000_000)}"

    @property
    def fencing_token(self) -> int:
        """Grows with every claim of the job: for stores that refuse an older owner's writes."""
        return self._execution.job.lease_version

    @property
    def is_cancelled(self) -> bool:
        """True once somebody asked that this job be cancelled."""
        return self._execution.cancel_requested

    @property
    def lease_lost(self) -> bool:
        """True once another worker may have taken the job; the fence decides what becomes of this attempt."""
        return self._execution.lease_lost

    @property
    def deadline_in(self) -> float | None:
        """Seconds until this attempt runs into its timeout; None without one."""
        deadline = self._execution.deadline
        return deadline - time.monotonic() if deadline else None

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Say how far the task is; stored within a second or so, for the admin and the result.

        Raises ValueError for numbers that JSON cannot hold.
        """
        report = {"done": done, "total": total, "message": clean_text(str(message), limit=1000)}
        self._execution.progress = dump_json(report)
        self._execution.report(self._execution)

    def step(self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Do a part of the job once: call the function, or return what it returned in an earlier attempt.

        The result is stored as JSON, at once and for good, whatever becomes of the task's own transaction;
        what comes back is what JSON makes of it.  ``name`` is the step's within the job: of two steps of one
        name the second is not done.  Between the effect and its record the process can die: pass
        ``idempotency_key`` to whatever the function calls.

        Raises LeaseLost when another worker may have the job, and UnstorableResult for what JSON cannot hold.
        """
        result: R = self._steps.run(name, function, args, kwargs)
        return result

    async def astep(
        self, name: str, function: Callable[P, Awaitable[R] | R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """See step(); the function may be a coroutine function."""
        result: R = await self._steps.arun(name, function, args, kwargs)
        return result

    @property
    def _steps(self) -> Steps:
        if self._own_steps is None:
            object.__setattr__(self, "_own_steps", Steps(self._execution))
        return cast(Steps, self._own_steps)

    def checkpoint(self) -> None:
        """Raise Cancel or LeaseLost when this attempt had better stop; call it in long loops."""
        if self.lease_lost:
            raise LeaseLost(f"the lease of job {self.job_id} is lost; another worker may run it now")
        if self.is_cancelled:
            raise Cancel("cancelled on request, at a checkpoint")
