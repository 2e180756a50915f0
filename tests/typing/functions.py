"""A task has the parameters of its function, and its results have the type that the function returns."""

from typing import assert_type

from django_pgqueue import PgQueueTask, task


@task
def invoice(order_id: int, copies: int = 1, *, language: str = "en") -> str:
    return f"{order_id} {copies} {language}"


assert_type(invoice.enqueue(42).return_value, str)
assert_type(invoice.get_result("1").return_value, str)
invoice.enqueue(42, 2, language="de")
invoice.enqueue(order_id=42)
invoice.bind(42, language="de")

invoice.enqueue()  # error: call-arg reportCallIssue
invoice.enqueue("42")  # error: arg-type reportArgumentType
invoice.enqueue(42, 2, "de")  # error: call-arg reportCallIssue
invoice.enqueue(42, langage="de")  # error: call-arg reportCallIssue
invoice.enqueue(42, language=1)  # error: arg-type reportArgumentType
invoice.bind("42")  # error: arg-type reportArgumentType
invoice.bind(42, langage="de")  # error: call-arg reportCallIssue
invoice(42)  # error: operator reportCallIssue
number: int = invoice.get_result("1").return_value  # error: assignment reportAssignmentType


async def in_a_view() -> None:
    assert_type((await invoice.aenqueue(42)).return_value, str)
    assert_type((await invoice.aget_result("1")).return_value, str)
    await invoice.aenqueue()  # error: call-arg reportCallIssue
    await invoice.aenqueue(order="42")  # error: call-arg reportCallIssue


def many(due: PgQueueTask[[int], str]) -> None:
    due.enqueue(1)
    for result in due.enqueue_many([(1,), {"order_id": 2}, due.bind(3)]):
        assert_type(result.return_value, str)
    due.enqueue("1")  # error: arg-type reportArgumentType
    due.enqueue_many([1])  # error: list-item reportArgumentType
