"""Another queue or another priority for one waiting job."""

from typing import Any

from django import forms
from django.contrib import messages
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_pgqueue import states
from django_pgqueue.models import Job, JobState
from django_pgqueue.repairing import HIGHEST_PRIORITY
from django_pgqueue.wakeups import notify_after_commit

from . import wording
from .filters import queue_names

MOVABLE = states.sources("move")


class MoveForm(forms.Form):
    """The queue and the priority that a job shall have."""

    queue = forms.ChoiceField(label=gettext_lazy("Queue"))
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"), min_value=-HIGHEST_PRIORITY, max_value=HIGHEST_PRIORITY
    )

    def __init__(self, state: JobState, data: Any = None) -> None:
        super().__init__(data, initial={"queue": state.queue, "priority": state.priority}, auto_id="pgq-%s")
        names = sorted({*queue_names(), state.queue})
        field: Any = self.fields["queue"]
        field.choices = [(name, wording.visible(name)) for name in names]


def move(state: JobState, form: MoveForm) -> tuple[str, int]:
    """Do what the form asks; return what to tell, and the level of the message."""
    if not form.is_valid():
        errors = [error for found in form.errors.values() for error in found]
        return " ".join(str(error) for error in errors), messages.ERROR
    queue, priority = form.cleaned_data["queue"], form.cleaned_data["priority"]
    told, changed = [], False
    if queue != state.queue:
        moved = Job.objects.move([state.pk], queue)
        changed = changed or bool(moved)
        told += [_("Moved to the queue “%s”.") % wording.visible(queue)] if moved else []
        notify_after_commit([row.queue for row in moved if row.status == states.READY], using=_alias(state))
    if priority != state.priority:
        moved = Job.objects.reprioritise([state.pk], priority)
        changed = changed or bool(moved)
        told += [_("Priority changed to %d.") % priority] if moved else []
    if changed:
        return " ".join(told), messages.SUCCESS
    if queue == state.queue and priority == state.priority:
        return _("Nothing was changed: the job has this queue and this priority."), messages.WARNING
    return _("Nothing was changed: the job does not wait any more."), messages.WARNING


def _alias(state: JobState) -> str:
    return state._state.db or "default"
