"""Task functions that many tests name; what they do matters only where a test runs them."""

from typing import Any

from django_pgqueue import Backoff, task


@task
def ok(*args: Any, **kwargs: Any) -> list[Any]:
    """Return what it was given."""
    return [list(args), kwargs]


@task
def other() -> None:
    """Do nothing."""


@task
async def coroutine(value: int) -> int:
    """Return its argument plus one."""
    return value + 1


@task(takes_context=True)
def with_context(context: Any, value: int) -> tuple[int, int]:
    """Return the number of the attempt and the argument."""
    return context.attempt, value


@task
def pay(order_id: int, password: str, *more: str, token: str = "") -> None:
    """Have arguments that nobody should see."""


@task(
    queue_name="emails",
    priority=7,
    max_attempts=3,
    backoff=Backoff(base=1.5, cap=60.0),
    timeout=12.5,
    discard_on=(ValueError, KeyError),
    retry_on=OSError,
    metadata={"team": "shop"},
)
def mail(address: str, copies: int = 1) -> str:
    """Have every option."""
    return address


not_a_task = "a text"


def plain_function() -> None:
    """Be no task."""
