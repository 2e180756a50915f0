"""The state machine of a job, whole, on one page.

``TRANSITIONS`` is the single source: the verbs of the manager, the statements in ``sql``, the
diagram in the documentation and the exhaustive tests are all compared with it.  Every statement
re-checks its own precondition; a verb applied to a state that it does not list changes nothing.
"""

from dataclasses import dataclass

SCHEDULED = "scheduled"
READY = "ready"
RUNNING = "running"
SUCCEEDED = "succeeded"
DEAD = "dead"
CANCELLED = "cancelled"

STATUSES = (SCHEDULED, READY, RUNNING, SUCCEEDED, DEAD, CANCELLED)
LIVE = frozenset({SCHEDULED, READY, RUNNING})
ENDED = frozenset({SUCCEEDED, DEAD, CANCELLED})

# Outcomes of an attempt.
FAILED = "failed"
LOST = "lost"
SNOOZED = "snoozed"
RELEASED = "released"
OUTCOMES = (SUCCEEDED, FAILED, LOST, SNOOZED, RELEASED, CANCELLED)
CHARGED = frozenset({FAILED, LOST})
"""Outcomes that spend the job's budget of attempts."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One arrow: ``verb`` takes a job from ``source`` to ``target``.

    ``source`` is ``None`` for a job that does not exist yet, ``target`` is ``None`` for one that
    is gone.  ``outcome`` is the outcome of the attempt row that the arrow writes, if it writes one.
    """

    verb: str
    source: str | None
    target: str | None
    outcome: str | None = None
    when: str = ""


TRANSITIONS = (
    Transition("enqueue", None, READY),
    Transition("enqueue", None, SCHEDULED, when="run_after lies ahead"),
    Transition("replace", SCHEDULED, SCHEDULED, when="same unique key, run_after lies ahead"),
    Transition("replace", SCHEDULED, READY, when="same unique key"),
    Transition("replace", READY, READY, when="same unique key"),
    Transition("replace", READY, SCHEDULED, when="same unique key, run_after lies ahead"),
    Transition("promote", SCHEDULED, READY, when="run_at has come"),
    Transition("claim", READY, RUNNING),
    Transition("renew", RUNNING, RUNNING),
    Transition("complete", RUNNING, SUCCEEDED, SUCCEEDED),
    Transition("consume", RUNNING, None, when="it succeeded, and is not to be kept"),
    Transition("fail", RUNNING, SCHEDULED, FAILED, when="budget left: backoff"),
    Transition("fail", RUNNING, DEAD, FAILED, when="budget spent or error is final"),
    Transition("fail", RUNNING, CANCELLED, FAILED, when="asked to cancel"),
    Transition("snooze", RUNNING, SCHEDULED, SNOOZED),
    Transition("snooze", RUNNING, CANCELLED, SNOOZED, when="asked to cancel"),
    Transition("release", RUNNING, READY, RELEASED),
    Transition("release", RUNNING, CANCELLED, RELEASED, when="asked to cancel"),
    Transition("release", RUNNING, READY, when="it never started"),
    Transition("release", RUNNING, CANCELLED, when="it never started, asked to cancel"),
    Transition("rescue", RUNNING, SCHEDULED, LOST, when="lease over, budget left: backoff"),
    Transition("rescue", RUNNING, DEAD, LOST, when="lease over, budget spent"),
    Transition("rescue", RUNNING, CANCELLED, LOST, when="lease over, asked to cancel"),
    Transition("rescue_worker", RUNNING, SCHEDULED, LOST, when="its child died, budget left: backoff"),
    Transition("rescue_worker", RUNNING, DEAD, LOST, when="its child died, budget spent"),
    Transition("rescue_worker", RUNNING, CANCELLED, LOST, when="its child died, asked to cancel"),
    Transition("rescue_worker", RUNNING, READY, when="its child died, it never started"),
    Transition("rescue_worker", RUNNING, CANCELLED, when="its child died, it never started, asked to cancel"),
    Transition("cancel", SCHEDULED, CANCELLED),
    Transition("cancel", READY, CANCELLED),
    Transition("cancel", RUNNING, RUNNING, when="its worker is asked to stop"),
    Transition("cancel", RUNNING, CANCELLED, CANCELLED, when="its worker agrees"),
    Transition("retry", DEAD, READY),
    Transition("retry", CANCELLED, READY),
    Transition("move", SCHEDULED, SCHEDULED, when="to another queue"),
    Transition("move", READY, READY, when="to another queue"),
    Transition("reprioritise", SCHEDULED, SCHEDULED, when="to another priority"),
    Transition("reprioritise", READY, READY, when="to another priority"),
    Transition("discard", DEAD, None, when="somebody gives it up"),
    Transition("discard", CANCELLED, None, when="somebody gives it up"),
    Transition("prune", SUCCEEDED, None, when="past retention"),
    Transition("prune", DEAD, None, when="past retention"),
    Transition("prune", CANCELLED, None, when="past retention"),
)

VERBS = tuple(dict.fromkeys(transition.verb for transition in TRANSITIONS))


def sources(verb: str) -> frozenset[str | None]:
    """Return the states that ``verb`` may act on (``None`` stands for "no such job yet")."""
    return frozenset(t.source for t in TRANSITIONS if t.verb == verb)


def targets(verb: str, source: str | None) -> frozenset[str | None]:
    """Return the states in which ``verb`` may leave a job that was in ``source``."""
    return frozenset(t.target for t in TRANSITIONS if t.verb == verb and t.source == source)
