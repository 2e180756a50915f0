"""The table of steps: one row for each part of a job that is done and must not be done again."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from . import conf
from .fields import JSONTextField
from .guarded import GuardedModel
from .steps import StepManager


class JobStep(GuardedModel):
    """What ``context.step(name, ...)`` returned, for good; ``lease_version`` says under which claim.

    Written once and never updated; pruned with its job.
    """

    pk = models.CompositePrimaryKey("job_id", "name")
    job_id: int
    job = models.ForeignKey(
        "django_pgqueue.Job",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="steps",
        verbose_name=_("job"),
    )
    name = models.CharField(_("name"), max_length=conf.MAX_STEP_NAME)
    result = JSONTextField(_("result"), null=True)
    lease_version = models.BigIntegerField(_("lease version"))
    recorded_at = models.DateTimeField(_("recorded at"))

    objects = StepManager()

    class Meta(GuardedModel.Meta):
        verbose_name = _("step")
        verbose_name_plural = _("steps")
        default_permissions = ()

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.name}"
