"""The pages for those who operate the queue: the overview, the queues, the workers.

``figures`` gathers what the overview shows, ``attention`` says what of it needs somebody, ``charts`` works
out the pictures, ``pages`` is what the three pages share; ``overview``, ``queues`` and ``workers`` are their
ModelAdmins.

What they promise: the numbers come from rollups, samples and bounded looks at partial indexes, never from a
count of history, and each says what it covers; a GET changes nothing; every act needs its own permission, is
done by POST and stands in the admin log.
"""

from .overview import OverviewAdmin
from .queues import QueueAdmin
from .workers import WorkerAdmin

__all__ = ["OverviewAdmin", "QueueAdmin", "WorkerAdmin"]
