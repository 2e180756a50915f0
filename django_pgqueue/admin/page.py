"""What the page of one job shows, gathered in a constant number of short queries.

Texts are cut by the database before they travel: a job with 5 MB of arguments or a thousand
attempts opens as fast as any other.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import router
from django.db.models import F, TextField
from django.db.models.functions import Cast, Left, Now
from django.utils.translation import gettext as _

from django_pgqueue import states
from django_pgqueue.durable import JobStep
from django_pgqueue.exceptions import UnknownTask
from django_pgqueue.models import Attempt, Job, JobState, Outcome, Status
from django_pgqueue.readings import LastError
from django_pgqueue.redaction import Redactor

from . import tracebacks, wording
from .breaking import breakable
from .wording import NOTHING, moment

UNKNOWN_TASK = f"{UnknownTask.__module__}.{UnknownTask.__qualname__}"
ATTEMPTS_PER_PAGE = 25
MOST_STEPS = 100
MOST_JSON = 100_000
MOST_TEXT = 100_000
"""Characters of a value and of a text that are shown; the queue keeps 64 k of a traceback."""


@dataclass(frozen=True, slots=True)
class Pill:
    """A state or an outcome as a coloured word with a sign."""

    kind: str
    sign: str
    label: str


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt as the table shows it."""

    number: int
    pill: Pill
    started: str
    finished: str
    took: str
    worker: str
    place: str
    exception_class: str
    message: str
    frames: Sequence[tracebacks.Frame]
    traceback: str
    return_value: str
    sql: str
    log_tail: str
    is_latest: bool

    @property
    def has_more(self) -> bool:
        """Return whether there is something to say below the row."""
        return bool(self.traceback or self.return_value or self.sql or self.log_tail)


@dataclass(frozen=True, slots=True)
class AttemptPage:
    """A page of the attempts of a job, newest first."""

    rows: list[AttemptRow]
    found: list[Any]
    total: int
    number: int
    pages: int

    @property
    def newer(self) -> int | None:
        """Return the number of the page with newer attempts."""
        return self.number - 1 if self.number > 1 else None

    @property
    def older(self) -> int | None:
        """Return the number of the page with older attempts."""
        return self.number + 1 if self.number < self.pages else None


def state_of(job: Job) -> JobState | None:
    """Return the state of a job; None when it is gone (pruned while somebody looked)."""
    return getattr(job, "state", None)


def status_pill(status: str) -> Pill:
    """Return the pill of a state."""
    return Pill(status, wording.SIGNS[status], str(Status(status).label))


def outcome_pill(outcome: str) -> Pill:
    """Return the pill of an outcome."""
    return Pill(outcome, wording.SIGNS[outcome], str(Outcome(outcome).label))


def facts(job: Job) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the fields of a job and its state in groups: a title, and names with values."""
    state = state_of(job)
    groups = [
        (_("What"), _what(job, state)),
        (_("When"), _when(job, state)),
        (_("Retry policy"), _policy(job, state)),
    ]
    return [*groups, (_("Lease"), _lease(state))] if state else groups


def _what(job: Job, state: JobState | None) -> list[tuple[str, str]]:
    return [
        (_("Task"), wording.visible(job.task_path)),
        (_("Queue"), wording.visible(state.queue if state else job.queue)),
        (_("Priority"), str(state.priority if state else job.priority)),
        (_("Backend"), wording.visible(job.backend)),
        (_("Unique key"), wording.or_dash(state and state.unique_key)),
    ]


def _when(job: Job, state: JobState | None) -> list[tuple[str, str]]:
    first = [(_("Enqueued"), moment(job.enqueued_at)), (_("Not before"), moment(job.run_after))]
    if state is None:
        return first
    return [
        *first,
        (_("Due"), moment(state.run_at)),
        (_("Claimed"), moment(state.claimed_at)),
        (_("Asked to stop"), moment(state.cancel_requested_at)),
        (_("Ended"), moment(state.finished_at)),
    ]


def _policy(job: Job, state: JobState | None) -> list[tuple[str, str]]:
    return [
        *([(_("Attempts"), wording.attempt_of(state))] if state else []),
        (_("Budget of attempts"), str(job.max_attempts)),
        (_("Backoff from"), wording.seconds(job.backoff_base)),
        (_("Backoff up to"), wording.seconds(job.backoff_cap)),
        (_("Timeout"), wording.seconds(job.timeout)),
    ]


def _lease(state: JobState) -> list[tuple[str, str]]:
    return [
        (_("Worker"), wording.or_dash(state.worker_id)),
        (_("Ends"), moment(state.lease_expires_at)),
        (_("Version"), str(state.lease_version)),
        (_("Token"), wording.or_dash(state.lease_token)),
        (_("Position in the queue"), wording.or_dash(state.position)),
    ]


@dataclass(frozen=True, slots=True)
class Payload:
    """What a job was given, as it may be shown: titles with readable JSON, and its metadata."""

    texts: list[tuple[str, str]]
    metadata: dict[str, Any]


def payload(job: Job, redactor: Redactor) -> Payload:
    """Return the arguments and the metadata of a job; the redactor then knows what to hide elsewhere, too."""
    names = ("args", "kwargs", "metadata")
    shown = {f"{name}_text": Left(Cast(name, TextField()), MOST_JSON + 1) for name in names}
    row = _jobs().filter(pk=job.pk).values_list(*shown.values()).first() or (None, None, None)
    args, kwargs = _arguments(row[0], row[1], redactor)
    metadata = redactor.json_text("metadata", row[2])
    titles = (_("Arguments"), _("Keyword arguments"), _("Metadata"))
    texts = [wording.pretty_json(text, MOST_JSON) for text in (args, kwargs, metadata)]
    return Payload(list(zip(titles, texts, strict=True)), _loaded(row[2], dict) or {})


def _arguments(args: str | None, kwargs: str | None, redactor: Redactor) -> tuple[str | None, str | None]:
    given, named = _loaded(args, list), _loaded(kwargs, dict)
    if given is None or named is None:  # cut, or gone
        return redactor.json_text("args", args), redactor.json_text("kwargs", kwargs)
    shown_args, shown_kwargs = redactor.arguments(given, named)
    return json.dumps(shown_args, ensure_ascii=False), json.dumps(shown_kwargs, ensure_ascii=False)


def _loaded(text: str | None, kind: type) -> Any:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of a job that was done, as the table shows it."""

    name: str
    at: str
    result: str


def steps(job: Job, redactor: Redactor) -> list[StepRow]:
    """Return the steps that a job has done, in the order of time, a hundred at most."""
    shown = {"result_text": Left(Cast("result", TextField()), MOST_JSON + 1)}
    found: Any = JobStep.objects.using(router.db_for_write(Job)).filter(job_id=job.pk).defer("result")
    return [
        StepRow(
            wording.visible(step.name),
            moment(step.recorded_at),
            wording.pretty_json(redactor.json_text(step.name, step.result_text), MOST_JSON),
        )
        for step in found.annotate(**shown).order_by("recorded_at", "name")[:MOST_STEPS]
    ]


def attempts(job: Job, now: datetime, wanted: str, redactor: Redactor) -> AttemptPage:
    """Return the page ``wanted`` of the attempts of a job; the newest for a number that makes no sense.

    Attempts are numbered from one on without a gap, so a page is a range of numbers.
    """
    state = state_of(job)
    total = state.attempts if state else ATTEMPTS_PER_PAGE
    pages = max(-(-total // ATTEMPTS_PER_PAGE), 1)
    number = int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 10 else 1
    number = min(max(number, 1), pages)
    last = total - (number - 1) * ATTEMPTS_PER_PAGE
    found = list(_attempts(job.pk).filter(number__lte=last, number__gt=last - ATTEMPTS_PER_PAGE))
    rows = [
        _row(attempt, redactor, is_latest=number == 1 and not place) for place, attempt in enumerate(found)
    ]
    if number == 1 and state and state.status == states.RUNNING:
        rows.insert(0, _running_row(state, now))
    return AttemptPage(rows, found[::-1] if number == 1 else [], total, number, pages)


def _attempts(job_id: int) -> Any:
    texts = ("message", "traceback", "log_tail")
    shown = {f"{name}_text": Left(F(name), MOST_TEXT + 1) for name in texts}
    shown["return_text"] = Left(Cast("return_value", TextField()), MOST_JSON + 1)
    queryset = Attempt.objects.using(router.db_for_write(Job)).filter(job_id=job_id).order_by("-number")
    return queryset.defer(*texts, "return_value").annotate(**shown)


def _row(attempt: Any, redactor: Redactor, *, is_latest: bool) -> AttemptRow:
    succeeded = attempt.outcome == states.SUCCEEDED
    message = redactor.text("message", attempt.message_text[:MOST_TEXT])
    traceback = redactor.text("traceback", attempt.traceback_text[:MOST_TEXT])
    returned = redactor.json_text("return_value", attempt.return_text) if succeeded else None
    return AttemptRow(
        number=attempt.number,
        pill=outcome_pill(attempt.outcome),
        started=moment(attempt.started_at),
        finished=wording.end_moment(attempt.started_at, attempt.finished_at),
        took=wording.duration(wording.since(attempt.started_at, attempt.finished_at)),
        worker=wording.visible(attempt.worker_id),
        place=_place(attempt),
        exception_class=breakable(attempt.exception_class),
        message=wording.visible(message),
        frames=tracebacks.own_frames(wording.visible(traceback)),
        traceback=wording.visible(traceback),
        return_value=wording.pretty_json(returned, MOST_JSON) if succeeded else "",
        sql=wording.sql(attempt.sql_queries, attempt.sql_seconds),
        log_tail=wording.visible(redactor.text("log_tail", attempt.log_tail_text[:MOST_TEXT])),
        is_latest=is_latest,
    )


def _place(attempt: Any) -> str:
    return (
        _("process %(pid)d on %(host)s") % {"pid": attempt.pid, "host": wording.visible(attempt.host)}
        if attempt.pid
        else ""
    )


def _running_row(state: JobState, now: datetime) -> AttemptRow:
    return AttemptRow(
        number=state.attempts + 1,
        pill=status_pill(states.RUNNING),
        started=moment(state.claimed_at),
        finished=NOTHING,
        took=wording.duration(wording.since(state.claimed_at, now)),
        worker=wording.visible(state.worker_id or ""),
        place="",
        exception_class="",
        message="",
        frames=(),
        traceback="",
        return_value="",
        sql="",
        log_tail="",
        is_latest=False,
    )


def last_error(job: Job, redactor: Redactor) -> LastError | None:
    """Return the last error of a job, ready to be read."""
    error = Job.objects.last_errors([job.pk]).get(job.pk)
    if error is None:
        return None
    shown = readable(error, redactor)
    return shown._replace(exception_class=breakable(shown.exception_class))


def readable(error: LastError, redactor: Redactor) -> LastError:
    """Return an error as it may be shown, with words for a person if the queue itself put the job back."""
    if error.exception_class == UNKNOWN_TASK:
        return error._replace(message=_("no worker knows this task"))
    return error._replace(
        exception_class=wording.visible(error.exception_class),
        message=wording.visible(redactor.text("message", error.message)),
    )


def narrow_jobs() -> Any:
    """Return the jobs with their states and the database's time, without the wide columns."""
    return _jobs().select_related("state").defer("args", "kwargs", "metadata").annotate(now=Now())


def _jobs() -> Any:
    return Job.objects.using(router.db_for_write(Job))
