"""One task made by each decorator that such a project can meet."""

from typing import Any

import django_tasks

import django_pgqueue
from tests.clients.apis import apis


@next(iter(apis().values())).task
def native(value: Any) -> Any:
    return value


@django_tasks.task
def backport(value: Any) -> Any:
    return value


@django_pgqueue.task(max_attempts=1)
def ours(value: Any) -> Any:
    return value
