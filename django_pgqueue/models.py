"""Three tables: what was asked (Job), where it stands (JobState), what happened (Attempt).

Job is wide and written once; only ``replace`` of a waiting job updates it.  JobState is narrow and the
only hot table.  Attempt is append-only, one row for each attempt that ended.  No foreign key constraints
hold the three together (they cost a quarter of the throughput and lock rows that SKIP LOCKED then skips):
the verbs of the manager are the only writers, and they insert and delete the three together.

Rows change through ``Job.objects`` (see ``managers``) and in no other way: see ``guarded``.
"""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from . import conf
from .bulk import BulkBatch as BulkBatch
from .bulk import BulkOperation as BulkOperation
from .durable import JobStep as JobStep
from .fields import JSONTextField
from .guarded import GuardedManager, GuardedModel
from .managers import JobManager
from .operating import Overview as Overview
from .operating import QueuePause as QueuePause
from .operating import QueueSample as QueueSample
from .operating import Rollup as Rollup
from .operating import RollupMark as RollupMark
from .operating import Worker as Worker
from .states import (
    CANCELLED,
    DEAD,
    ENDED,
    FAILED,
    LOST,
    READY,
    RELEASED,
    RUNNING,
    SCHEDULED,
    SNOOZED,
    SUCCEEDED,
)


class Status(models.TextChoices):
    """The states of a job; see ``states.TRANSITIONS``."""

    SCHEDULED = SCHEDULED, _("Scheduled")
    READY = READY, _("Ready")
    RUNNING = RUNNING, _("Running")
    SUCCEEDED = SUCCEEDED, _("Succeeded")
    DEAD = DEAD, _("Dead")
    CANCELLED = CANCELLED, _("Cancelled")


class Outcome(models.TextChoices):
    """How an attempt ended."""

    SUCCEEDED = SUCCEEDED, _("Succeeded")
    FAILED = FAILED, _("Failed")
    LOST = LOST, _("Lost")
    SNOOZED = SNOOZED, _("Snoozed")
    RELEASED = RELEASED, _("Released")
    CANCELLED = CANCELLED, _("Cancelled")


class Job(GuardedModel):
    """What was asked.  ``timeout``, ``backoff_base`` and ``backoff_cap`` are seconds.

    ``parent`` is the job whose task enqueued this one; it may have been pruned since.
    """

    id = models.BigAutoField(_("id"), primary_key=True)
    backend = models.CharField(_("backend"), max_length=64)
    task_path = models.CharField(_("task"), max_length=conf.MAX_TASK_PATH)
    args = JSONTextField(_("arguments"))
    kwargs = JSONTextField(_("keyword arguments"))
    queue = models.CharField(_("queue"), max_length=conf.MAX_QUEUE_NAME)
    priority = models.SmallIntegerField(_("priority"))
    run_after = models.DateTimeField(_("run after"), null=True, blank=True)
    enqueued_at = models.DateTimeField(_("enqueued at"))
    metadata = JSONTextField(_("metadata"))
    max_attempts = models.IntegerField(_("attempts allowed"))
    timeout = models.FloatField(_("timeout"), null=True, blank=True)
    backoff_base = models.FloatField(_("backoff base"))
    backoff_cap = models.FloatField(_("backoff cap"))
    parent_id: int | None
    parent = models.ForeignKey(
        "self",
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        related_name="children",
        verbose_name=_("enqueued by job"),
    )

    objects = JobManager()
    state: "JobState"

    class Meta(GuardedModel.Meta):
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        default_permissions = ("view",)
        permissions = [
            ("retry_job", "Can retry dead and cancelled jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("run_job", "Can run scheduled jobs now"),
            ("discard_job", "Can discard dead and cancelled jobs"),
            ("move_job", "Can change the queue and the priority of waiting jobs"),
            ("rerun_job", "Can run a job again with other arguments"),
        ]
        indexes = [
            models.Index(F("task_path"), F("id"), name="pgqueue_job_task"),
            models.Index(F("parent"), F("id"), name="pgqueue_job_parent", condition=Q(parent__isnull=False)),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(priority__gte=-100, priority__lte=100), name="pgqueue_job_priority_in_range"
            ),
            models.CheckConstraint(condition=Q(max_attempts__gte=1), name="pgqueue_job_has_budget"),
        ]

    def __str__(self) -> str:
        return f"{self.task_path} #{self.pk}"


class DeadJob(Job):
    """The dead jobs, for the admin's page of causes; no table of its own."""

    class Meta:  # pyright: ignore[reportIncompatibleVariableOverride] - a proxy has no indexes of its own
        proxy = True
        verbose_name = _("dead job")
        verbose_name_plural = _("dead jobs by cause")
        default_permissions = ()


_OWNED = Q(
    worker_id__isnull=False,
    lease_token__isnull=False,
    lease_expires_at__isnull=False,
    claimed_at__isnull=False,
)
_FREE = Q(
    worker_id__isnull=True, lease_token__isnull=True, lease_expires_at__isnull=True, claimed_at__isnull=True
)


class JobState(GuardedModel):
    """Where a job stands: the hot row.

    ``attempts`` counts the attempts that ended; the attempt that runs has the number after it.
    ``position`` is the place in the queue, from a sequence, taken when the job becomes ready.
    """

    job = models.OneToOneField(
        Job,
        on_delete=models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="state",
        verbose_name=_("job"),
    )
    queue = models.CharField(_("queue"), max_length=conf.MAX_QUEUE_NAME)
    priority = models.SmallIntegerField(_("priority"))
    status = models.CharField(_("status"), max_length=16, choices=Status.choices)
    position = models.BigIntegerField(_("position"), null=True, blank=True)
    run_at = models.DateTimeField(_("due at"))
    attempts = models.IntegerField(_("attempts"))
    attempts_allowed = models.IntegerField(_("attempts allowed"))
    lease_version = models.BigIntegerField(_("lease version"))
    lease_token = models.UUIDField(_("lease token"), null=True, blank=True)
    worker_id = models.CharField(_("worker"), max_length=conf.MAX_WORKER_ID, null=True, blank=True)
    claimed_at = models.DateTimeField(_("claimed at"), null=True, blank=True)
    lease_expires_at = models.DateTimeField(_("lease expires at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    cancel_requested_at = models.DateTimeField(_("cancel requested at"), null=True, blank=True)
    unique_key = models.CharField(_("unique key"), max_length=conf.MAX_UNIQUE_KEY, null=True, blank=True)
    progress = JSONTextField(_("progress"), null=True, blank=True)
    # Of dead jobs only; see sql.causes.
    cause = models.CharField(_("cause"), max_length=conf.MAX_CAUSE, null=True, blank=True)

    objects = GuardedManager()

    class Meta(GuardedModel.Meta):
        verbose_name = _("job state")
        verbose_name_plural = _("job states")
        default_permissions = ()
        indexes = [
            # sql.CLAIM spells these expressions exactly so; another spelling sorts the whole queue.
            models.Index(
                F("queue"),
                F("priority") * -1,
                F("position"),
                F("job"),
                name="pgqueue_state_claim",
                condition=Q(status=READY),
            ),
            models.Index(F("run_at"), F("job"), name="pgqueue_state_promote", condition=Q(status=SCHEDULED)),
            # Not lease_expires_at: an index on it would make every renewal a full row copy.
            models.Index(F("claimed_at"), F("job"), name="pgqueue_state_rescue", condition=Q(status=RUNNING)),
            models.Index(
                F("status"),
                F("finished_at"),
                F("job"),
                name="pgqueue_state_ended",
                condition=Q(finished_at__isnull=False),
            ),
            models.Index(
                F("cause"),
                F("finished_at"),
                F("job"),
                name="pgqueue_state_cause",
                condition=Q(status=DEAD),
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="pgqueue_state_status_known"),
            models.CheckConstraint(
                condition=(Q(status=RUNNING) & _OWNED) | (~Q(status=RUNNING) & _FREE),
                name="pgqueue_state_running_has_owner",
            ),
            models.CheckConstraint(
                condition=Q(status__in=sorted(ENDED), finished_at__isnull=False)
                | (~Q(status__in=sorted(ENDED)) & Q(finished_at__isnull=True)),
                name="pgqueue_state_ended_has_time",
            ),
            models.CheckConstraint(
                condition=~Q(status=READY) | Q(position__isnull=False),
                name="pgqueue_state_ready_has_position",
            ),
            models.CheckConstraint(
                condition=Q(priority__gte=-100, priority__lte=100), name="pgqueue_state_priority_in_range"
            ),
            models.CheckConstraint(
                condition=Q(attempts__gte=0, lease_version__gte=0) & Q(attempts__lte=F("attempts_allowed")),
                name="pgqueue_state_attempts_within_allowed",
            ),
            models.UniqueConstraint(
                fields=["unique_key"],
                condition=Q(unique_key__isnull=False, status__in=[SCHEDULED, READY, RUNNING]),
                name="pgqueue_state_one_live_job_per_key",
            ),
        ]

    def __str__(self) -> str:
        return f"job {self.pk}: {self.status}"


class Attempt(GuardedModel):
    """What happened: one attempt that ended.  Never updated.

    ``sql_queries`` and ``sql_seconds`` are NULL where none was asked, or nobody could count.
    """

    pk = models.CompositePrimaryKey("job_id", "number")
    job_id: int
    job = models.ForeignKey(
        Job,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="attempts",
        verbose_name=_("job"),
    )
    number = models.IntegerField(_("number"))
    lease_version = models.BigIntegerField(_("lease version"))
    lease_token = models.UUIDField(_("lease token"))
    worker_id = models.CharField(_("worker"), max_length=conf.MAX_WORKER_ID)
    host = models.CharField(_("host"), max_length=255)
    pid = models.IntegerField(_("process id"), null=True)
    started_at = models.DateTimeField(_("started at"))
    finished_at = models.DateTimeField(_("finished at"))
    outcome = models.CharField(_("outcome"), max_length=16, choices=Outcome.choices)
    exception_class = models.CharField(_("exception class"), max_length=255, blank=True)
    message = models.TextField(_("message"), blank=True)
    traceback = models.TextField(_("traceback"), blank=True)
    fingerprint = models.CharField(_("fingerprint"), max_length=32, blank=True)
    return_value = JSONTextField(_("return value"), null=True)
    log_tail = models.TextField(_("log tail"), blank=True)
    sql_queries = models.IntegerField(_("SQL queries"), null=True, blank=True)
    sql_seconds = models.FloatField(_("SQL seconds"), null=True, blank=True)
    recorded_xid = models.BigIntegerField(_("recorded by transaction"), null=True, editable=False)

    objects = GuardedManager()

    class Meta(GuardedModel.Meta):
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        default_permissions = ("view",)
        indexes = [
            # For the rollups: what was written since they last looked.  Filled by the column's default.
            models.Index(
                F("recorded_xid"), name="pgqueue_attempt_recorded", condition=Q(recorded_xid__isnull=False)
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome__in=Outcome.values), name="pgqueue_attempt_outcome_known"
            ),
            models.CheckConstraint(condition=Q(number__gte=1), name="pgqueue_attempt_numbered_from_one"),
        ]

    def __str__(self) -> str:
        return f"job {self.job_id} attempt {self.number}: {self.outcome}"
