"""The project's tasks; nothing in them changes."""

from typing import Any

import django

if django.VERSION >= (6, 0):
    from django.tasks import TaskContext, task
else:
    from django_tasks import TaskContext, task


@task
def give(*args: Any, **kwargs: Any) -> list[Any]:
    return [list(args), kwargs]


@task(queue_name="emails", priority=5, takes_context=True)
def send(context: TaskContext, address: str) -> str:
    return f"{address} {context.attempt}"


@task
def fail() -> None:
    raise LookupError("failed as ever")


@task
async def wait() -> str:
    return "waited"
