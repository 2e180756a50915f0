"""Bulk operations: one verb for all jobs that a filter means, done in the background, batch by batch.

A row says what was asked, by whom, how fast it may go and how far it is.  Its token makes a second press of
the same button the same operation.  ``carrying`` does the work; these are the verbs on the row itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import models, router
from django.utils.translation import gettext_lazy as _

from . import sql
from .fields import JSONTextField
from .guarded import GuardedManager, GuardedModel
from .querying import Connection, queue_connection, run
from .selecting import JobFilter, Place, place_as_json
from .storable import dump_json

BATCHES_SHOWN = 10
EXAMPLES_SHOWN = 5
RUNNING, FINISHED, STOPPED = "running", "finished", "stopped"


class Kind(models.TextChoices):
    """What a bulk operation does to its jobs."""

    RETRY = "retry", _("Retry")
    DISCARD = "discard", _("Discard")
    CANCEL = "cancel", _("Cancel")
    RUN_NOW = "run-now", _("Run now")


class Standing(models.TextChoices):
    """Where a bulk operation stands."""

    RUNNING = RUNNING, _("Running")
    FINISHED = FINISHED, _("Finished")
    STOPPED = STOPPED, _("Stopped")


@dataclass(frozen=True, slots=True)
class Part:
    """An operation that is about to do a batch: what the batch needs to know.

    ``allowed``: how many jobs its rate allows now; ``created_at`` bounds what it may touch.
    """

    id: int
    kind: str
    filters: Mapping[str, Any]
    place: Mapping[str, Any] | None
    created_at: datetime
    last_id: int
    allowed: int


@dataclass(frozen=True, slots=True)
class Progress:
    """What a batch did to which jobs, and where the next one begins: nowhere when ``status`` is None."""

    changed: Sequence[int] = ()
    skipped: int = 0
    conflicts: int = 0
    status: str | None = None
    place: Place | None = None


class BulkManager(GuardedManager):
    """``BulkOperation.objects``."""

    def start(
        self,
        kind: str,
        asked: JobFilter,
        *,
        token: UUID,
        expected: int,
        per_minute: float | None = None,
        user: tuple[str, str] = ("", ""),
        connection: Connection = None,
    ) -> tuple[int, bool]:
        """Ask for an operation; return its id, and whether it is new: the same token is asked once only.

        ``user``: the key and the name of who asks.  It touches jobs enqueued and ended before now only.
        """
        params = {
            "token": token,
            "kind": Kind(kind).value,
            "filters": dump_json(asked.as_json()),
            "expected": expected,
            "per_minute": per_minute,
            "user_id": user[0],
            "user_name": user[1],
        }
        connection = connection or self._connection()
        rows = run(connection, sql.START_BULK, params)
        if not rows:  # the other press had not committed when this statement began, and has now
            rows = run(connection, sql.START_BULK, params)
        return rows[0][0], rows[0][1]

    def stop(self, operation_id: int, *, user_name: str, connection: Connection = None) -> bool:
        """Stop an operation after its present batch; return whether it still ran."""
        params = {"id": operation_id, "user_name": user_name}
        return bool(run(connection or self._connection(), sql.STOP_BULK, params))

    def next_part(
        self, *, limit: int, operation_id: int | None = None, connection: Connection = None
    ) -> Part | None:
        """Take an operation whose next batch is due, for the present transaction; None when none is."""
        params = {"limit": limit, "id": operation_id}
        rows = run(connection or self._connection(), sql.NEXT_PART, params)
        return Part(*rows[0]) if rows else None

    def advance(self, operation_id: int, done: Progress, *, connection: Connection = None) -> None:
        """Write what a batch did."""
        place = None
        if done.status is not None:
            place = {"status": done.status, "place": place_as_json(done.place) if done.place else None}
        params = {
            "id": operation_id,
            "changed": list(done.changed),
            "skipped": done.skipped,
            "conflicts": done.conflicts,
            "place": dump_json(place) if place else None,
        }
        run(connection or self._connection(), sql.ADVANCE_BULK, params)

    def fail(self, operation_id: int, error: str, *, connection: Connection = None) -> None:
        """Stop an operation that cannot go on, with the reason."""
        run(connection or self._connection(), sql.FAIL_BULK, {"id": operation_id, "error": error})

    def outcomes(self, operation_id: int) -> tuple[dict[str, int], dict[str, list[int]]]:
        """Return what became of the jobs it changed: how many in each state now, and a few ids of each.

        Of its latest ten batches; a job that is not there any more counts as ``gone``.
        """
        params = {"id": operation_id, "batches": BATCHES_SHOWN, "examples": EXAMPLES_SHOWN}
        rows = run(self._connection(), sql.BULK_OUTCOMES, params)
        return {status: count for status, count, _ in rows}, {status: ids for status, _, ids in rows}

    def _connection(self) -> Any:
        return queue_connection(self._db or router.db_for_write(self.model))


class BulkOperation(GuardedModel):
    """One operation on many jobs.  ``changed``, ``skipped`` and ``conflicts`` count jobs."""

    id = models.BigAutoField(_("id"), primary_key=True)
    token = models.UUIDField(_("token"), unique=True)
    kind = models.CharField(_("what"), max_length=16, choices=Kind.choices)
    filters = JSONTextField(_("jobs"))
    expected = models.BigIntegerField(_("jobs at the start"))
    per_minute = models.FloatField(_("jobs a minute"), null=True, blank=True)
    standing = models.CharField(_("state"), max_length=16, choices=Standing.choices)
    changed = models.BigIntegerField(_("changed"), default=0)
    skipped = models.BigIntegerField(_("skipped"), default=0)
    conflicts = models.BigIntegerField(_("conflicts"), default=0)
    last_id = models.BigIntegerField(_("last job"))
    place = JSONTextField(_("place"), null=True, blank=True)
    error = models.TextField(_("error"), blank=True, default="")
    user_id = models.CharField(_("user's key"), max_length=255, blank=True, default="")
    user_name = models.CharField(_("by"), max_length=255, blank=True, default="")
    stopped_by = models.CharField(_("stopped by"), max_length=255, blank=True, default="")
    created_at = models.DateTimeField(_("asked for at"))
    advanced_at = models.DateTimeField(_("last batch at"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended at"), null=True, blank=True)

    objects = BulkManager()

    class Meta(GuardedModel.Meta):
        verbose_name = _("bulk operation")
        verbose_name_plural = _("bulk operations")
        default_permissions = ()
        indexes = [
            models.Index(fields=["id"], name="pgqueue_bulk_running", condition=models.Q(standing=RUNNING)),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(kind__in=Kind.values), name="pgqueue_bulk_kind_known"),
            models.CheckConstraint(
                condition=models.Q(standing__in=Standing.values), name="pgqueue_bulk_standing_known"
            ),
            models.CheckConstraint(
                condition=models.Q(per_minute__isnull=True) | models.Q(per_minute__gt=0),
                name="pgqueue_bulk_rate_is_positive",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} #{self.pk}"


class BulkBatch(GuardedModel):
    """The jobs that one batch of a bulk operation changed, so that its page can say what became of them."""

    id = models.BigAutoField(_("id"), primary_key=True)
    operation_id = models.BigIntegerField(_("operation"))
    job_ids = JSONTextField(_("jobs"))

    objects = GuardedManager()

    class Meta(GuardedModel.Meta):
        verbose_name = _("batch of a bulk operation")
        verbose_name_plural = _("batches of bulk operations")
        default_permissions = ()
        indexes = [models.Index(fields=["operation_id", "id"], name="pgqueue_bulk_batches")]

    def __str__(self) -> str:
        return f"batch {self.pk} of #{self.operation_id}"
