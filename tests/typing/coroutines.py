"""The result of a coroutine function is what its awaiting gives."""

from typing import assert_type

from django_pgqueue import task


@task
async def crawl(url: str, *, depth: int = 1) -> dict[str, int]:
    return {url: depth}


@task(timeout=30)
async def ping(host: str) -> float:
    return float(len(host))


assert_type(crawl.enqueue("https://example.com").return_value, dict[str, int])
assert_type(crawl.get_result("1").return_value, dict[str, int])
assert_type(ping.using(queue_name="emails").enqueue("example.com").return_value, float)

crawl.enqueue(1)  # error: arg-type reportArgumentType
crawl.enqueue("https://example.com", 2)  # error: call-arg reportCallIssue
ping.enqueue()  # error: call-arg reportCallIssue
ping.bind(hots="example.com")  # error: call-arg reportCallIssue


async def in_a_view() -> None:
    result = await crawl.aenqueue("https://example.com", depth=2)
    assert_type(await result.async_wait(10), bool)
    assert_type(result.return_value, dict[str, int])
    await crawl.aenqueue("https://example.com", dept=2)  # error: call-arg reportCallIssue
    await ping.aenqueue(b"example.com")  # error: arg-type reportArgumentType
