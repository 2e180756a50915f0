"""A task with a context gets it from the worker: it is not a parameter of the calls."""

from typing import Any, assert_type

from django.tasks import TaskContext

from django_pgqueue import task
from django_pgqueue.context import JobContext


@task(takes_context=True)
def export(context: JobContext, table: str, *, limit: int | None = None) -> list[int]:
    context.progress(1, limit, table)
    assert_type(context.idempotency_key, str)
    return [context.attempt]


@task(takes_context=True, queue_name="emails")
def greet(context: "TaskContext[..., Any]", name: str) -> str:
    return f"{name} {context.attempt}"


@task(takes_context=True)
async def fetch(context: JobContext, url: str) -> bytes:
    context.checkpoint()
    return url.encode()


assert_type(export.enqueue("orders", limit=3).return_value, list[int])
assert_type(export.using(priority=1).enqueue("orders").return_value, list[int])
assert_type(fetch.enqueue("https://example.com").return_value, bytes)
greet.enqueue("Ada")
greet.bind(name="Ada")

export.enqueue()  # error: call-arg reportCallIssue
export.enqueue("orders", "customers")  # error: call-arg reportCallIssue
export.enqueue("orders", limit="3")  # error: arg-type reportArgumentType
greet.enqueue(1)  # error: arg-type reportArgumentType
greet.bind(nme="Ada")  # error: call-arg reportCallIssue
fetch.enqueue(b"https://example.com")  # error: arg-type reportArgumentType


@task(takes_context=True)  # error: arg-type reportArgumentType
def no_context(table: str) -> None: ...


@task(takes_context=True)  # error: arg-type reportArgumentType
def nothing_at_all() -> None: ...
