"""Options have names and types, at the decorator and for one call, and leave the signature as it is."""

from datetime import timedelta
from typing import assert_type

from django_pgqueue import Backoff, Retry, task


@task(queue_name="emails", priority=5, max_attempts=3, backoff=Backoff(base=1.0, cap=30.0))
def remind(user_id: int, text: str = "") -> bool:
    return bool(text)


def key_of(user_id: int) -> str:
    return f"user-{user_id}"


@task(discard_on=(ValueError,), retry_on=Retry, unique_key=key_of, timeout=None)
def sync(user_id: int) -> None:
    remind.using(run_after=timedelta(hours=1), priority=None).enqueue(user_id, text="Still there?")


@task()
def tidy() -> None:
    sync.using(on_conflict="replace", unique_key="one").enqueue(1)


assert_type(remind.using(priority=1).enqueue(1).return_value, bool)
assert_type(tidy.enqueue().return_value, None)
remind.enqueue(1, "now")

remind.enqueue("1")  # error: arg-type reportArgumentType
remind.using(priority=1).enqueue(1, txt="now")  # error: call-arg reportCallIssue
remind.using(priority=1).bind()  # error: call-arg reportCallIssue
remind.using(max_attempts="3")  # error: arg-type reportArgumentType
remind.using(pirority=1)  # error: call-arg reportCallIssue
remind.using(run_after=60)  # error: arg-type reportArgumentType
sync.using(on_conflict="keep")  # error: arg-type reportArgumentType
tidy.enqueue(1)  # error: call-arg reportCallIssue


@task(max_attempts="3")  # error: call-overload reportArgumentType
def few() -> None: ...


@task(max_atempts=3)  # error: call-overload reportCallIssue
def fewer() -> None: ...


@task(discard_on=(str,))  # error: arg-type reportArgumentType
def careless() -> None: ...
