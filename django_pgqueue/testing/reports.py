"""What ``run_jobs`` says it did."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from ..compat import AnyResult, AnyTask, TaskResult
from ..storable import safe_str


@dataclass(frozen=True, slots=True)
class RanJob:
    """One attempt that ran.

    ``outcome`` is the attempt's ("succeeded", "failed", "snoozed", "cancelled", "lost"), ``status`` the
    job's after it ("succeeded", "scheduled", "dead", "cancelled", "ready").  ``error`` is the very exception
    that the task raised; ``result`` is what a reader of the result saw right after the attempt.
    """

    job_id: int
    task_path: str
    queue: str
    attempt: int
    outcome: str
    status: str
    error: BaseException | None
    result: AnyResult

    def __str__(self) -> str:
        text = f"#{self.job_id} {self.task_path} attempt {self.attempt}: {self.outcome}"
        if self.status != self.outcome:
            text += f", now {self.status}"
        if self.error is not None:
            text += f" ({type(self.error).__name__}: {safe_str(self.error)})"
        return text


class JobRun(Sequence[RanJob]):
    """The attempts that one ``run_jobs`` ran, in order."""

    def __init__(self, ran: Sequence[RanJob]) -> None:
        self._ran = tuple(ran)

    @overload
    def __getitem__(self, index: int) -> RanJob: ...
    @overload
    def __getitem__(self, index: slice) -> "JobRun": ...
    def __getitem__(self, index: int | slice) -> "RanJob | JobRun":
        return JobRun(self._ran[index]) if isinstance(index, slice) else self._ran[index]

    def __len__(self) -> int:
        return len(self._ran)

    def __iter__(self) -> Iterator[RanJob]:
        return iter(self._ran)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return "\n  ".join([f"<JobRun of {len(self)}>", *map(str, self._ran)])

    @property
    def outcomes(self) -> list[str]:
        """The outcomes in order."""
        return [ran.outcome for ran in self._ran]

    @property
    def errors(self) -> list[BaseException]:
        """The exceptions that tasks raised, in order."""
        return [ran.error for ran in self._ran if ran.error is not None]

    @property
    def results(self) -> list[AnyResult]:
        """The results in order."""
        return [ran.result for ran in self._ran]

    def of(self, task: AnyTask | str | Any) -> "JobRun":
        """Return the attempts of one task, or of one job when a TaskResult is given."""
        if isinstance(task, TaskResult):
            return JobRun([ran for ran in self._ran if ran.result.id == task.id])
        path = task if isinstance(task, str) else task.module_path
        return JobRun([ran for ran in self._ran if ran.task_path == path])
