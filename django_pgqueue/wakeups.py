"""LISTEN/NOTIFY: shortens the wait of a sleeping worker, and is never needed for correctness.

NOTIFY takes a lock that serialises the commits of the whole database, so a busy system must send
none.  A worker that falls asleep holds a shared advisory lock on its queue's key; an enqueuer notifies
only when somebody does.  The lock vanishes with the sleeper's connection.

The statement that inserts a single job looks for sleepers on its way, which saves a round trip.  It looks
*before* the commit, so whoever falls asleep in between would miss the job: a worker that has just fallen
asleep therefore goes on looking for twice ``SEEN_FOR``, and an enqueuer whose commit came later than
``SEEN_FOR`` looks again.  All others look after their commit.  Whichever comes second sees the other.
"""

import logging
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connections, transaction

from . import sql
from .events import log

SEEN_FOR = 0.5
"""Seconds for which it counts that a statement saw nobody asleep."""
LOOK_BACK = 8
"""How many of a transaction's latest callbacks are searched for a notice that says the same already."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What a transaction does after its commit; ``queues`` are those with new jobs.

    ``sleepers``: whether somebody slept on them at ``seen_at`` (monotonic, in seconds); None: not known.
    """

    queues: frozenset[str]
    using: str
    sleepers: bool | None = None
    seen_at: float = float("-inf")

    def __call__(self) -> None:
        """Notify, unless nobody can have slept long enough to need it; look first what may have changed."""
        seen = self.sleepers if time.monotonic() - self.seen_at <= SEEN_FOR else None
        if seen is not False:
            notify(sorted(self.queues), using=self.using, look=seen is None)

    def stands_for(self, other: "Notice") -> bool:
        """Return whether the other has nothing to add to this one."""
        return other.queues <= self.queues and (self.sleepers is not False or other.sleepers is False)


def notify_after_commit(
    queues: Collection[str], *, using: str, sleepers: bool | None = None, seen_at: float = float("-inf")
) -> None:
    """Wake the workers that sleep on these queues once the present transaction has committed.

    Once for a queue, however often its transaction enqueues.  ``sleepers``, ``seen_at``: see ``Notice``.  A
    caller without autocommit and without ``atomic`` commits unseen by Django: the workers poll.
    """
    connection = connections[using]
    by_hand = not connection.in_atomic_block and not connection.get_autocommit()
    notice = Notice(frozenset(queues), using, sleepers, seen_at)
    if queues and not by_hand and not _is_pending(notice, connection):
        transaction.on_commit(notice, using=using, robust=True)


def _is_pending(notice: Notice, connection: Any) -> bool:
    # Django drops a callback together with the savepoint that it was made in; what is listed will be called.
    return any(
        isinstance(callback, Notice) and callback.stands_for(notice)
        for _, callback, *_ in connection.run_on_commit[-LOOK_BACK:]
    )


def notify(queues: Collection[str], *, using: str, look: bool = True) -> None:
    """Wake the workers that sleep on these queues; polling finds the jobs if this fails.

    ``look``: send nothing for a queue on which nobody sleeps.
    """
    try:
        with connections[using].cursor() as cursor:
            cursor.execute(sql.NOTIFY_SLEEPERS if look else sql.NOTIFY, {"queues": list(queues)})
    except DatabaseError as error:
        log("notify_failed", logging.WARNING, queues=",".join(queues), error=error)
