"""The queues: how deep each is, who serves it, and pause, drain and resume."""

from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import router, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_pgqueue.admin.wording import NOTHING, age, moment, visible
from django_pgqueue.operating import QueuePause
from django_pgqueue.pauses import ALL_QUEUES, Pause
from django_pgqueue.wakeups import notify_after_commit

from ..rights import may
from . import figures
from .acts import latest, log_act, name_of
from .overview import QueueRow, queue_row
from .pages import Links, PageAdmin, declared_queues

PERMISSION = "pause_queue"
PAUSE, DRAIN, RESUME = "pause", "drain", "resume"
LABELS = {PAUSE: gettext_lazy("Pause"), DRAIN: gettext_lazy("Drain"), RESUME: gettext_lazy("Resume")}
MOST_REASON = 500


@dataclass(frozen=True, slots=True)
class PausedBy:
    """Who paused a queue, when and why; ``is_all``: it is the pause of all queues that holds it."""

    sentence: str
    reason: str
    is_all: bool


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A queue with its buttons: pairs of an act and its label."""

    name: str
    row: QueueRow
    oldest_running: str
    paused: PausedBy | None
    buttons: list[tuple[str, Any]]


@admin.register(QueuePause)
class QueueAdmin(PageAdmin):
    """The page of queues."""

    page = "queues"

    def acts(self) -> list[URLPattern]:
        """Return the address of the buttons."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_act"
        return [path("act/", self.admin_site.admin_view(self.act_view), name=name)]

    def figures(self, request: HttpRequest) -> dict[str, Any]:
        """Return the queues, who paused what, and what was done lately."""
        now = figures.present(declared_queues())
        samples = figures.samples_of(figures.HOUR, now.at)
        links = Links(self.admin_site.name)
        allowed = may(request, PERMISSION)
        everything = now.pauses.get(ALL_QUEUES)
        lines = [
            QueueLine(
                queue.depth.queue,
                queue_row(queue, samples.get(queue.depth.queue, []), links),
                NOTHING if queue.depth.ran is None else age(queue.depth.ran),
                _paused_by(queue.pause),
                _buttons(now.pauses.get(queue.depth.queue)) if allowed else [],
            )
            for queue in now.queues
        ]
        return {
            "lines": lines,
            "all_queues": ALL_QUEUES,
            "everything": _paused_by(everything),
            "buttons_of_all": _buttons(everything, drains=False) if allowed else [],
            "entries": latest(QueuePause),
            "act_url": self.url("act"),
            "most_reason": MOST_REASON,
        }

    def act_view(self, request: HttpRequest) -> HttpResponse:
        """Do to a queue what a button says, by POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may(request, PERMISSION):
            raise PermissionDenied
        act, queue = request.POST.get("act", ""), request.POST.get("queue", "")
        if act not in LABELS or (act == DRAIN and queue == ALL_QUEUES) or not self._is_known(queue):
            messages.error(request, _("There is no such queue here, or this cannot be done to it."))
        else:
            reason = request.POST.get("reason", "").replace("\x00", "")[:MOST_REASON]
            level, said = _do(request, act, queue, reason)
            messages.add_message(request, level, said)
        return HttpResponseRedirect(self.url())

    def _is_known(self, queue: str) -> bool:
        """Return whether the page shows this queue: a pause of any other name would help nobody."""
        return queue == ALL_QUEUES or any(
            queue == each.depth.queue for each in figures.present(declared_queues()).queues
        )


def _do(request: HttpRequest, act: str, queue: str, reason: str) -> tuple[int, str]:
    shown = visible(queue) or _("all queues")
    using = router.db_for_write(QueuePause)
    with transaction.atomic(using=using):
        if act == RESUME:
            changed, said = QueuePause.objects.resume(queue), _("Resumed.")
            names = [queue] if queue else [each.depth.queue for each in figures.present([]).queues]
            notify_after_commit(sorted({*names, *declared_queues()} if not queue else names), using=using)
        else:
            changed = QueuePause.objects.pause(queue, by=name_of(request), reason=reason, drain=act == DRAIN)
            said = _("Paused.") if act == PAUSE else _("Set to drain.")
        if changed:
            log_act(request, QueuePause, queue, shown, f"{said} {reason}".strip())
    if not changed:
        return messages.WARNING, _("“%s”: somebody was faster; it is so already.") % shown
    return messages.SUCCESS, f"“{shown}”: {said}"


def _buttons(pause: Pause | None, *, drains: bool = True) -> list[tuple[str, Any]]:
    if pause is None:
        acts = [PAUSE, DRAIN] if drains else [PAUSE]
    else:
        acts = [RESUME, PAUSE] if pause.is_draining else [RESUME]
    return [(act, LABELS[act]) for act in acts]


def _paused_by(pause: Pause | None) -> PausedBy | None:
    if pause is None:
        return None
    said = {"by": visible(pause.by), "when": moment(pause.since)}
    if pause.queue == ALL_QUEUES:
        sentence = _("All queues were paused by %(by)s on %(when)s.") % said
    elif pause.is_draining:
        sentence = _("Drains, then pauses; asked for by %(by)s on %(when)s.") % said
    else:
        sentence = _("Paused by %(by)s on %(when)s.") % said
    return PausedBy(sentence, visible(pause.reason), pause.queue == ALL_QUEUES)
