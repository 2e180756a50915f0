"""django_pgqueue: background jobs on the PostgreSQL a Django project already has.

The public API is what ``__all__`` lists.  Importing this package touches neither the app registry
nor the settings; the names resolve on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .exceptions import Cancel as Cancel
    from .exceptions import DuplicateJob as DuplicateJob
    from .exceptions import LeaseLost as LeaseLost
    from .exceptions import Retry as Retry
    from .exceptions import Snooze as Snooze
    from .exceptions import TaskTimeout as TaskTimeout
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
    "DuplicateJob",
    "LeaseLost",
    "PgQueueTask",
    "Retry",
    "Snooze",
    "TaskTimeout",
    "enqueue_many",
    "task",
]

_HOME = {
    "Backoff": "retries",
    "Cancel": "exceptions",
    "DuplicateJob": "exceptions",
    "LeaseLost": "exceptions",
    "Call": "tasks",
    "PgQueueTask": "tasks",
    "enqueue_many": "tasks",
    "Retry": "exceptions",
    "Snooze": "exceptions",
    "TaskTimeout": "exceptions",
    "task": "tasks",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
