"""The jobs and the workers: queues that nobody serves, tasks that this code lacks, workers gone, settings."""

from collections.abc import Iterator

from django.core.checks import ERROR

from .. import sql
from ..exceptions import UnknownTask
from ..models import Job
from ..operating import QueuePause, QueueSample, Worker
from ..pauses import ALL_QUEUES
from ..readings import STUCK_AFTER
from ..registry import DEAD
from ..resolving import resolve_task
from .findings import BAD, NOTE, WARN, Finding, Patient, span

LATE = 300.0
NOT_COUNTED_FOR = 120.0


def look_at_jobs(patient: Patient) -> Iterator[Finding]:
    """Yield what is amiss with jobs, queues, workers and settings."""
    yield from _settings(patient)
    yield from _workers(patient)
    yield from _queues(patient)
    yield from _pauses(patient)
    yield from _tasks(patient)


def _settings(patient: Patient) -> Iterator[Finding]:
    for message in patient.backend.check():
        level = BAD if message.level >= ERROR else WARN
        yield Finding(message.id or "settings", level, str(message.msg), str(message.hint or ""))


def _workers(patient: Patient) -> Iterator[Finding]:
    workers = Worker.objects.db_manager(patient.database).registered()
    for worker in workers:
        if worker.state == DEAD:
            ago = span(worker.beat_ago)
            said = f"The worker on {worker.host!r} (process {worker.pid}) was last heard of {ago} ago."
            yield Finding(
                "dead-worker", WARN, said, "manage.py runworkers on that host; its line goes after a day"
            )
    releases = sorted({worker.release for worker in workers if worker.state != DEAD})
    if len(releases) > 1:
        said = f"Workers of several releases run: {', '.join(each or '(none)' for each in releases)}."
        yield Finding(
            "releases", NOTE, said, "Restart the workers with old code, if no deployment is under way."
        )


def _queues(patient: Patient) -> Iterator[Finding]:
    paused = QueuePause.objects.db_manager(patient.database).present()
    workers = [w for w in Worker.objects.db_manager(patient.database).registered() if w.state != DEAD]
    served = {queue for worker in workers for queue in worker.queues}
    any_queue = any(not worker.queues for worker in workers)
    for depth in QueueSample.objects.db_manager(patient.database).depths():
        waited = depth.waited or 0.0
        if waited <= STUCK_AFTER or depth.queue in paused or ALL_QUEUES in paused:
            continue
        if not any_queue and depth.queue not in served:
            said = f"No worker serves the queue {depth.queue!r}, where a job has waited for {span(waited)}."
            yield Finding("unserved-queue", BAD, said, f"manage.py runworkers --queues {depth.queue}")
        elif waited > LATE:
            said = f"A job of the queue {depth.queue!r} has waited for {span(waited)}: workers are too few."
            yield Finding("late-queue", WARN, said, "manage.py runworkers --processes N, or more workers")
        if patient.backend.queues and depth.queue not in patient.backend.queues:
            said = f"The queue {depth.queue!r} holds jobs, and QUEUES does not name it."
            yield Finding("undeclared-queue", WARN, said, f'QUEUES: add "{depth.queue}"')


def _pauses(patient: Patient) -> Iterator[Finding]:
    for pause in QueuePause.objects.db_manager(patient.database).present().values():
        what = "All queues are" if pause.queue == ALL_QUEUES else f"The queue {pause.queue!r} is"
        how = "draining" if pause.is_draining else "paused"
        said = f"{what} {how}, by {pause.by}: {pause.reason or 'no reason given'}."
        mend = (
            "manage.py pgqueue_park --resume"
            if pause.queue == ALL_QUEUES
            else "Resume it on the page of queues."
        )
        yield Finding("paused", NOTE, said, mend)


def _tasks(patient: Patient) -> Iterator[Finding]:
    for task_path in Job.objects.db_manager(patient.database).task_paths():
        try:
            resolve_task(task_path)
        except UnknownTask as error:
            if patient.ask(sql.TASK_LIVES, task_path=task_path)[0][0]:
                mend = (
                    f'OPTIONS: "task_aliases": {{"{task_path}": "new.path"}}, or deploy the code that has it'
                )
                yield Finding(
                    "unknown-task", BAD, f"Jobs wait for a task that this code lacks: {error}.", mend
                )
        except Exception as error:  # noqa: BLE001 - whatever a module of the project raises at its import
            said = f"The module of the task {task_path} cannot be imported: {type(error).__name__}: {error}."
            yield Finding("broken-task", BAD, said, f"python -c 'import {task_path.rpartition('.')[0]}'")
