"""The tables of those who operate the queue: rollups, samples, pauses, and the registry of workers.

None of them is needed to run a job, but pauses, which the claim looks at.  All are small: rollups and
samples are pruned by the keeper, a pause is a row for each paused queue, a worker one for each supervisor.
They are written by the statements of ``sql`` alone.
"""

from django.db import models
from django.utils.translation import gettext_lazy as _

from . import conf
from .depths import SampleManager
from .fields import CountsField, JSONTextField
from .guarded import GuardedModel
from .pauses import PauseManager
from .registry import WorkerManager
from .rollups import RollupManager


class Rollup(GuardedModel):
    """What the attempts of one task in one queue came to, in the ``span`` seconds from ``starts_at`` on.

    ``runs`` and ``waits`` are histograms (see ``histograms``): seconds that attempts ran, and seconds that
    first attempts had waited since they were due.
    """

    pk = models.CompositePrimaryKey("span", "starts_at", "queue", "task_path")
    span = models.IntegerField(_("span"))
    starts_at = models.DateTimeField(_("starts at"))
    queue = models.CharField(_("queue"), max_length=conf.MAX_QUEUE_NAME)
    task_path = models.CharField(_("task"), max_length=conf.MAX_TASK_PATH)
    succeeded = models.BigIntegerField(_("succeeded"))
    failed = models.BigIntegerField(_("failed"))
    lost = models.BigIntegerField(_("lost"))
    snoozed = models.BigIntegerField(_("snoozed"))
    released = models.BigIntegerField(_("released"))
    cancelled = models.BigIntegerField(_("cancelled"))
    run_seconds = models.FloatField(_("seconds run"))
    runs = CountsField(_("run times"))
    waits = CountsField(_("waiting times"))

    objects = RollupManager()

    class Meta(GuardedModel.Meta):
        verbose_name = _("rollup")
        verbose_name_plural = _("rollups")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.task_path} in {self.queue}, {self.span} s from {self.starts_at}"


class RollupMark(GuardedModel):
    """One row: what is counted: all that transactions before ``next_xid`` wrote, less ``pending``."""

    id = models.SmallIntegerField(_("id"), primary_key=True)
    next_xid = models.BigIntegerField(_("next transaction"))
    pending = CountsField(_("transactions under way"))
    counted_from = models.DateTimeField(_("counted from"))

    class Meta(GuardedModel.Meta):
        verbose_name = _("mark of the rollups")
        verbose_name_plural = _("marks of the rollups")
        default_permissions = ()

    def __str__(self) -> str:
        return f"transaction {self.next_xid}"


class QueueSample(GuardedModel):
    """How deep a queue was in a minute; ``oldest``: seconds that its oldest ready job had waited."""

    pk = models.CompositePrimaryKey("taken_at", "queue")
    taken_at = models.DateTimeField(_("taken at"))
    queue = models.CharField(_("queue"), max_length=conf.MAX_QUEUE_NAME)
    ready = models.BigIntegerField(_("ready"))
    running = models.BigIntegerField(_("running"))
    oldest = models.FloatField(_("oldest"), null=True)

    objects = SampleManager()

    class Meta(GuardedModel.Meta):
        verbose_name = _("sample of a queue")
        verbose_name_plural = _("samples of queues")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.queue} at {self.taken_at}"


class QueuePause(GuardedModel):
    """A queue that is paused, or drains; the empty name stands for all queues."""

    queue = models.CharField(_("queue"), max_length=conf.MAX_QUEUE_NAME, primary_key=True)
    is_draining = models.BooleanField(_("draining"))
    since = models.DateTimeField(_("since"))
    by = models.CharField(_("by"), max_length=255)
    reason = models.TextField(_("reason"))

    objects = PauseManager()

    class Meta(GuardedModel.Meta):
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        default_permissions = ()
        permissions = [("pause_queue", "Can pause, drain and resume queues")]

    def __str__(self) -> str:
        return self.queue


class Worker(GuardedModel):
    """A supervisor with its children, as its keeper last told.  ``memory`` is megabytes, of all processes."""

    worker_id = models.CharField(_("worker"), max_length=conf.MAX_WORKER_ID, primary_key=True)
    host = models.CharField(_("host"), max_length=255)
    pid = models.IntegerField(_("process id"))
    started_at = models.DateTimeField(_("started at"))
    beat_at = models.DateTimeField(_("last beat"))
    heartbeat = models.FloatField(_("heartbeat"))
    queues = models.TextField(_("queues"))
    processes = models.IntegerField(_("processes"))
    threads = models.IntegerField(_("threads"))
    version = models.CharField(_("version"), max_length=64)
    release = models.CharField(_("release"), max_length=128)
    memory = models.IntegerField(_("memory"), null=True)
    is_stopping = models.BooleanField(_("stopping"))
    children = JSONTextField(_("children"))
    stop_requested_at = models.DateTimeField(_("stop requested at"), null=True)
    stop_requested_by = models.CharField(_("stop requested by"), max_length=255)

    objects = WorkerManager()

    class Meta(GuardedModel.Meta):
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        default_permissions = ()
        permissions = [("stop_worker", "Can ask workers to stop")]

    def __str__(self) -> str:
        return self.worker_id


class Overview(GuardedModel):
    """No table: the overview's place in the admin, whose pages belong to models."""

    class Meta(GuardedModel.Meta):
        managed = False
        verbose_name = _("overview")
        verbose_name_plural = _("overview")
        default_permissions = ()
