"""The options of a queue: ``TASKS[alias]["OPTIONS"]``, their defaults and their rules.

``Options.parse`` is total: it returns the options together with every problem found, so that the
system checks can name them all and the worker can refuse to start with the same words.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .retention import QUEUES
from .states import CANCELLED, DEAD, SUCCEEDED

DAY = 24 * 3600.0
BACKEND_PATH = "django_pgqueue.backend.PgQueueBackend"
MAX_QUEUE_NAME = 128
MAX_TASK_PATH = 255
MAX_WORKER_ID = 128
MAX_UNIQUE_KEY = 255
MAX_STEP_NAME = 200
LEAST_RESULT_LIMIT = 1024
"""Bytes that every result may take, so that small ones need not be measured."""
MAX_RELEASE = 128
MAX_CAUSE = 32
MAX_GIVEN_KEY = 246
"""Characters of a key that a caller gives; the column also holds the mark of a job that follows another."""
MAX_ATTEMPTS = 1_000_000
"""Of a budget.  What is not charged and every retry add to the attempts allowed, in a 32-bit column."""
LONGEST = 1_000_000_000
"""Seconds: more than any option of time can mean, and less than what the server's intervals can hold."""
LEAST_LOG_TAIL, MOST_LOG_TAIL = 1024, 100_000
"""Bytes: less would hold hardly a line, and a page shows no more."""
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
MOST_OF_A_KIND = 1000
"""Processes of a worker, threads or coroutines of a process."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the options: a check id's number, what it is, and what to do."""

    number: int
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Options:
    """All options of one backend alias; times in seconds."""

    database: str = "default"
    lease: float = 30.0
    heartbeat: float = 10.0
    poll_interval: float = 1.0
    notify: bool = True
    prepared_statements: bool = True
    max_attempts: int = 20
    backoff_base: float = 5.0
    backoff_cap: float = 3600.0
    timeout: float | None = None
    max_argument_bytes: int = 1_000_000
    max_result_bytes: int = 1_000_000
    redact: str | None = None
    log_tail_bytes: int = 16_384
    log_tail_level: str = "INFO"
    unknown_task_patience: float = 3600.0
    processes: int = 1
    threads: int = 4
    coroutines: int = 32
    grace: float = 25.0
    release: str = ""
    task_aliases: Mapping[str, str] = field(default_factory=dict)
    retention: Mapping[str, Any] = field(
        default_factory=lambda: {SUCCEEDED: 7 * DAY, CANCELLED: 7 * DAY, DEAD: 90 * DAY}
    )

    @classmethod
    def parse(cls, given: Any) -> tuple["Options", list[Problem]]:
        """Return the options and every problem with them; a bad value falls back to its default."""
        problems: list[Problem] = []
        if not isinstance(given, Mapping):
            problems.append(
                Problem(2, f"OPTIONS must be a dictionary, not {given!r}.", "For example {'threads': 4}.")
            )
            given = {}
        known = {f.name for f in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                problems.append(
                    Problem(
                        1, f"OPTIONS has an unknown key {name!r}.", f"Known keys: {', '.join(sorted(known))}."
                    )
                )
            elif (problem := _problem_of(name, value)) is not None:
                problems.append(problem)
            else:
                values[name] = value
        if "retention" in values:
            values["retention"] = {**cls().retention, **values["retention"]}
        options = cls(**values)
        return options, problems + timing_problems(options)


def timing_problems(options: Options) -> list[Problem]:
    """Return what is wrong between options that are each valid alone."""
    problems = []
    if options.heartbeat >= options.lease / 2:
        problems.append(
            Problem(
                3,
                f"heartbeat ({options.heartbeat:g} s) must be less than half of lease ({options.lease:g} s): "
                "one late beat would lose running jobs.",
                "Raise lease or lower heartbeat; a third of the lease is a good heartbeat.",
            )
        )
    if options.poll_interval > options.lease:
        problems.append(
            Problem(
                3,
                f"poll_interval ({options.poll_interval:g} s) must not exceed lease ({options.lease:g} s).",
                "Lower poll_interval or raise lease.",
            )
        )
    if options.backoff_cap < options.backoff_base:
        problems.append(
            Problem(
                3,
                f"backoff_cap ({options.backoff_cap:g} s) must not be below "
                f"backoff_base ({options.backoff_base:g} s).",
                "Raise backoff_cap or lower backoff_base.",
            )
        )
    return problems


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a finite number."""
    # Compared, not converted: an int may be too large for a float. NaN compares as False.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def is_time(value: Any) -> bool:
    """Return whether ``value`` can be a span of time in seconds that is not empty."""
    return is_number(value) and 0 < value <= LONGEST


def _is_pause(value: Any) -> bool:
    return is_number(value) and 0 <= value <= LONGEST


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31


def _few(value: Any) -> bool:
    return _count(value) and value <= MOST_OF_A_KIND


def _is_log_tail(value: Any) -> bool:
    return type(value) is int and (value == 0 or LEAST_LOG_TAIL <= value <= MOST_LOG_TAIL)


def _texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(word, str) for pair in value.items() for word in pair
    )


def _is_dotted_path(value: Any) -> bool:
    return isinstance(value, str) and "." in value and all(part.isidentifier() for part in value.split("."))


def is_attempts(value: Any) -> bool:
    """Return whether ``value`` can be a budget of attempts."""
    return _count(value) and value <= MAX_ATTEMPTS


ATTEMPTS_WORDS = f"a whole number from 1 to {MAX_ATTEMPTS}"
_SECONDS = (is_time, f"a number of seconds above 0, at most {LONGEST}", "10")
_PAUSE = (_is_pause, f"a number of seconds from 0 to {LONGEST}", "10")
_WHOLE = (_count, "a whole number from 1 to 2**31 - 1", "1000000")
_FEW = (_few, f"a whole number from 1 to {MOST_OF_A_KIND}", "4")
_SWITCH = (lambda value: isinstance(value, bool), "True or False", "False")
_RULES: Mapping[str, tuple[Callable[[Any], bool], str, str]] = {
    "database": (lambda value: isinstance(value, str), "an alias of DATABASES", "'default'"),
    **dict.fromkeys(("lease", "heartbeat", "poll_interval"), _SECONDS),
    **dict.fromkeys(("backoff_base", "backoff_cap", "grace", "unknown_task_patience"), _PAUSE),
    "max_attempts": (is_attempts, ATTEMPTS_WORDS, "4"),
    "max_argument_bytes": _WHOLE,
    "max_result_bytes": (
        lambda value: _count(value) and value >= LEAST_RESULT_LIMIT,
        f"a whole number from {LEAST_RESULT_LIMIT} to 2**31 - 1",
        "1000000",
    ),
    "log_tail_bytes": (
        _is_log_tail,
        f"0, or a whole number from {LEAST_LOG_TAIL} to {MOST_LOG_TAIL}",
        "16384",
    ),
    "log_tail_level": (lambda value: value in LEVELS, f"one of {', '.join(LEVELS)}", "'INFO'"),
    "redact": (
        lambda value: value is None or _is_dotted_path(value),
        "None or the dotted path of a function",
        "'shop.privacy.redact'",
    ),
    **dict.fromkeys(("processes", "threads", "coroutines"), _FEW),
    **dict.fromkeys(("notify", "prepared_statements"), _SWITCH),
    "release": (
        lambda value: isinstance(value, str) and len(value) <= MAX_RELEASE and value.isprintable(),
        f"a printable text of at most {MAX_RELEASE} characters",
        "'2026-11-30'",
    ),
    "timeout": (
        lambda value: value is None or is_time(value),
        f"None or seconds above 0, at most {LONGEST}",
        "60",
    ),
    "task_aliases": (
        _texts,
        "a mapping of old task paths to new ones",
        "{'shop.tasks.old': 'shop.tasks.new'}",
    ),
}


def _problem_of(name: str, value: Any) -> Problem | None:
    if name == "retention":
        return _retention_problem(value)
    accepts, words, example = _RULES[name]
    if accepts(value):
        return None
    return Problem(2, f"{name} must be {words}, not {value!r}.", f"For example {name!r}: {example}.")


def _retention_problem(value: Any) -> Problem | None:
    if not isinstance(value, Mapping):
        return Problem(2, f"retention must map a status to seconds, not {value!r}.", _RETENTION_HINT)
    queues = value.get(QUEUES, {})
    if not isinstance(queues, Mapping) or not all(isinstance(name, str) for name in queues):
        return Problem(
            2,
            f"retention[{QUEUES!r}] must map names of queues to retentions, not {queues!r}.",
            _RETENTION_HINT,
        )
    general = {status: seconds for status, seconds in value.items() if status != QUEUES}
    return next(
        (
            problem
            for where, ages in [
                ("retention", general),
                *((f"retention[{QUEUES!r}][{q!r}]", a) for q, a in queues.items()),
            ]
            if (problem := _ages_problem(where, ages)) is not None
        ),
        None,
    )


_RETENTION_HINT = (
    "For example {'succeeded': 604800, 'dead': None, 'queues': {'emails': {'succeeded': 3600}}}; None keeps "
    "for ever."
)


def _ages_problem(where: str, ages: Any) -> Problem | None:
    if not isinstance(ages, Mapping):
        return Problem(2, f"{where} must map a status to seconds, not {ages!r}.", _RETENTION_HINT)
    for status, seconds in ages.items():
        if status not in (SUCCEEDED, DEAD, CANCELLED):
            said = f"{where} has the status {status!r}; only ended jobs are pruned."
            return Problem(2, said, _RETENTION_HINT)
        if seconds is not None and not _is_pause(seconds):
            return Problem(
                2, f"{where} of {status!r} must be None or seconds, not {seconds!r}.", _RETENTION_HINT
            )
    return None
