"""What metrics say of the queue in one database: a constant number of short queries, whatever its size.

Everything comes from tables that the keepers maintain or from looks that stop at a limit, so one look tells
of all processes and hosts.  Who shows it, and in which format, is elsewhere: see ``prometheus``.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .backend import PgQueueBackend
from .compat import task_backends
from .depths import Depth, Scheduled
from .models import Job
from .operating import QueuePause, QueueSample, Rollup, Worker
from .pauses import Pause
from .registry import Registered
from .rollups import Totals

MOST_DEAD = 10_000
"""Dead jobs are counted up to here."""


class Figures(NamedTuple):
    """One look.  ``enqueued`` is None for a role that may not see it; ``dead`` ends at ``MOST_DEAD``."""

    enqueued: int | None
    totals: Totals
    depths: list[Depth]
    scheduled: Scheduled
    dead: int
    workers: list[Registered]
    pauses: dict[str, Pause]


def look(database: str, declared: Iterable[str] = ()) -> Figures:
    """Return how things stand; the queues in ``declared`` are there though they be empty."""
    jobs, samples = Job.objects.db_manager(database), QueueSample.objects.db_manager(database)
    found = {depth.queue: depth for depth in samples.depths()}
    names = sorted({*declared, *found})
    return Figures(
        jobs.ids_given(),
        Rollup.objects.db_manager(database).totals(),
        [found.get(name) or Depth(name, 0, 0, None, None) for name in names],
        samples.scheduled(),
        jobs.dead(MOST_DEAD),
        Worker.objects.db_manager(database).registered(),
        QueuePause.objects.db_manager(database).present(),
    )


def databases() -> Mapping[str, set[str]]:
    """Return the databases of all aliases of TASKS that are ours, with the queues that they name."""
    found: dict[str, set[str]] = {}
    for alias in task_backends.settings:
        backend = task_backends[alias]
        if isinstance(backend, PgQueueBackend):
            found.setdefault(backend.settings.database, set()).update(backend.queues)
    return found
