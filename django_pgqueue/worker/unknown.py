"""Jobs whose task this worker's code does not have.

During a deployment old workers meet new tasks.  Such a job is put back, uncharged and ever later
(5, 10, 20, 40, then 60 seconds), while a newer worker may know it.  When that has gone on for
``unknown_task_patience`` seconds, the job is dead, with the reason.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..execution import UNKNOWN_TASK, Execution, Fail, Unknown
from ..models import Job

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 60.0


def pause(times: int) -> float:
    """Return the seconds to wait after so many earlier meetings."""
    return min(FIRST_PAUSE * 2.0 ** min(times, 10), LONGEST_PAUSE)


def decide(executions: Iterable[Execution], *, patience: float, connection: Any) -> None:
    """Settle what becomes of the executions among these whose task is unknown: later, or never."""
    puzzled = {e.job.job_id: (e, e.decision) for e in executions if isinstance(e.decision, Unknown)}
    if not puzzled:
        return
    since = Job.objects.unknown_since(list(puzzled), exception_class=UNKNOWN_TASK, connection=connection)
    for job_id, (execution, unknown) in puzzled.items():
        seconds, times = since.get(job_id, (0.0, 0))
        if seconds < patience:
            execution.decision = replace(unknown, delay=pause(times))
        else:
            message = f"{unknown.message}; no worker knew it for {seconds:.0f} s"
            execution.decision = Fail(0.0, True, UNKNOWN_TASK, message, message, UNKNOWN_TASK[-32:])
