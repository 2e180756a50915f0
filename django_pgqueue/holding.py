"""The verbs on jobs that a worker holds: renew, the settles, and rescue from a worker that is gone.

Every one of them names fences or looks at leases, and answers for each job; see ``managers`` for what
holds of all verbs.
"""

from collections.abc import Sequence
from typing import Any

from django.db import router

from . import sql
from .querying import Connection, array, queue_connection, run
from .readings import JobReadings
from .records import (
    DONE,
    Answer,
    Cancelled,
    Completed,
    Consumed,
    Failed,
    Fence,
    Notes,
    Released,
    Renewal,
    Rescued,
    Settlement,
    Snoozed,
    WorkerIdentity,
)


class HeldJobs(JobReadings):
    """The half of ``Job.objects`` that workers and their keepers use on what they hold."""

    # --- renew

    def renew(
        self, fences: Sequence[Fence], *, lease: float, connection: Connection = None
    ) -> dict[Fence, Renewal]:
        """Extend leases to ``lease`` seconds from now; an expired one too while nobody took the job."""
        connection = connection or self._write_connection()
        rows = run(connection, sql.RENEW, {**_fence_columns(fences), "lease": lease})
        answers = {fences[place - 1]: Renewal(DONE, cancel_requested) for place, cancel_requested in rows}
        missing = [fence for fence in fences if fence not in answers]
        if missing:
            for fence, answer in zip(missing, self._whereabouts(missing, connection), strict=True):
                answers[fence] = Renewal(answer.result, False)
        return answers

    def report_progress(
        self, reports: Sequence[tuple[Fence, str]], *, connection: Connection = None
    ) -> list[int]:
        """Store JSON texts as the progress of running jobs; return the ids of those that still run there."""
        params = _fence_columns([fence for fence, _ in reports]) | {"progress": [text for _, text in reports]}
        return [row[0] for row in run(connection or self._write_connection(), sql.PROGRESS, params)]

    # --- the settles

    def complete(
        self, settled: Sequence[Completed], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> succeeded."""
        return self._settle(sql.COMPLETE, settled, worker, connection)

    def consume(
        self, settled: Sequence[Consumed], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> gone: the job has succeeded, and its rows are deleted at once."""
        return self._settle(sql.CONSUME, settled, worker, connection)

    def fail(
        self, settled: Sequence[Failed], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> scheduled, or dead when the budget is spent or the failure is final."""
        return self._settle(sql.FAIL, settled, worker, connection)

    def snooze(
        self, settled: Sequence[Snoozed], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> scheduled, uncharged."""
        return self._settle(sql.SNOOZE, settled, worker, connection)

    def release(
        self, settled: Sequence[Released], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> ready, uncharged; a job that never started leaves no attempt."""
        return self._settle(sql.RELEASE, settled, worker, connection)

    def cancel_held(
        self, settled: Sequence[Cancelled], *, worker: WorkerIdentity, connection: Connection = None
    ) -> dict[Fence, Answer]:
        """running -> cancelled, by the worker that holds the job."""
        return self._settle(sql.CANCEL_HELD, settled, worker, connection)

    def settle(
        self, settled: Sequence[Settlement], *, worker: WorkerIdentity, connection: Connection = None
    ) -> list[Answer]:
        """Write settlements of any kinds, each kind by its own verb; answer for each, in order."""
        connection = connection or self._write_connection()
        if len({type(settlement) for settlement in settled}) == 1:
            return self._answers(_STATEMENT_OF[type(settled[0])], settled, worker, connection)
        answers: dict[int, Answer] = {}
        for kind, statement in _STATEMENT_OF.items():
            places = [place for place, settlement in enumerate(settled) if type(settlement) is kind]
            group = [settled[place] for place in places]
            answers |= zip(places, self._answers(statement, group, worker, connection), strict=True)
        return [answers[place] for place in range(len(settled))]

    def release_unheld(
        self, held: Sequence[int], *, worker_id: str, within: float, connection: Connection = None
    ) -> list[int]:
        """Give back what this worker owns in the table but does not hold; return the job ids.

        For a claim whose reply was lost.  ``within`` bounds the look to claims of the last seconds.
        """
        params = {"held": list(held), "worker_id": worker_id, "within": within}
        return [row[0] for row in run(connection or self._write_connection(), sql.RELEASE_UNHELD, params)]

    def whereabouts(self, fence: Fence, *, connection: Connection = None) -> Answer:
        """Say what became of a claim: "done", "lost", or "locked", which here means that it still holds."""
        return self._whereabouts([fence], connection or self._write_connection())[0]

    # --- atomic tasks: locks in the task's own transaction

    def lock_if_strict(self, fence: Fence, *, connection: Connection = None) -> tuple[bool, bool]:
        """Lock the state row, until the transaction ends, if its isolation is stricter than READ COMMITTED.

        Returns whether it is, and whether the row was locked: False when the fence does not hold.
        """
        strict, held = run(connection or self._write_connection(), sql.LOCK_IF_STRICT, fence._asdict())[0]
        return strict, held

    def lock_held(self, fence: Fence, *, connection: Connection = None) -> bool:
        """Lock the state row until the transaction ends, waiting for it; False when the fence is lost."""
        return bool(run(connection or self._write_connection(), sql.LOCK_HELD, fence._asdict()))

    def _settle(
        self, statement: str, settled: Sequence[Any], worker: WorkerIdentity, connection: Connection
    ) -> dict[Fence, Answer]:
        answers = self._answers(statement, settled, worker, connection or self._write_connection())
        return {settlement.fence: answer for settlement, answer in zip(settled, answers, strict=True)}

    def _answers(
        self, statement: str, settled: Sequence[Any], worker: WorkerIdentity, connection: Connection
    ) -> list[Answer]:
        if not settled:
            return []
        answers = self._write_outcomes(statement, settled, worker, connection)
        if len(answers) < len(settled):
            unanswered = [place for place in range(len(settled)) if place not in answers]
            found = self._whereabouts([settled[place].fence for place in unanswered], connection)
            answers |= zip(unanswered, found, strict=True)
        return [answers[place] for place in range(len(settled))]

    def _write_outcomes(
        self, statement: str, settled: Sequence[Any], worker: WorkerIdentity, connection: Connection
    ) -> dict[int, Answer]:
        columns = dict(zip(type(settled[0])._fields, zip(*settled, strict=True), strict=True))
        params = _fence_columns(columns.pop("fence")) | _note_columns(columns.pop("notes", ()))
        params |= {name: array(column) for name, column in columns.items()}
        rows = run(connection, statement, params | {"host": worker.host, "pid": worker.pid})
        return {place - 1: Answer(DONE, status, attempts) for place, status, attempts in rows}

    def _whereabouts(self, fences: Sequence[Fence], connection: Connection) -> list[Answer]:
        rows = sorted(run(connection, sql.WHEREABOUTS, _fence_columns(fences)))
        return [Answer(*row[1:]) for row in rows]

    # --- rescue

    def rescue(
        self, *, limit: int, server_up: float, jitter: float = 1.0, connection: Connection = None
    ) -> list[Rescued]:
        """Take running jobs whose lease is over from their workers; the attempts are charged.

        Does nothing until the server has been up for ``server_up`` seconds.  ``jitter`` is the part of the
        delay that is left to chance; with 0 the next attempt waits for the longest that backoff can ask for.
        """
        params = {
            "limit": limit,
            "server_up": server_up,
            "jitter": jitter,
            "host": "",
            "pid": None,
            "exception_class": "django_pgqueue.exceptions.LeaseExpired",
        }
        return [Rescued(*row) for row in run(connection or self._write_connection(), sql.RESCUE, params)]

    def rescue_worker(
        self,
        lost: Sequence[Released],
        *,
        worker: WorkerIdentity,
        jitter: float = 1.0,
        connection: Connection = None,
    ) -> list[Rescued]:
        """Take the jobs of a dead worker process: started ones are charged, the others go back.

        ``jitter``: see ``rescue``.
        """
        connection = connection or self._write_connection()
        rescued: list[Rescued] = []
        started = [job for job in lost if job.started_ago is not None]
        waiting = [job for job in lost if job.started_ago is None]
        if started:
            params = _fence_columns([job.fence for job in started]) | {
                "started_ago": [job.started_ago for job in started],
                "message": [job.message for job in started],
                "host": worker.host,
                "pid": worker.pid,
                "exception_class": "django_pgqueue.exceptions.WorkerDied",
                "jitter": jitter,
            }
            rescued += [Rescued(*row) for row in run(connection, sql.RESCUE_WORKER, params)]
        if waiting:
            for place, answer in self._write_outcomes(sql.RELEASE, waiting, worker, connection).items():
                job_id = waiting[place].fence.job_id
                rescued.append(Rescued(job_id, answer.status or "", answer.attempts or 0, worker.worker_id))
        return rescued

    def backend_lives(self, pid: int, *, connection: Connection = None) -> bool:
        """True while the server has a backend of this process id; 0 names none."""
        rows = run(connection or self._write_connection(), sql.BACKEND_LIVES, {"pid": pid})
        return bool(rows[0][0])

    def _write_connection(self) -> Connection:
        return queue_connection(self._db or router.db_for_write(self.model))


_STATEMENT_OF = {
    Completed: sql.COMPLETE,
    Consumed: sql.CONSUME,
    Failed: sql.FAIL,
    Snoozed: sql.SNOOZE,
    Released: sql.RELEASE,
    Cancelled: sql.CANCEL_HELD,
}


_NOTHING_NOTED: dict[str, Any] = dict.fromkeys(Notes._fields)


def _note_columns(notes: Sequence[Notes | None]) -> dict[str, Any]:
    # Of most batches nothing was noted: then three NULLs travel, whatever the number of jobs.
    if notes.count(None) == len(notes):
        return _NOTHING_NOTED
    columns = zip(*[noted or Notes() for noted in notes], strict=True)
    return {name: array(column) for name, column in zip(Notes._fields, columns, strict=True)}


def _fence_columns(fences: Sequence[Fence]) -> dict[str, Any]:
    columns = zip(*fences, strict=True) if fences else [(), (), ()]
    return {name: array(column) for name, column in zip(Fence._fields, columns, strict=True)}
