"""The operator's pages inside Django's admin: see every job, retry, cancel and run what may be.

The rooms: ``jobs`` is the ModelAdmin and puts the others together; ``changelist``, ``filters`` and
``paginator`` make the list, ``page`` the page of one job, ``repairs`` what an operator may do about
jobs, ``confirmation`` the page that asks first, ``wording`` the texts.
``operating`` has the overview, the queues and the workers.

What they promise: nothing that the queue owns can be edited; jobs change through the verbs of
``Job.objects`` only, by POST, and every change is in the admin log; a GET changes nothing and locks
nothing; no page counts or sorts the whole table.
"""

from .jobs import JobAdmin
from .operating import OverviewAdmin, QueueAdmin, WorkerAdmin

__all__ = ["JobAdmin", "OverviewAdmin", "QueueAdmin", "WorkerAdmin"]
