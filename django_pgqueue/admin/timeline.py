"""What happened to a job in the order of time: when it waited, who ran it, how long, how that ended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from django_pgqueue import states
from django_pgqueue.models import JobState, Outcome

from . import wording

WIDTH, HEIGHT = 1000, 12
LEAST = 6
"""Parts of the thousand that a short stretch gets at least, so that it can be seen."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in a job's life: ``kind`` is a state or an outcome."""

    kind: str
    since: datetime
    until: datetime
    what: str
    who: str = ""

    @property
    def seconds(self) -> float:
        """Its length."""
        return max((self.until - self.since).total_seconds(), 0.0)


@dataclass(frozen=True, slots=True)
class Line:
    """A stretch as the page shows it."""

    kind: str
    sign: str
    at: str
    what: str
    took: str
    who: str


def stretches(job: Any, state: JobState | None, attempts: Sequence[Any], now: datetime) -> list[Stretch]:
    """Return the stretches of a job with these attempts, its latest, oldest first."""
    return list(_stretches(job, state, attempts, now))


def _stretches(job: Any, state: JobState | None, attempts: Sequence[Any], now: datetime) -> Iterator[Stretch]:
    is_whole = not attempts or attempts[0].number == 1
    since = job.enqueued_at if is_whole else attempts[0].started_at
    for attempt in attempts:
        if attempt.started_at > since:
            yield Stretch(states.READY, since, attempt.started_at, _("waited"))
        since = attempt.finished_at
        yield Stretch(
            attempt.outcome,
            attempt.started_at,
            attempt.finished_at,
            _("attempt %(number)d: %(outcome)s")
            % {"number": attempt.number, "outcome": str(Outcome(attempt.outcome).label).lower()},
            wording.visible(attempt.worker_id),
        )
    if state is not None and state.status in states.LIVE:
        yield from _present(state, since, now)


def _present(state: JobState, since: datetime, now: datetime) -> Iterator[Stretch]:
    if state.status != states.RUNNING or state.claimed_at is None:
        waits = _("waits until its time") if state.status == states.SCHEDULED else _("waits")
        yield Stretch(state.status, since, max(now, since), waits)
        return
    if state.claimed_at > since:
        yield Stretch(states.READY, since, state.claimed_at, _("waited"))
    runs = _("attempt %d runs") % (state.attempts + 1)
    yield Stretch(states.RUNNING, state.claimed_at, now, runs, wording.visible(state.worker_id or ""))


def lines(found: Sequence[Stretch]) -> list[Line]:
    """Return the stretches as lines of text."""
    return [
        Line(
            kind=stretch.kind,
            sign=wording.SIGNS[stretch.kind],
            at=wording.moment(stretch.since),
            what=stretch.what,
            took=wording.duration(stretch.seconds),
            who=stretch.who,
        )
        for stretch in found
    ]


def picture(found: Sequence[Stretch]) -> SafeString | str:
    """Return a strip with a part for each stretch, as wide as it was long; empty for nothing to show."""
    total = sum(stretch.seconds for stretch in found)
    if total <= 0:
        return ""
    room = WIDTH - LEAST * len(found)
    place = 0.0
    parts = []
    for stretch in found:
        width = LEAST + max(room, 0) * stretch.seconds / total
        told = f"{stretch.what}, {wording.duration(stretch.seconds)}"
        parts.append((stretch.kind, f"{place:.1f}", f"{max(width - 1, 1):.1f}", HEIGHT, told))
        place += width
    drawn = format_html_join(
        "", '<rect class="pgq-fill-{}" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>', parts
    )
    label = _("From %(first)s to %(last)s") % {
        "first": wording.moment(found[0].since),
        "last": wording.moment(found[-1].until),
    }
    return format_html(
        '<svg class="pgq-strip" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        "{}</svg>",
        f"{max(place, 1):.1f}",
        HEIGHT,
        label,
        drawn,
    )
