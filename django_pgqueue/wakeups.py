"""LISTEN/NOTIFY: shortens the wait of a sleeping worker, and is never needed for correctness.

NOTIFY takes a lock that serialises the commits of the whole database, so a busy system must send
none.  A worker that falls asleep holds a shared advisory lock on its queue's key and looks once more
before it sleeps; an enqueuer, *after* its commit, tries the exclusive lock and notifies only if it
fails.  Whichever comes second sees the other.  The lock vanishes with the sleeper's connection.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connections, transaction

from . import sql
from .events import log

LOOK_BACK = 8
"""How many of a transaction's latest callbacks are searched for a notice that says the same already."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What a transaction does after its commit; ``queues`` are those with new jobs."""

    queues: frozenset[str]
    using: str

    def __call__(self) -> None:
        """Notify."""
        notify(sorted(self.queues), using=self.using)


def notify_after_commit(queues: Collection[str], *, using: str) -> None:
    """Wake the workers that sleep on these queues once the present transaction has committed.

    Once for a queue, however often its transaction enqueues.  A caller without autocommit and without
    ``atomic`` commits unseen by Django: the workers poll.
    """
    connection = connections[using]
    by_hand = not connection.in_atomic_block and not connection.get_autocommit()
    notice = Notice(frozenset(queues), using)
    if queues and not by_hand and not _is_pending(notice, connection):
        transaction.on_commit(notice, using=using, robust=True)


def _is_pending(notice: Notice, connection: Any) -> bool:
    # Django drops a callback together with the savepoint that it was made in; what is listed will be called.
    return any(
        isinstance(callback, Notice) and notice.queues <= callback.queues
        for _, callback, *_ in connection.run_on_commit[-LOOK_BACK:]
    )


def notify(queues: Collection[str], *, using: str) -> None:
    """Wake the workers that sleep on these queues; polling finds the jobs if this fails."""
    try:
        with connections[using].cursor() as cursor:
            cursor.execute(sql.NOTIFY_SLEEPERS, {"queues": list(queues)})
    except DatabaseError as error:
        log("notify_failed", logging.WARNING, queues=",".join(queues), error=error)
