"""Every verb on a job in every state, budget left or spent, asked to cancel or not, lease alive or over.

EXPECTED says by hand what each verb does; whatever it does not name must change nothing. It is compared with
``states.TRANSITIONS`` in both directions, so that an arrow without a test, or a test without an arrow, fails.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from django_pgqueue import states
from django_pgqueue.models import Job
from django_pgqueue.records import Consumed, Fence, NewJob
from django_pgqueue.states import (
    CANCELLED,
    DEAD,
    FAILED,
    LOST,
    READY,
    RELEASED,
    RUNNING,
    SCHEDULED,
    SNOOZED,
    SUCCEEDED,
)

from .support import (
    DONE,
    OVER,
    SETTLEMENTS,
    WORKER,
    assert_invariants,
    attempts_of,
    claim_queue,
    enqueue,
    fence_of,
    make,
    released,
    rows_of,
    settle_one,
    status_of,
)

pytestmark = pytest.mark.django_db

HOUR = 3600.0
KEY = "the only job"


@dataclass(frozen=True)
class Situation:
    """A way for a job to be before the verb."""

    status: str | None
    spent: bool = False
    asked_to_cancel: bool = False
    lease_over: bool = False
    due: bool = False

    def __str__(self) -> str:
        words = [self.status or "no job"]
        words += [name for name in ("spent", "asked_to_cancel", "lease_over", "due") if getattr(self, name)]
        return " ".join(words)

    def make(self) -> Fence:
        """Make such a job and return its fence."""
        if self.status is None:
            return Fence(10**9, 1, uuid4())
        made = make(
            self.status,
            max_attempts=1 if self.spent else 2,
            cancel_requested=self.asked_to_cancel,
            lease=OVER if self.lease_over else HOUR,
            due=self.due,
            unique_key=KEY,
        )
        return fence_of(made.job_id)


YES_NO = (False, True)
SITUATIONS = [
    Situation(None),
    *(Situation(SCHEDULED, due=due) for due in YES_NO),
    *(Situation(READY, spent) for spent in YES_NO),
    *(Situation(RUNNING, spent, asked, over) for spent in YES_NO for asked in YES_NO for over in YES_NO),
    *(Situation(DEAD, spent) for spent in YES_NO),
    Situation(SUCCEEDED),
    Situation(CANCELLED),
]


# --- the verbs: each form acts on one fence and returns whether it says that it did something


def _settle(verb: str, **values: Any) -> Callable[[Fence], bool]:
    return lambda fence: settle_one(verb, fence, **values) == DONE


def _release_unheld(fence: Fence) -> bool:
    return Job.objects.release_unheld([], worker_id=WORKER.worker_id, within=HOUR) == [fence.job_id]


def _rescue_worker(started_ago: float | None) -> Callable[[Fence], bool]:
    def act(fence: Fence) -> bool:
        lost = released(fence, started_ago=started_ago)
        return [row.job_id for row in Job.objects.rescue_worker([lost], worker=WORKER)] == [fence.job_id]

    return act


def _cancel(fence: Fence) -> bool:
    report = Job.objects.cancel([fence.job_id])
    assert sorted(report.cancelled + report.requested + report.skipped) == [fence.job_id]
    assert report.requested == ([fence.job_id] if status_of(fence.job_id) == RUNNING else [])
    return report.skipped == []


def _retry(fence: Fence) -> bool:
    report = Job.objects.retry([fence.job_id])
    assert report.conflicts == []
    assert sorted(report.retried + report.skipped) == [fence.job_id]
    return report.skipped == []


def _replace(**values: Any) -> Callable[[Fence], bool]:
    def act(fence: Fence) -> bool:
        row = Job.objects.replace(NewJob("tests.tasks.ok", unique_key=KEY, **values))
        assert row is None or (row.job_id, row.inserted) == (fence.job_id, False)
        return row is not None

    return act


def _moves(act: Callable[[int], list[Any]]) -> Callable[[Fence], bool]:
    return lambda fence: [row.job_id for row in act(fence.job_id)] == [fence.job_id]


def _prune(age: float) -> Callable[[Fence], bool]:
    def act(fence: Fence) -> bool:
        return [
            row for status in states.STATUSES for row in Job.objects.prune(status, age=age, limit=10)
        ] != []

    return act


FORMS: dict[str, Callable[[Fence], bool]] = {
    "replace": _replace(),
    "replace, later": _replace(delay=HOUR),
    "promote": lambda fence: Job.objects.promote(limit=10) != [],
    "promote, now": lambda fence: Job.objects.promote_now([fence.job_id]) != [],
    "claim": lambda fence: claim_queue() != [],
    "renew": lambda fence: Job.objects.renew([fence], lease=2 * HOUR)[fence].result == DONE,
    "complete": _settle("complete"),
    "consume": lambda fence: Job.objects.consume([Consumed(fence)], worker=WORKER)[fence].result == DONE,
    "fail": _settle("fail"),
    "fail, final": _settle("fail", final=True),
    "snooze": _settle("snooze"),
    "release, started": _settle("release"),
    "release, never started": _settle("release", started_ago=None),
    "release, claim without reply": _release_unheld,
    "rescue": lambda fence: Job.objects.rescue(limit=10, server_up=0.0) != [],
    "rescue_worker, started": _rescue_worker(2.0),
    "rescue_worker, never started": _rescue_worker(None),
    "cancel": _cancel,
    "cancel, worker agrees": _settle("cancel_held"),
    "retry": _retry,
    "move": _moves(lambda job_id: Job.objects.move([job_id], "elsewhere")),
    "reprioritise": _moves(lambda job_id: Job.objects.reprioritise([job_id], 7)),
    "discard": lambda fence: Job.objects.discard([fence.job_id]) == [fence.job_id],
    "prune": _prune(age=0.0),
    "prune, young": _prune(age=HOUR),
}


# --- what they do

# A running job: (budget left, budget spent, asked to cancel), and the outcome of the attempt.
ENDS_OF_RUNNING = {
    "renew": ((RUNNING, RUNNING, RUNNING), None),
    "complete": ((SUCCEEDED, SUCCEEDED, SUCCEEDED), SUCCEEDED),
    "consume": ((None, None, None), None),
    "fail": ((SCHEDULED, DEAD, CANCELLED), FAILED),
    "fail, final": ((DEAD, DEAD, CANCELLED), FAILED),
    "snooze": ((SCHEDULED, SCHEDULED, CANCELLED), SNOOZED),
    "release, started": ((READY, READY, CANCELLED), RELEASED),
    "release, never started": ((READY, READY, CANCELLED), None),
    "release, claim without reply": ((READY, READY, CANCELLED), None),
    "rescue": ((SCHEDULED, DEAD, CANCELLED), LOST),
    "rescue_worker, started": ((SCHEDULED, DEAD, CANCELLED), LOST),
    "rescue_worker, never started": ((READY, READY, CANCELLED), None),
    "cancel": ((RUNNING, RUNNING, RUNNING), None),
    "cancel, worker agrees": ((CANCELLED, CANCELLED, CANCELLED), CANCELLED),
}
ONLY_WITH_LEASE_OVER = {"rescue"}
# Any other job; what is not named changes nothing.
OTHERS = {
    ("replace", SCHEDULED): READY,
    ("replace", READY): READY,
    ("replace, later", SCHEDULED): SCHEDULED,
    ("replace, later", READY): SCHEDULED,
    ("promote", SCHEDULED): READY,  # only when due
    ("promote, now", SCHEDULED): READY,
    ("claim", READY): RUNNING,
    ("cancel", SCHEDULED): CANCELLED,
    ("cancel", READY): CANCELLED,
    ("retry", DEAD): READY,
    ("retry", CANCELLED): READY,
    ("move", SCHEDULED): SCHEDULED,
    ("move", READY): READY,
    ("reprioritise", SCHEDULED): SCHEDULED,
    ("reprioritise", READY): READY,
    ("discard", DEAD): None,
    ("discard", CANCELLED): None,
    ("prune", SUCCEEDED): None,
    ("prune", DEAD): None,
    ("prune", CANCELLED): None,
}
ONLY_WHEN_DUE = {"promote"}
CHANGING_THE_JOB = ("replace", "move", "reprioritise")
REFUSED = "refused"


def expected(form: str, before: Situation) -> tuple[str | None, str | None]:
    """Return the job's next status and the outcome that is written; ``REFUSED`` for no change."""
    if before.status == RUNNING:
        if form not in ENDS_OF_RUNNING or (form in ONLY_WITH_LEASE_OVER and not before.lease_over):
            return REFUSED, None
        (left, spent, asked), outcome = ENDS_OF_RUNNING[form]
        return (asked if before.asked_to_cancel else spent if before.spent else left), outcome
    if (form, before.status) not in OTHERS or (form in ONLY_WHEN_DUE and not before.due):
        return REFUSED, None
    return OTHERS[form, before.status], None


@pytest.mark.parametrize("before", SITUATIONS, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_verb_on_state(form: str, before: Situation) -> None:
    fence = before.make()
    rows = rows_of(fence.job_id)
    target, outcome = expected(form, before)

    said_so = FORMS[form](fence)

    if target == REFUSED:
        assert not said_so
        assert rows_of(fence.job_id) == rows
    else:
        assert said_so
        assert status_of(fence.job_id) == target
        replaced = form.startswith(CHANGING_THE_JOB)
        _assert_one_step(rows, rows_of(fence.job_id), outcome, replaced=replaced)
        assert_invariants()


def _assert_one_step(
    before: dict[str, Any], after: dict[str, Any], outcome: str | None, replaced: bool
) -> None:
    """Check what holds of any change of one job."""
    if not after["state"]:
        assert after == {"job": [], "state": [], "attempts": []}
        return
    assert after["job"] == before["job"] or replaced, "no other verb updates a job"
    assert after["attempts"][: len(before["attempts"])] == before["attempts"], "attempts are only appended"
    assert [row["outcome"] for row in after["attempts"][len(before["attempts"]) :]] == (
        [outcome] if outcome else []
    )
    (old,), (new,) = before["state"], after["state"]
    assert new["lease_version"] - old["lease_version"] == (new["status"] == RUNNING != old["status"])
    charged = outcome in states.CHARGED or outcome in (SUCCEEDED, CANCELLED)
    if old["status"] in states.LIVE and not replaced:
        left = old["attempts_allowed"] - old["attempts"]
        assert new["attempts_allowed"] - new["attempts"] == left - charged


@pytest.mark.parametrize(
    ("options", "status"), [({}, READY), ({"delay": 60.0}, SCHEDULED), ({"delay": -60.0}, READY)]
)
def test_enqueue_makes_ready_or_scheduled(options: dict[str, Any], status: str) -> None:
    job_id = enqueue(**options)
    assert status_of(job_id) == status
    assert attempts_of(job_id) == []
    assert_invariants()


def test_the_table_of_transitions_is_what_is_tested() -> None:
    tested = {("enqueue", None, READY, None), ("enqueue", None, SCHEDULED, None)}
    for form in FORMS:
        for before in SITUATIONS:
            target, outcome = expected(form, before)
            if target != REFUSED:
                tested.add((form.partition(",")[0], before.status, target, outcome))
    listed = {(t.verb, t.source, t.target, t.outcome) for t in states.TRANSITIONS}
    assert listed - tested == set(), "arrows without a test"
    assert tested - listed == set(), "arrows that states.TRANSITIONS does not list"


def test_no_arrow_is_listed_twice() -> None:
    arrows = [(t.verb, t.source, t.target, t.outcome) for t in states.TRANSITIONS]
    assert len(arrows) == len(set(arrows))


def test_sources_and_targets_read_the_table() -> None:
    assert states.sources("retry") == {DEAD, CANCELLED}
    assert states.targets("fail", RUNNING) == {SCHEDULED, DEAD, CANCELLED}
    assert states.targets("claim", SUCCEEDED) == frozenset()
    assert set(states.STATUSES) == states.ENDED | states.LIVE
    assert set() == states.ENDED & states.LIVE


# --- fencing

WRONG = {
    "older version": lambda f: f._replace(lease_version=f.lease_version - 1),
    "newer version": lambda f: f._replace(lease_version=f.lease_version + 1),
    "other token": lambda f: f._replace(lease_token=uuid4()),
    "another job's id": lambda f: f._replace(job_id=f.job_id + 1),
}
FENCED = {
    "renew": lambda fence: Job.objects.renew([fence], lease=HOUR)[fence].result,
    **{verb: (lambda fence, verb=verb: settle_one(verb, fence)) for verb in SETTLEMENTS},
    "consume": lambda fence: Job.objects.consume([Consumed(fence)], worker=WORKER)[fence].result,
    "rescue_worker": lambda fence: "done" if _rescue_worker(2.0)(fence) else "lost",
    "rescue_worker, never started": lambda fence: "done" if _rescue_worker(None)(fence) else "lost",
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("verb", FENCED)
def test_a_wrong_fence_changes_nothing(verb: str, wrong: str) -> None:
    fence, neighbour = make(RUNNING, failures=1).fence, make(RUNNING, failures=1).fence
    before = rows_of(fence.job_id), rows_of(neighbour.job_id)
    assert FENCED[verb](WRONG[wrong](fence)) == "lost"
    assert (rows_of(fence.job_id), rows_of(neighbour.job_id)) == before
    assert FENCED[verb](fence) == DONE
    assert rows_of(neighbour.job_id) == before[1]
    assert_invariants()


@pytest.mark.parametrize("verb", FENCED)
def test_a_worker_that_lost_its_lease_changes_nothing_under_the_new_owner(verb: str) -> None:
    zombie = make(RUNNING, lease=OVER).fence
    Job.objects.rescue(limit=10, server_up=0.0)
    Job.objects.promote_now([zombie.job_id])
    (owner,) = claim_queue()
    assert owner.fence.lease_version == zombie.lease_version + 1
    before = rows_of(zombie.job_id)
    assert FENCED[verb](zombie) == "lost"
    assert rows_of(zombie.job_id) == before
    assert settle_one("complete", owner.fence) == DONE
    assert_invariants()


@pytest.mark.parametrize("verb", FENCED)
def test_an_expired_lease_that_nobody_took_is_still_the_owners(verb: str) -> None:
    assert FENCED[verb](make(RUNNING, lease=OVER).fence) == DONE
    assert_invariants()
