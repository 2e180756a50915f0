"""The job that runs here: known to whatever its task calls, in its thread and in its coroutine.

It travels as a context variable: into coroutines, and with ``sync_to_async`` into threads and back.  A thread
that a task starts by itself knows of no job, unless it is given a copy of the context.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from .records import Claimed

if TYPE_CHECKING:
    from .noting import Notebook


class Running(Protocol):
    """What is known of the attempt that runs; ``task`` is None until it has been found."""

    job: Claimed
    started: float | None
    task: Any
    notebook: "Notebook | None"

    @property
    def number(self) -> int:
        """The number of the attempt, from 1."""
        ...


_running: ContextVar[Running | None] = ContextVar("django_pgqueue_running", default=None)

# The variable's own methods: a worker calls the second one for every job.
current = _running.get
enter = _running.set


@contextmanager
def within(execution: Running | None) -> Generator[None]:
    """Let this one run here meanwhile; None: nobody."""
    token = _running.set(execution)
    try:
        yield
    finally:
        _running.reset(token)
