"""Bugs to put into a run, so that it can be seen to fail: each removes one thing that a promise rests on.

``python -m tests.chaos --bug NAME`` loads one into every process of the run. A bug that finds nothing to
remove any more raises, so that it cannot pass unnoticed for a harness that finds nothing.
"""

from collections.abc import Callable
from typing import Any

VARIABLE = "CHAOS_BUG"


def rescue_too_early() -> None:
    """Rescue takes jobs whose lease still has more than two of its three seconds to go."""
    right = "AND lease_expires_at <"
    _replace_in_statements(right, "AND lease_expires_at - interval '2.4 s' <", least=1)


def no_fence() -> None:
    """A settle does not ask who holds the job."""
    _replace_in_statements("AND state.lease_version = given.lease_version", "", least=4)
    _replace_in_statements("AND state.lease_token = given.lease_token", "", least=4)


def enqueue_apart() -> None:
    """Enqueueing has a connection of its own, and so takes no part in the caller's transaction."""
    from django_pgqueue.connections import connect
    from django_pgqueue.managers import JobManager

    own: list[Any] = []

    def apart(self: JobManager, job: Any, *, connection: Any = None, **options: Any) -> Any:
        own[:] = own if own and not own[0].closed else [connect("default", "apart")]
        return enqueue(self, job, connection=own[0], **options)

    enqueue, JobManager.enqueue = JobManager.enqueue, apart  # type: ignore[method-assign]


BUGS: dict[str, Callable[[], None]] = {
    "rescue-too-early": rescue_too_early,
    "no-fence": no_fence,
    "enqueue-apart": enqueue_apart,
}


def load(name: str) -> None:
    """Put a bug in; raises LookupError when there is nothing left that it could break."""
    BUGS[name]()


def _replace_in_statements(old: str, new: str, *, least: int) -> None:
    """Change the statements wherever they are kept by name or in a table."""
    from django_pgqueue import holding, sql

    changed = 0
    for place in (vars(sql), vars(holding), vars(holding)["_STATEMENT_OF"]):
        for key, value in list(place.items()):
            if isinstance(value, str) and old in value:
                place[key] = value.replace(old, new)
                changed += 1
    if changed < least:
        raise LookupError(f"{old!r} stands in {changed} statements, not in {least}: this bug breaks nothing")
