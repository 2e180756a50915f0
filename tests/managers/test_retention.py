"""Retention of statuses and of queues: each job goes by its own rule, and walks go on where they ended."""

import pytest
from django.db import connection

from django_pgqueue import maintenance
from django_pgqueue.maintenance import Pruner
from django_pgqueue.models import Job
from django_pgqueue.retention import Rule, rules_of
from django_pgqueue.testing import forward_time
from tests.support import WORKER, claim_queue, completed, enqueue_many, make, status_of

pytestmark = pytest.mark.django_db
HOUR, DAY = 3600.0, 86400.0


def ended(status: str, queue: str) -> int:
    return make(status, queue=queue).job_id


def alive(jobs: list[int]) -> list[bool]:
    return [status_of(job) is not None for job in jobs]


# --- what rules come to


def test_statuses_alone_are_general_rules() -> None:
    assert rules_of({"succeeded": DAY, "cancelled": None, "dead": 90 * DAY}) == [
        Rule("succeeded", DAY),
        Rule("dead", 90 * DAY),
    ]
    assert all(rule.is_general for rule in rules_of({"succeeded": DAY}))


def test_a_queue_s_own_age_takes_it_out_of_the_general_rule() -> None:
    retention = {
        "succeeded": DAY,
        "dead": None,
        "queues": {
            "emails": {"succeeded": HOUR, "dead": DAY},
            "sms": {"succeeded": HOUR},
            "audit": {"succeeded": None},
        },
    }
    assert rules_of(retention) == [
        Rule("succeeded", DAY, None, ("audit", "emails", "sms")),
        Rule("succeeded", HOUR, ("emails", "sms")),
        Rule("dead", DAY, ("emails",)),
    ]


# --- what they do


def test_each_job_goes_by_its_own_rule() -> None:
    jobs = [ended("succeeded", queue) for queue in ("emails", "default", "audit")]
    dead = [ended("dead", queue) for queue in ("emails", "default")]
    pruner = Pruner(
        {
            "succeeded": DAY,
            "dead": None,
            "queues": {"emails": {"succeeded": HOUR, "dead": HOUR}, "audit": {"succeeded": None}},
        }
    )
    assert pruner(connection) == 0
    forward_time(2 * HOUR)
    assert pruner(connection) == 1
    assert (alive(jobs), alive(dead)) == ([False, True, True], [False, True])
    forward_time(2 * DAY)
    pruner(connection)
    assert (alive(jobs), alive(dead)) == ([False, False, True], [False, True])


def test_all_rows_of_a_job_go() -> None:
    job = ended("dead", "emails")
    forward_time(HOUR)
    pruned = Job.objects.prune_by(Rule("dead", 60.0, ("emails",)), limit=10)
    assert (pruned.deleted, pruned.goes_on) == (1, False)
    assert not Job.objects.filter(pk=job).exists()


def test_a_walk_passes_the_jobs_of_other_queues_in_bounded_steps() -> None:
    many(30, "default")
    wanted = many(3, "emails")
    forward_time(HOUR)
    rule, after, steps = Rule("succeeded", 60.0, ("emails",)), None, 0
    while True:
        pruned = Job.objects.prune_by(rule, limit=1, after=after)
        assert pruned.deleted <= 1
        after, steps = pruned.after, steps + 1
        if not pruned.goes_on:
            break
    assert alive(wanted) == [False] * 3
    assert 4 <= steps <= 8, "ten rows at most are looked at for each that may go"


def test_the_next_pass_begins_behind_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "BATCH", 5)
    first = many(8, "emails")
    many(100, "default")
    forward_time(HOUR)
    pruner = Pruner({"succeeded": None, "queues": {"emails": {"succeeded": 60.0}}})
    assert [pruner(connection) for _ in range(3)] == [5, 3, 0]
    assert not any(alive(first))
    later = many(2, "emails")
    assert pruner(connection) == 0, "they are too young"
    forward_time(HOUR)
    assert pruner(connection) == 2
    assert not any(alive(later))


def test_a_young_job_keeps_a_rule_from_nothing_behind_it() -> None:
    """The walk ends at the age: what is younger is met when it has come of it."""
    old = many(2, "emails")
    forward_time(2 * HOUR)
    young = many(2, "emails")
    forward_time(120)
    rule = Rule("succeeded", HOUR, ("emails",))
    pruned = Job.objects.prune_by(rule, limit=10)
    assert (pruned.deleted, alive(old), alive(young)) == (2, [False] * 2, [True] * 2)
    forward_time(HOUR)
    assert Job.objects.prune_by(rule, limit=10, after=pruned.after).deleted == 2


def many(count: int, queue: str) -> list[int]:
    """Return so many jobs of a queue that have succeeded."""
    job_ids = enqueue_many(count, queue=queue)
    claimed = claim_queue(queue, limit=count)
    Job.objects.complete([completed(job.fence) for job in claimed], worker=WORKER)
    return job_ids
