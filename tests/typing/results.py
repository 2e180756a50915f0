"""Results can be waited for and say how far the task is; calls of any tasks go together."""

from typing import assert_type

from django_pgqueue import Cancel, Retry, Snooze, enqueue_many, task
from django_pgqueue.results import Progress


@task
def one(number: int) -> int:
    if number < 0:
        raise Cancel("negative")
    if number > 9:
        raise Retry(delay=5)
    return number


@task
def other() -> str:
    raise Snooze(delay=60)


result = one.enqueue(1)
assert_type(result.id, str)
assert_type(result.wait(timeout=10), bool)
assert_type(result.progress, Progress | None)
enqueue_many([one.bind(1), other.bind()])
enqueue_many(one.bind(number) for number in range(3))

result.wait("10")  # error: arg-type reportArgumentType
result.wait(time=10)  # error: call-arg reportCallIssue
enqueue_many([one, other])  # error: list-item reportArgumentType
enqueue_many([one.bind("1")])  # error: arg-type reportArgumentType
raise Retry(after=5)  # error: call-arg reportCallIssue
