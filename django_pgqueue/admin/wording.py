"""The texts of the pages: durations, JSON, and a sentence that says where a job stands.

Everything returned is plain text; the templates escape it.
"""

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.utils import formats, timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_pgqueue import states
from django_pgqueue.models import JobState

NOTHING = "–"
SIGNS = {
    states.SCHEDULED: "◷",
    states.READY: "≡",
    states.RUNNING: "▶",
    states.SUCCEEDED: "✓",
    states.DEAD: "✕",
    states.CANCELLED: "⊘",
    states.FAILED: "✕",
    states.LOST: "?",
    states.SNOOZED: "◷",
    states.RELEASED: "↩",
}
"""A sign for each state and outcome, so that colour is never the only difference."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Return text in which control characters show as escapes: some turn a line around."""
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))


def number(value: int) -> str:
    """Return a whole number as the reader's language writes it: 50,000."""
    return formats.number_format(value, force_grouping=True)


def duration(seconds: float) -> str:
    """Return a length of time in at most two units: "850 ms", "12 s", "3 min 20 s", "2 d 4 h"."""
    seconds = max(seconds, 0.0)
    if seconds < 1:
        return _("%d ms") % round(seconds * 1000)
    if seconds < 10:
        return _("%s s") % formats.number_format(seconds, 1)
    whole = int(seconds)
    if whole < _MINUTE:
        return _("%d s") % whole
    if whole < _HOUR:
        return _("%(minutes)d min %(seconds)d s") % {"minutes": whole // _MINUTE, "seconds": whole % _MINUTE}
    if whole < _DAY:
        return _("%(hours)d h %(minutes)d min") % {
            "hours": whole // _HOUR,
            "minutes": whole % _HOUR // _MINUTE,
        }
    return _("%(days)d d %(hours)d h") % {"days": whole // _DAY, "hours": whole % _DAY // _HOUR}


def sql(queries: int | None, seconds: float | None) -> str:
    """Return how much SQL an attempt asked: "12 SQL queries, 80 ms"; nothing where that is not known."""
    if queries is None:
        return ""
    text = ngettext("%(count)s SQL query, %(time)s", "%(count)s SQL queries, %(time)s", queries)
    return text % {"count": number(queries), "time": duration(seconds or 0.0)}


def age(seconds: float) -> str:
    """Return a length of time in one unit, for a narrow column: "12 s", "3 min", "2 d"."""
    whole = int(max(seconds, 0.0))
    for size, text in ((_DAY, _("%d d")), (_HOUR, _("%d h")), (_MINUTE, _("%d min"))):
        if whole >= size:
            return text % (whole // size)
    return _("%d s") % whole


def moment(value: datetime | None) -> str:
    """Return a time to the second in the reader's time zone; its name stands once on the page."""
    if value is None:
        return NOTHING
    if timezone.is_aware(value):
        value = timezone.localtime(value)
    return value.strftime("%Y-%m-%d %H:%M:%S")


def end_moment(start: datetime, end: datetime) -> str:
    """Return the time of an end, without the date when it is the start's."""
    first, last = moment(start), moment(end)
    return last[11:] if first[:10] == last[:10] else last


def since(then: datetime | None, now: datetime) -> float:
    """Return the seconds from ``then`` to ``now``; zero when ``then`` is unknown."""
    return (now - then).total_seconds() if then else 0.0


def pretty_json(text: str | None, limit: int) -> str:
    """Return JSON text indented; text longer than ``limit`` or not readable stays as it is, cut."""
    if text is None:
        return NOTHING
    if len(text) > limit:
        return (
            visible(text[:limit])
            + "\n"
            + _("[… cut here: only the first %s characters are shown]") % number(limit)
        )
    try:
        value = json.loads(text)
        return NOTHING if value in ([], {}, None) else visible(_indented(value, limit * 2) or text)
    except (ValueError, RecursionError):
        return visible(text)


def _indented(value: Any, limit: int) -> str | None:
    # Deep nesting makes indented text grow with the square of its depth: give up instead.
    parts: list[str] = []
    length = 0
    for part in _INDENTING.iterencode(value):
        parts.append(part)
        length += len(part)
        if length > limit:
            return None
    return "".join(parts)


_INDENTING = json.JSONEncoder(indent=2, ensure_ascii=False)


def short_class(path: str) -> str:
    """Return the last part of a dotted path."""
    return path.rpartition(".")[2]


def attempt_of(state: JobState) -> str:
    """Return "2 of 5": the attempt that runs, or the number of those that ended, and how many are allowed."""
    begun = state.attempts + (state.status == states.RUNNING)
    return _("%(number)d of %(allowed)d") % {"number": begun, "allowed": state.attempts_allowed}


def share_done(state: JobState) -> int | None:
    """Return the percentage that a task says it has done, from 0 to 100; None when it does not know."""
    done, total = (_reported(state).get(name) for name in ("done", "total"))
    if not isinstance(done, (int, float)) or not isinstance(total, (int, float)) or total <= 0:
        return None
    return int(min(max(done / total, 0.0), 1.0) * 100)


def progress(state: JobState) -> str:
    """Return what a task last said of its progress: "40 of 100: sending"; empty when it said nothing."""
    report = _reported(state)
    if "done" not in report:
        return ""
    numbers = f"{report['done']}"
    if report.get("total") is not None:
        numbers = _("%(done)s of %(total)s") % {"done": report["done"], "total": report["total"]}
    message = str(report.get("message") or "")
    return visible(f"{numbers}: {message}" if message else numbers)


def _reported(state: JobState) -> dict[str, Any]:
    return state.progress if isinstance(state.progress, dict) else {}


def standing(state: JobState, now: datetime) -> str:
    """Return where a job stands, in a few words for the list: "for 12 s", "in 5 min"."""
    if state.status == states.SCHEDULED:
        ahead = -since(state.run_at, now)
        return _("in %s") % age(ahead) if ahead > 0 else _("due for %s") % age(-ahead)
    if state.status == states.READY:
        return _("waiting %s") % age(since(state.run_at, now))
    if state.status == states.RUNNING:
        if state.cancel_requested_at:
            return _("asked to stop")
        share = share_done(state)
        running = _("for %s") % age(since(state.claimed_at, now))
        return running if share is None else f"{running}, {share} %"
    return _("%s ago") % age(since(state.finished_at, now))


def story(state: JobState, now: datetime) -> list[str]:
    """Return where a job stands, in whole sentences for its page."""
    return [sentence for sentence in _STORIES[state.status](state, now) if sentence]


def _scheduled(state: JobState, now: datetime) -> list[str]:
    ahead = -since(state.run_at, now)
    if ahead > 0:
        return [_("Due in %s.") % duration(ahead)]
    return [_("Due for %s; a worker makes it ready within a poll interval.") % duration(-ahead)]


def _ready(state: JobState, now: datetime) -> list[str]:
    waited = duration(since(state.run_at, now))
    return [
        _("Waiting for a worker of the queue “%(queue)s” for %(time)s.")
        % {"queue": visible(state.queue), "time": waited}
    ]


def _running(state: JobState, now: datetime) -> list[str]:
    left = -since(state.lease_expires_at, now)
    return [
        _("Attempt %(number)d runs for %(time)s on %(worker)s.")
        % {
            "number": state.attempts + 1,
            "time": duration(since(state.claimed_at, now)),
            "worker": visible(state.worker_id or ""),
        },
        _("Its lease ends in %s.") % duration(left)
        if left > 0
        else _("Its lease ended %s ago: another worker will take it over.") % duration(-left),
        _("It was asked to stop %s ago.") % duration(since(state.cancel_requested_at, now))
        if state.cancel_requested_at
        else "",
    ]


def _ended(state: JobState, now: datetime) -> list[str]:
    ago = duration(since(state.finished_at, now))
    if state.status == states.SUCCEEDED:
        return [_("Succeeded %s ago.") % ago]
    if state.status == states.CANCELLED:
        return [_("Cancelled %s ago.") % ago]
    return [
        _(
            "Died %(time)s ago after attempt %(number)d of %(allowed)d; it stays until somebody retries it "
            "or its retention is over."
        )
        % {"time": ago, "number": state.attempts, "allowed": state.attempts_allowed}
    ]


_STORIES: dict[str, Callable[[JobState, datetime], list[str]]] = {
    states.SCHEDULED: _scheduled,
    states.READY: _ready,
    states.RUNNING: _running,
    states.SUCCEEDED: _ended,
    states.DEAD: _ended,
    states.CANCELLED: _ended,
}


def seconds(value: float | None) -> str:
    """Return a setting in seconds, or a dash."""
    return NOTHING if value is None else _("%s s") % f"{value:g}"


def or_dash(value: Any) -> str:
    """Return the text of a value; a dash for none."""
    return NOTHING if value is None or value == "" else visible(str(value))
