"""What needs somebody: sentences about the present that lead to the page where it is mended."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_pgqueue.admin.wording import age, number, visible
from django_pgqueue.pauses import ALL_QUEUES
from django_pgqueue.readings import STUCK_AFTER
from django_pgqueue.registry import DEAD, STOPPING

from .figures import Now, Past
from .pages import Links

OLD_AFTER = 300.0
"""Seconds after which a ready job that still waits is worth a word although workers are at it."""
FAILING_SHARE, FAILING_LEAST = 0.1, 5
"""Part of the attempts, and how many of them at least, that must go wrong to be worth a word."""


@dataclass(frozen=True, slots=True)
class Concern:
    """A sentence, how bad it is (bad, warn, note), and where to go."""

    kind: str
    text: str
    link: str
    address: str


def concerns(now: Now, past: Past, links: Links) -> list[Concern]:
    """Return what needs somebody, the worst first."""
    found = [*_workers(now, links), *_queues(now, links), *_failures(past, links), *_pauses(now, links)]
    return sorted(found, key=lambda concern: ("bad", "warn", "note").index(concern.kind))


def _workers(now: Now, links: Links) -> Iterator[Concern]:
    waiting = any(queue.depth.ready for queue in now.queues)
    if not now.alive:
        text = _("No worker is running, and jobs are waiting.") if waiting else _("No worker is running.")
        yield Concern("bad" if waiting else "warn", text, _("Workers"), links.workers())
    dead = sum(worker.state == DEAD for worker in now.workers)
    if dead:
        text = ngettext(
            "%s worker has not been heard of and is taken for dead.",
            "%s workers have not been heard of and are taken for dead.",
            dead,
        )
        yield Concern("warn", text % number(dead), _("Workers"), links.workers())
    stopping = sum(worker.state == STOPPING for worker in now.workers)
    if stopping:
        text = ngettext("%s worker is stopping.", "%s workers are stopping.", stopping)
        yield Concern("note", text % number(stopping), _("Workers"), links.workers())


def _queues(now: Now, links: Links) -> Iterator[Concern]:
    for queue in now.queues:
        depth, names = queue.depth, {"queue": visible(queue.depth.queue)}
        if queue.pause is not None or (depth.waited or 0.0) <= STUCK_AFTER:
            continue
        address = links.jobs(status="ready", queue=depth.queue)
        waited = {**names, "time": age(depth.waited or 0.0)}
        if not queue.has_workers and now.alive and not depth.running:
            text = _("No worker serves the queue “%(queue)s”, where a job has waited for %(time)s.") % waited
            yield Concern("bad", text, _("Its jobs"), address)
        elif (depth.waited or 0.0) > OLD_AFTER:
            text = _("The oldest job of the queue “%(queue)s” has waited for %(time)s.") % waited
            yield Concern("warn", text, _("Its jobs"), address)


def _failures(past: Past, links: Links) -> Iterator[Concern]:
    total = past.total
    if total.bad >= FAILING_LEAST and total.bad > FAILING_SHARE * total.ended:
        text = _("%(bad)s of %(ended)s attempts in the last %(window)s failed or were lost.") % {
            "bad": number(int(total.bad)),
            "ended": number(int(total.ended)),
            "window": past.window.label,
        }
        yield Concern("warn", text, _("Dead jobs by cause"), links.causes())


def _pauses(now: Now, links: Links) -> Iterator[Concern]:
    for pause in now.pauses.values():
        said = {"queue": visible(pause.queue), "by": visible(pause.by)}
        if pause.queue == ALL_QUEUES:
            text = _("All queues are paused, by %(by)s: no job is begun.") % said
        elif pause.is_draining:
            text = (
                _("The queue “%(queue)s” drains: it is paused once it is empty. Asked for by %(by)s.") % said
            )
        else:
            text = _("The queue “%(queue)s” is paused, by %(by)s.") % said
        yield Concern("warn" if pause.queue == ALL_QUEUES else "note", text, _("Queues"), links.queues())
