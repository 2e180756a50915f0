"""The times that one settle writes are of one moment: a short attempt does not end before it began."""

import pytest

from django_pgqueue.models import Attempt, Job, JobState

from ..support import SETTLEMENTS, WORKER, claim_queue, enqueue_many

pytestmark = pytest.mark.django_db

BRIEF = 1e-6
"""Seconds: what the shortest task takes."""


@pytest.mark.parametrize(
    ("verb", "values"), [("complete", {}), ("fail", {"final": True}), ("cancel_held", {})]
)
def test_an_attempt_ends_with_its_job_and_not_before_it_began(verb: str, values: dict[str, bool]) -> None:
    enqueue_many(300)
    times = {"started_ago": BRIEF, "finished_ago": 0.0}
    settlements = [SETTLEMENTS[verb](job.fence, **times, **values) for job in claim_queue(limit=300)]
    getattr(Job.objects, verb)(settlements, worker=WORKER)
    ended = dict(JobState.objects.values_list("job_id", "finished_at"))
    attempts = list(Attempt.objects.values_list("job_id", "started_at", "finished_at"))
    assert len(attempts) == 300
    for job_id, began, finished in attempts:
        assert began < finished == ended[job_id]
