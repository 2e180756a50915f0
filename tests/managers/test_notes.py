"""What was noted of an attempt is stored by every settle, with those of one batch each in its own row."""

from typing import Any

import pytest

from django_pgqueue.models import Job
from django_pgqueue.records import Completed, Notes
from tests.support import SETTLEMENTS, WORKER, attempts_of, fence_of, running

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

NOTED = [
    None,
    Notes('+0.001 INFO shop: "quoted", {braced}, back\\slashed\nand two lines'),
    Notes("", 3, 0.25),
    None,
    Notes("both", 1, 1e-6),
]


def stored(job_id: int) -> tuple[str, int | None, float | None]:
    (attempt,) = attempts_of(job_id)
    return attempt.log_tail, attempt.sql_queries, attempt.sql_seconds


@pytest.mark.parametrize("verb", SETTLEMENTS)
def test_each_attempt_has_its_own_notes(verb: str) -> None:
    jobs = running(len(NOTED))
    settlements: list[Any] = [
        SETTLEMENTS[verb](job.fence, notes=notes) for job, notes in zip(jobs, NOTED, strict=True)
    ]
    Job.objects.settle(settlements, worker=WORKER)
    assert [stored(job.job_id) for job in jobs] == [tuple(notes or Notes()) for notes in NOTED]


@pytest.mark.parametrize("verb", SETTLEMENTS)
def test_a_batch_of_which_nothing_was_noted(verb: str) -> None:
    jobs = running(2)
    Job.objects.settle([SETTLEMENTS[verb](job.fence) for job in jobs], worker=WORKER)
    assert {stored(job.job_id) for job in jobs} == {("", None, None)}


def test_kinds_in_one_batch_keep_their_notes_apart() -> None:
    jobs = running(len(SETTLEMENTS))
    settlements: list[Any] = [
        make(job.fence, notes=Notes(verb, number))
        for number, ((verb, make), job) in enumerate(zip(SETTLEMENTS.items(), jobs, strict=True))
    ]
    Job.objects.settle(settlements, worker=WORKER)
    assert [stored(job.job_id)[:2] for job in jobs] == [(verb, n) for n, verb in enumerate(SETTLEMENTS)]


def test_who_lost_the_lease_leaves_no_notes() -> None:
    (job,) = running()
    stale = job.fence._replace(lease_version=job.fence.lease_version + 1)
    Job.objects.settle([Completed(stale, 1.0, 0.0, notes=Notes("not mine"))], worker=WORKER)
    assert attempts_of(job.job_id) == []
    assert fence_of(job.job_id) == job.fence
