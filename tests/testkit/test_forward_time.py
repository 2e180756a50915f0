"""forward_time: the times of states and attempts move, nothing else does, and it is for tests only."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import utils

from django_pgqueue import states
from django_pgqueue.models import Attempt, Job, JobState
from django_pgqueue.testing import forward_time, run_jobs

from .. import support
from . import tasks

pytestmark = pytest.mark.usefixtures("invariants")

HOUR = timedelta(hours=1)


def times() -> dict[Any, datetime | None]:
    """Return every stored time by table, row and column."""
    return {
        (model.__name__, row["pk"], name): value
        for model in (Job, JobState, Attempt)
        for row in model.objects.values("pk", *(field.name for field in model._meta.fields))
        for name, value in row.items()
        if name != "pk" and (value is None or isinstance(value, datetime))
    }


def others() -> dict[str, list[Any]]:
    fields = {
        model: [field.name for field in model._meta.fields if field.get_internal_type() != "DateTimeField"]
        for model in (Job, JobState, Attempt)
    }
    return {
        model.__name__: list(model.objects.order_by("pk").values_list(*fields[model])) for model in fields
    }


@pytest.mark.parametrize("by", [3600, 3600.0, HOUR])
def test_the_times_of_states_and_attempts_move_and_nothing_else(by: Any) -> None:
    for status in states.STATUSES:
        support.make(status, failures=1, delay=None)
    support.make("running", cancel_requested=True)
    support.enqueue(delay=60.0)
    before, same = times(), others()
    forward_time(by)
    after = times()
    assert {key: value for key, value in before.items() if value is None} == {
        key: value for key, value in after.items() if value is None
    }
    moved = {key: value - after[key] for key, value in before.items() if value is not None}
    assert {value for (table, *_), value in moved.items() if table != "Job"} == {HOUR}
    assert {value for (table, *_), value in moved.items() if table == "Job"} == {timedelta(0)}
    assert {name for table, _, name in moved if table != "Job"} == {
        *("run_at", "claimed_at", "lease_expires_at", "started_at", "finished_at", "cancel_requested_at")
    }
    assert others() == same


def test_a_job_keeps_its_idempotency_key() -> None:
    tasks.done.clear()
    tasks.fail_with_its_key.enqueue()
    run_jobs()
    forward_time(60)
    run_jobs()
    first, second = tasks.done
    assert first == second


def test_no_time_may_pass() -> None:
    job_id = support.enqueue()
    before = support.state_of(job_id).run_at
    forward_time(0)
    assert support.state_of(job_id).run_at == before


@pytest.mark.parametrize("by", [-1, timedelta(seconds=-1), float("nan"), float("inf"), 1e12])
def test_time_does_not_go_back_and_not_beyond_what_can_be_stored(by: Any) -> None:
    with pytest.raises(ValueError, match="time can pass by 0 to"):
        forward_time(by)


def test_ten_years_can_pass_ten_times() -> None:
    job_id = support.enqueue(delay=10 * 365 * 24 * 3600.0)
    for _ in range(10):
        forward_time(timedelta(days=3650))
    assert [row[0] for row in Job.objects.promote(limit=10)] == [job_id]


def test_it_is_refused_where_no_tests_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(utils._TestState, "saved_data")
    with pytest.raises(RuntimeError, match="works in tests only"):
        forward_time(1)
