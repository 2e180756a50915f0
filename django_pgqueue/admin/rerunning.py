"""A job again with other arguments: a new job, linked to the one it was made from, which stays as it is.

The form shows the arguments as they may be shown.  What was hidden there and left alone is put back, so that
nobody has to know a secret to change the argument beside it.
"""

import json
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import router, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_pgqueue.enqueueing import check_call
from django_pgqueue.models import Job
from django_pgqueue.records import NewJob
from django_pgqueue.redaction import Redactor
from django_pgqueue.resolving import resolve_task
from django_pgqueue.storable import check_json, dump_json
from django_pgqueue.wakeups import notify_after_commit

RERUN_OF = "rerun_of"
"""The key in the new job's metadata that has the first one's id."""
MOST = 200_000
"""Characters of arguments that can be edited on a page."""


@dataclass(frozen=True, slots=True)
class Original:
    """A job as it was asked for, and its arguments as they may be shown."""

    job: Job
    shown_args: list[Any]
    shown_kwargs: dict[str, Any]
    substitute: str

    @property
    def is_too_large(self) -> bool:
        """Return whether the arguments are more than a form can hold."""
        return len(dump_json(self.job.args)) + len(dump_json(self.job.kwargs)) > MOST


def original(job_id: int) -> Original:
    """Return the job with its arguments; raises Job.DoesNotExist."""
    job = Job.objects.using(router.db_for_write(Job)).get(pk=job_id)
    redactor = Redactor(job.task_path, job.backend)
    args, kwargs = redactor.arguments(job.args, job.kwargs)
    return Original(job, args, kwargs, redactor.substitute)


class RerunForm(forms.Form):
    """The arguments as JSON."""

    args = forms.CharField(
        label=gettext_lazy("Arguments"),
        help_text=gettext_lazy("A list, as JSON."),
        widget=forms.Textarea(attrs={"rows": 6, "cols": 80, "spellcheck": "false"}),
    )
    kwargs = forms.CharField(
        label=gettext_lazy("Keyword arguments"),
        help_text=gettext_lazy("An object, as JSON."),
        widget=forms.Textarea(attrs={"rows": 6, "cols": 80, "spellcheck": "false"}),
    )

    def __init__(self, first: Original, data: Any = None) -> None:
        shown = (first.shown_args, first.shown_kwargs)
        texts = (_indented(value) for value in shown)
        initial: dict[str, Any] = dict(zip(("args", "kwargs"), texts, strict=True))
        super().__init__(data, initial=initial)
        self._first = first

    def clean_args(self) -> list[Any]:
        """Return the positional arguments; raises ValidationError."""
        args = self._read("args", list)
        return [*_restored(args, self._first.shown_args, self._first.job.args)]

    def clean_kwargs(self) -> dict[str, Any]:
        """Return the keyword arguments; raises ValidationError."""
        kwargs = self._read("kwargs", dict)
        return dict(_restored(kwargs, self._first.shown_kwargs, self._first.job.kwargs))

    def clean(self) -> dict[str, Any]:
        """Check that the task takes them; raises ValidationError."""
        given: dict[str, Any] = self.cleaned_data
        if self.errors:
            return given
        left = json.dumps([given["args"], given["kwargs"]], ensure_ascii=False)
        first = json.dumps([self._first.job.args, self._first.job.kwargs], ensure_ascii=False)
        if left.count(self._first.substitute) > first.count(self._first.substitute):
            raise ValidationError(
                _("“%s” stands for a hidden value; it can be left where it is or be replaced, not be moved.")
                % self._first.substitute
            )
        try:
            check_call(resolve_task(self._first.job.task_path), given["args"], given["kwargs"])
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a task's module may raise anything
            raise ValidationError(str(error)) from None
        return given

    def _read(self, name: str, kind: type) -> Any:
        try:
            value = json.loads(self.cleaned_data[name])
            check_json(value, name)
        except (ValueError, RecursionError) as error:
            raise ValidationError(_("This cannot be read as JSON: %s") % error) from None
        if not isinstance(value, kind):
            raise ValidationError(_("A list is needed.") if kind is list else _("An object is needed."))
        return value


def rerun(first: Original, args: list[Any], kwargs: dict[str, Any]) -> int:
    """Enqueue the new job; return its id."""
    job = first.job
    new = NewJob(
        task_path=job.task_path,
        args=dump_json(args),
        kwargs=dump_json(kwargs),
        queue=job.queue,
        priority=job.priority,
        metadata=dump_json({**job.metadata, RERUN_OF: job.pk}),
        max_attempts=job.max_attempts,
        timeout=job.timeout,
        backoff_base=job.backoff_base,
        backoff_cap=job.backoff_cap,
    )
    using = router.db_for_write(Job)
    with transaction.atomic(using=using):
        made = Job.objects.enqueue(new, backend=job.backend)
        notify_after_commit([job.queue], using=using)
    return made.job_id


def _restored(edited: Any, shown: Any, first: Any) -> Any:
    """Return what was edited, with the first values wherever what was shown is unchanged."""
    if edited == shown:
        return first
    if isinstance(edited, dict) and isinstance(shown, dict) and isinstance(first, dict):
        return {
            name: _restored(value, shown[name], first[name]) if name in shown and name in first else value
            for name, value in edited.items()
        }
    if isinstance(edited, list) and isinstance(shown, list) and isinstance(first, list):
        pairs = list(zip(shown, first, strict=False))
        return [
            _restored(value, *pairs[place]) if place < len(pairs) else value
            for place, value in enumerate(edited)
        ]
    return edited


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
