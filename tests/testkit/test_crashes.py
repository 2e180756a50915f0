"""worker_dies: what was committed stays, what was open is rolled back, the job is rescued and comes again."""

import inspect
from typing import Any

import pytest
from django.contrib.auth.models import Group

from django_pgqueue.testing import JobRun, RanJob, forward_time, run_jobs, worker_dies

from .. import support
from . import tasks

pytestmark = pytest.mark.usefixtures("invariants")

CHARGE = "tests.testkit.tasks.Bank.charge"


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    tasks.done.clear()


def groups() -> set[str]:
    return set(Group.objects.values_list("name", flat=True))


def run_again() -> JobRun:
    forward_time(3600)
    return run_jobs(raise_errors=True)


def test_at_the_start_nothing_has_happened() -> None:
    result = tasks.pay.enqueue("ada")
    with worker_dies("start") as crash:
        (lost,) = run_jobs()
    assert (lost.outcome, lost.status, lost.attempt, lost.error) == ("lost", "scheduled", 1, None)
    assert (tasks.done, groups(), crash.count) == ([], set(), 1)
    assert run_again().outcomes == ["succeeded"]
    attempts = support.attempts_of(int(result.id))
    assert [attempt.outcome for attempt in attempts] == ["lost", "succeeded"]
    assert attempts[0].exception_class == "django_pgqueue.exceptions.WorkerDied"
    assert "died in a test: start" in attempts[0].message
    assert attempts[0].worker_id != attempts[1].worker_id


def test_at_the_end_everything_has_happened_and_happens_again() -> None:
    tasks.pay.enqueue("ada")
    with worker_dies():
        assert run_jobs().outcomes == ["lost"]
    assert groups() == {"ada reserved", "ada paid"}
    forward_time(3600)
    assert run_jobs().outcomes == ["failed"], "the task is not idempotent: names of groups are unique"
    assert tasks.done == ["charged ada", "confirmed ada at Bank"]


def test_open_transactions_are_rolled_back() -> None:
    tasks.pay.enqueue("ada")
    with worker_dies(after=CHARGE):
        assert run_jobs().outcomes == ["lost"]
    assert (tasks.done, groups()) == (["charged ada"], set())
    assert run_again().outcomes == ["succeeded"]
    assert groups() == {"ada reserved", "ada paid"}


def test_before_a_call_it_is_not_made() -> None:
    tasks.pay.enqueue("ada")
    with worker_dies(before=CHARGE):
        run_jobs()
    assert tasks.done == []
    assert run_again().outcomes == ["succeeded"]


def test_a_class_method_is_still_one() -> None:
    tasks.pay.enqueue("ada")
    with worker_dies(after="tests.testkit.tasks.Bank.confirm"):
        run_jobs()
    assert tasks.done == ["charged ada", "confirmed ada at Bank"]


@pytest.mark.parametrize("place", ["before", "after"])
def test_functions_and_coroutines(place: str) -> None:
    tasks.work.enqueue()
    tasks.pay_later.enqueue("ada")
    with worker_dies(**{place: "tests.testkit.tasks.do_step"}):
        assert run_jobs(max_jobs=1).outcomes == ["lost"]
    with worker_dies(**{place: "tests.testkit.tasks.acharge"}):
        assert run_jobs().outcomes == ["lost"]
    assert tasks.done == ([] if place == "before" else [0, "charged ada"])
    assert run_again().outcomes == ["succeeded"] * 2


def test_what_was_patched_is_whole_again() -> None:
    before = [inspect.getattr_static(tasks.Bank, name) for name in ("charge", "confirm")]
    tasks.pay.enqueue("ada")
    with worker_dies(before=CHARGE):
        run_jobs()
    assert [inspect.getattr_static(tasks.Bank, name) for name in ("charge", "confirm")] == before


def test_outside_a_job_nobody_dies() -> None:
    tasks.pay.enqueue("ada")
    with worker_dies(before=CHARGE):
        tasks.Bank.charge("by the test itself")
        assert run_jobs().outcomes == ["lost"]
    assert tasks.done == ["charged by the test itself"]


def test_a_task_that_catches_everything_is_dead_all_the_same() -> None:
    result = tasks.swallow.enqueue()
    with worker_dies(before="tests.testkit.tasks.do_step"):
        assert run_jobs().outcomes == ["lost"]
    assert support.outcomes_of(int(result.id)) == ["lost"]


def test_a_failure_that_nobody_could_write_down_is_lost() -> None:
    tasks.fail.enqueue()
    with worker_dies("end"):
        (ran,) = run_jobs(raise_errors=True)
    assert (ran.outcome, ran.error) == ("lost", None)


def test_the_other_jobs_run_in_the_next_worker() -> None:
    tasks.pay.enqueue("ada")
    tasks.note.enqueue(1)
    with worker_dies("start"):
        assert run_jobs().outcomes == ["lost", "succeeded"]


def test_only_jobs_of_one_task() -> None:
    tasks.note.enqueue(1)
    tasks.pay.enqueue("ada")
    with worker_dies("start", task=tasks.pay):
        assert run_jobs().outcomes == ["succeeded", "lost"]


def test_as_often_as_asked() -> None:
    for name in ("ada", "bob", "eve"):
        tasks.pay.enqueue(name)
    with worker_dies("start", times=2) as crash:
        assert run_jobs().outcomes == ["lost", "lost", "succeeded"]
    assert crash.count == 2


def test_always_until_the_budget_is_spent() -> None:
    tasks.pay.enqueue("ada")
    statuses: list[str] = []
    with worker_dies("start", times=None):
        while ran := run_jobs():
            statuses += [attempt.status for attempt in ran]
            forward_time(3600)
    assert statuses == ["scheduled", "scheduled", "dead"]


def test_hooks_of_a_commit_before_the_death_have_run() -> None:
    tasks.after_commit.enqueue("hooked")
    with worker_dies("end", task=tasks.after_commit):
        assert run_jobs().outcomes == ["lost", "succeeded"]
    assert tasks.done == ["hooked"]


def test_progress_before_the_death_was_stored() -> None:
    result = tasks.look_at_context.enqueue()
    with worker_dies("end"):
        run_jobs()
    result.refresh()
    assert result.attempts == 1


def test_the_next_attempt_waits_for_the_longest_backoff() -> None:
    tasks.pay.enqueue("ada")
    with worker_dies("start"):
        run_jobs()
    forward_time(59)
    assert not run_jobs()
    forward_time(1.01)
    assert run_jobs().outcomes == ["succeeded"]


@pytest.mark.django_db(transaction=True)
def test_the_same_with_commits() -> None:
    tasks.pay.enqueue("ada")
    with worker_dies(after=CHARGE):
        run_jobs()
    assert groups() == set()
    assert run_again().outcomes == ["succeeded"]


# --- mistakes


def test_a_place_that_nothing_came_to_fails_the_test() -> None:
    tasks.note.enqueue(1)
    with pytest.raises(AssertionError, match=r"no worker died: no job that run_jobs\(\) ran came to"):
        with worker_dies(before=CHARGE):
            run_jobs()
    tasks.note.enqueue(2)
    with pytest.raises(AssertionError, match=r"no job of tests.testkit.tasks.pay .* 'start'"):
        with worker_dies("start", task=tasks.pay):
            run_jobs()


def test_an_error_in_the_block_is_not_hidden() -> None:
    with pytest.raises(tasks.Refused), worker_dies():
        raise tasks.Refused


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ({"at": "middle"}, ValueError, '"start" or "end"'),
        ({"at": "end", "before": CHARGE}, TypeError, "one place"),
        ({"before": CHARGE, "after": CHARGE}, TypeError, "one place"),
        ({"before": "charge"}, ValueError, "not the dotted path"),
        ({"before": "tests.testkit.tasks.nothing"}, AttributeError, "nothing"),
    ],
)
def test_a_place_that_is_none(args: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words), worker_dies(**args):
        pass


def test_the_report_reads_well() -> None:
    result = tasks.pay.enqueue("ada")
    with worker_dies("start"):
        (ran,) = run_jobs()
    assert isinstance(ran, RanJob)
    assert str(ran) == f"#{result.id} tests.testkit.tasks.pay attempt 1: lost, now scheduled"
