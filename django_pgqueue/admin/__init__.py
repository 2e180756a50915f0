"""The operator's pages inside Django's admin: see every job, retry, cancel and run what may be.

The rooms: ``jobs`` is the ModelAdmin of jobs; ``changelist`` and ``filters`` make its list, ``jobpage`` and
``page`` the page of one job, ``causes`` the page of dead jobs by cause, ``repairs`` what an operator may do
about jobs, ``bulk`` the same to all that a filter means, ``confirmation`` the page that asks first,
``rights`` who may do what, ``wording`` the texts.  ``operating`` has the overview, the queues and the
workers.

What they promise: nothing that the queue owns can be edited; jobs change through the verbs of
``Job.objects`` only, by POST, and every change is in the admin log; a GET changes nothing and locks
nothing; no page counts or sorts the whole table.
"""

from .bulk import BulkOperationAdmin
from .causes import DeadJobAdmin
from .jobs import JobAdmin
from .operating import OverviewAdmin, QueueAdmin, WorkerAdmin

__all__ = ["BulkOperationAdmin", "DeadJobAdmin", "JobAdmin", "OverviewAdmin", "QueueAdmin", "WorkerAdmin"]
