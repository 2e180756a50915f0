"""Tasks that end in each way a monitor can meet."""

import os
import signal
from pathlib import Path
from typing import Any

from django.tasks import TaskContext

from django_pgqueue import Backoff, task

QUICKLY = Backoff(base=0.1, cap=0.1)


@task(queue_name="emails", priority=7)
def give(value: Any, *, twice: bool = False) -> Any:
    return [value, value] if twice else value


@task(takes_context=True, max_attempts=3, backoff=QUICKLY)
def fail_twice(context: TaskContext) -> int:
    if context.attempt < 3:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt


@task(max_attempts=2, backoff=QUICKLY)
def fail_until_repaired(repaired: str) -> str:
    """Fail while no file of this name is there."""
    if not Path(repaired).exists():
        raise LookupError("not repaired yet")
    return "repaired"


@task(takes_context=True, max_attempts=2)
def die_once(context: TaskContext) -> int:
    if context.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return context.attempt


@task(max_attempts=1)
def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
