"""Paused queues: nothing of them is claimed, what runs goes on, and a resume lets them go on."""

from collections.abc import Callable

import psycopg
import pytest

from django_pgqueue.operating import QueuePause
from django_pgqueue.pauses import ALL_QUEUES
from tests.support import DONE, claim_queue, enqueue, enqueue_many, running, settle_one, status_of

pytestmark = pytest.mark.django_db


def claimed(queue: str = "default") -> list[int]:
    return [job.job_id for job in claim_queue(queue)]


def test_nothing_of_a_paused_queue_is_claimed_until_it_goes_on() -> None:
    paused, other = enqueue(), enqueue(queue="other")
    assert QueuePause.objects.pause("default", by="anna")
    assert claimed() == []
    assert claimed("other") == [other]
    assert status_of(paused) == "ready"
    assert QueuePause.objects.resume("default")
    assert claimed() == [paused]


def test_all_queues_are_paused_by_one_row() -> None:
    first, second = enqueue(), enqueue(queue="other")
    QueuePause.objects.pause(ALL_QUEUES, by="anna")
    assert claimed() == claimed("other") == []
    QueuePause.objects.resume(ALL_QUEUES)
    assert (claimed(), claimed("other")) == ([first], [second])


def test_what_runs_is_settled_in_a_paused_queue() -> None:
    (job,) = running(1)
    QueuePause.objects.pause("default", by="anna")
    assert settle_one("complete", job.fence) == DONE


def test_a_queue_that_drains_is_claimed_until_it_is_empty() -> None:
    jobs = enqueue_many(2)
    QueuePause.objects.pause("default", by="anna", drain=True)
    held = claim_queue()
    assert [job.job_id for job in held] == jobs
    assert QueuePause.objects.end_drains() == []
    for job in held:
        settle_one("complete", job.fence)
    assert QueuePause.objects.end_drains() == ["default"]
    enqueue()
    assert claimed() == []


def test_a_pause_ends_a_drain_and_a_drain_opens_a_pause() -> None:
    enqueue()
    assert QueuePause.objects.pause("default", by="anna", drain=True)
    assert QueuePause.objects.pause("default", by="ben")
    assert claimed() == []
    assert not QueuePause.objects.pause("default", by="carl")
    assert QueuePause.objects.present()["default"].by == "ben"
    assert QueuePause.objects.pause("default", by="dora", drain=True)
    assert len(claimed()) == 1


@pytest.mark.django_db(transaction=True)
def test_a_pause_that_has_not_committed_stops_nobody(connect: Callable[[], psycopg.Connection]) -> None:
    session, job = connect(), enqueue()
    with session.transaction():
        QueuePause.objects.pause("default", by="anna", connection=session)
        assert claimed() == [job]
    enqueue()
    assert claimed() == []
