"""What an operator may do about jobs, as data: Retry, Run now, Cancel, Discard.

Each is one verb of ``Job.objects``.  Done to jobs that were ticked, their entries in the admin log and the
wake-up of workers commit together with it; done to all that a filter means, it is a bulk operation (see
``bulk``).  A job that the verb does not apply to is left alone and counted; one that would be the second live
job of its unique key is left alone and counted as a conflict.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import router, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_pgqueue import states
from django_pgqueue.bulk import Kind
from django_pgqueue.models import Job
from django_pgqueue.querying import ROWS_PER_STATEMENT, chunks
from django_pgqueue.wakeups import notify_after_commit


@dataclass
class Done:
    """What became of some jobs: ``changed`` maps an entry for the admin log to the jobs it is true of."""

    changed: dict[str, Sequence[int]]
    counts: Counter[str]
    ready: Sequence[int] = field(default_factory=list)


@dataclass(frozen=True)
class Repair:
    """One thing that an operator may do; ``verb`` says to which states (``states.TRANSITIONS``)."""

    name: str
    verb: str
    permission: str
    label: Any  # a lazy translation, like the next
    label_many: Any
    apply: Callable[[Sequence[int]], Done]
    asks_first: bool = False

    @property
    def applies_to(self) -> frozenset[str]:
        """Return the states of the jobs that it changes."""
        return frozenset(status for status in states.sources(self.verb) if status)

    @property
    def codename(self) -> str:
        """Return the permission it needs, besides the one to view jobs."""
        return f"{Job._meta.app_label}.{self.permission}"


def _retry(job_ids: Sequence[int]) -> Done:
    report = Job.objects.retry(job_ids)
    counts = Counter(
        retried=len(report.retried), not_over=len(report.skipped), conflicts=len(report.conflicts)
    )
    return Done({_("Retried."): report.retried}, counts, ready=report.retried)


def _cancel(job_ids: Sequence[int]) -> Done:
    report = Job.objects.cancel(job_ids)
    counts = Counter(cancelled=len(report.cancelled), asked=len(report.requested), over=len(report.skipped))
    return Done({_("Cancelled."): report.cancelled, _("Asked to stop."): report.requested}, counts)


def _run_now(job_ids: Sequence[int]) -> Done:
    made_ready = [job_id for job_id, _queue in Job.objects.promote_now(job_ids)]
    counts = Counter(made_ready=len(made_ready), not_scheduled=len(job_ids) - len(made_ready))
    return Done({_("Made ready to run now."): made_ready}, counts, ready=made_ready)


def _discard(job_ids: Sequence[int]) -> Done:
    gone = Job.objects.discard(job_ids)
    counts = Counter(discarded=len(gone), not_over=len(job_ids) - len(gone))
    return Done({_("Discarded."): gone}, counts)


RETRY = Repair(
    "retry", "retry", "retry_job", gettext_lazy("Retry"), gettext_lazy("Retry selected jobs"), _retry
)
CANCEL = Repair(
    "cancel",
    "cancel",
    "cancel_job",
    gettext_lazy("Cancel"),
    gettext_lazy("Cancel selected jobs"),
    _cancel,
    True,
)
RUN_NOW = Repair(
    "run-now", "promote", "run_job", gettext_lazy("Run now"), gettext_lazy("Run selected jobs now"), _run_now
)
DISCARD = Repair(
    "discard",
    "discard",
    "discard_job",
    gettext_lazy("Discard"),
    gettext_lazy("Discard selected jobs"),
    _discard,
    True,
)
REPAIRS = (RETRY, RUN_NOW, CANCEL, DISCARD)
BY_KIND = {Kind(repair.name).value: repair for repair in REPAIRS}
"""The repairs as bulk operations: each has the name of one."""


def carry_out(repair: Repair, job_ids: Sequence[int], *, user_id: Any) -> Counter[str]:
    """Do it to these jobs, log each change, wake the workers; return what became of how many."""
    using = router.db_for_write(Job)
    counts: Counter[str] = Counter()
    for chunk in chunks(job_ids, ROWS_PER_STATEMENT):
        with transaction.atomic(using=using):
            known = _known(chunk, using)  # before: what is discarded is not there afterwards
            done = repair.apply(chunk)
            for text, ids in done.changed.items():
                _log({job_id: known[job_id][0] for job_id in ids if job_id in known}, text, user_id)
            notify_after_commit(sorted({known[i][1] for i in done.ready if i in known}), using=using)
        counts.update(done.counts)
    return counts


def _known(job_ids: Sequence[int], using: str) -> dict[int, tuple[str, str]]:
    rows = Job.objects.using(using).filter(pk__in=job_ids).values_list("pk", "task_path", "queue")
    return {job_id: (task_path, queue) for job_id, task_path, queue in rows}


def _log(task_paths: dict[int, str], text: str, user_id: Any) -> None:
    # LogEntry.objects.log_actions() does the same from model instances, in twice the time.
    common = {
        "user_id": user_id,
        "content_type_id": ContentType.objects.get_for_model(Job).pk,
        "action_flag": CHANGE,
        "change_message": text,
    }
    job = Job()
    entries = []
    for job.pk, job.task_path in task_paths.items():
        entries.append(LogEntry(object_id=str(job.pk), object_repr=str(job)[:200], **common))
    LogEntry.objects.bulk_create(entries)
