"""django_pgqueue: background jobs on the PostgreSQL a Django project already has.

The public API is what ``__all__`` lists.  Importing this package touches neither the app registry
nor the settings; the names resolve on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compat import InvalidTask as InvalidTask
    from .exceptions import Cancel as Cancel
    from .exceptions import DirectWrite as DirectWrite
    from .exceptions import DuplicateJob as DuplicateJob
    from .exceptions import InvalidArguments as InvalidArguments
    from .exceptions import LeaseExpired as LeaseExpired
    from .exceptions import LeaseLost as LeaseLost
    from .exceptions import QueueError as QueueError
    from .exceptions import Retry as Retry
    from .exceptions import Snooze as Snooze
    from .exceptions import TaskTimeout as TaskTimeout
    from .exceptions import UnknownTask as UnknownTask
    from .exceptions import UnstorableResult as UnstorableResult
    from .exceptions import WorkerDied as WorkerDied
    from .retries import Backoff as Backoff
    from .tasks import Call as Call
    from .tasks import PgQueueTask as PgQueueTask
    from .tasks import enqueue_many as enqueue_many
    from .tasks import task as task

__version__ = "0.1.0"
__all__ = [
    "Backoff",
    "Call",
    "Cancel",
    "DirectWrite",
    "DuplicateJob",
    "InvalidArguments",
    "InvalidTask",
    "LeaseExpired",
    "LeaseLost",
    "PgQueueTask",
    "QueueError",
    "Retry",
    "Snooze",
    "TaskTimeout",
    "UnknownTask",
    "UnstorableResult",
    "WorkerDied",
    "enqueue_many",
    "task",
]

_HOME = {
    "Backoff": "retries",
    "Call": "tasks",
    "Cancel": "exceptions",
    "DirectWrite": "exceptions",
    "DuplicateJob": "exceptions",
    "InvalidArguments": "exceptions",
    "InvalidTask": "compat",
    "LeaseExpired": "exceptions",
    "LeaseLost": "exceptions",
    "PgQueueTask": "tasks",
    "QueueError": "exceptions",
    "Retry": "exceptions",
    "Snooze": "exceptions",
    "TaskTimeout": "exceptions",
    "UnknownTask": "exceptions",
    "UnstorableResult": "exceptions",
    "WorkerDied": "exceptions",
    "enqueue_many": "tasks",
    "task": "tasks",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
