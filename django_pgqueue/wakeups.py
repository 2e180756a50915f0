"""LISTEN/NOTIFY: shortens the wait of a sleeping worker, and is never needed for correctness.

NOTIFY takes a lock that serialises the commits of the whole database, so a busy system must send
none.  A worker that falls asleep holds a shared advisory lock on its queue's key and looks once more
before it sleeps; an enqueuer, *after* its commit, tries the exclusive lock and notifies only if it
fails.  Whichever comes second sees the other.  The lock vanishes with the sleeper's connection.
"""

import logging
from collections.abc import Sequence

from django.db import DatabaseError, connections, transaction

from . import sql
from .events import log


def notify_after_commit(queues: Sequence[str], *, using: str) -> None:
    """Wake the workers that sleep on these queues once the present transaction has committed."""
    if queues:
        transaction.on_commit(lambda: notify(queues, using=using), using=using, robust=True)


def notify(queues: Sequence[str], *, using: str) -> None:
    """Wake the workers that sleep on these queues; polling finds the jobs if this fails."""
    try:
        with connections[using].cursor() as cursor:
            cursor.execute(sql.NOTIFY_SLEEPERS, {"queues": list(queues)})
    except DatabaseError as error:
        log("notify_failed", logging.WARNING, queues=",".join(queues), error=error)
