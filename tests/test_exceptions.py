"""What tasks raise: delays that are none are refused where they are given; and every exception is public."""

import math
from datetime import timedelta
from typing import Any

import pytest

import django_pgqueue
from django_pgqueue import Cancel, Retry, Snooze, exceptions, task
from django_pgqueue.compat import signals
from django_pgqueue.models import Job
from django_pgqueue.testing import run_jobs

from .support import attempts_of, shown


@pytest.mark.parametrize("kind", [Retry, Snooze])
@pytest.mark.parametrize(("delay", "seconds"), [(0, 0.0), (5, 5.0), (1.5, 1.5), (timedelta(minutes=1), 60.0)])
def test_a_delay_is_seconds_or_a_timedelta(kind: Any, delay: Any, seconds: float) -> None:
    assert kind(delay).delay == kind(delay=delay).delay == seconds


@pytest.mark.parametrize("kind", [Retry, Snooze])
@pytest.mark.parametrize(
    "delay", [math.nan, math.inf, -math.inf, 10**400, -1, -0.5, timedelta(seconds=-1)], ids=shown
)
def test_a_delay_that_no_clock_reaches_is_refused(kind: Any, delay: Any) -> None:
    with pytest.raises(
        ValueError, match=f"delay of {kind.__name__} must be finite and not negative"
    ) as caught:
        kind(delay)
    assert repr(delay) in str(caught.value)


@pytest.mark.parametrize("kind", [Retry, Snooze])
@pytest.mark.parametrize("delay", ["5", True, [5], object()], ids=shown)
def test_a_delay_that_is_no_number_is_refused(kind: Any, delay: Any) -> None:
    with pytest.raises(TypeError, match=f"delay of {kind.__name__} must be seconds"):
        kind(delay)


def test_only_retry_goes_without_a_delay() -> None:
    assert Retry().delay is None
    with pytest.raises(TypeError, match="delay of Snooze"):
        Snooze(None)  # type: ignore[arg-type]


def test_every_exception_can_be_imported_from_the_package() -> None:
    assert set(exceptions.__all__) <= set(django_pgqueue.__all__)
    public = {name for name, value in vars(exceptions).items() if isinstance(value, type)}
    assert {name for name in public if issubclass(vars(exceptions)[name], BaseException)} - {"Signal"} == set(
        exceptions.__all__
    )
    assert issubclass(django_pgqueue.InvalidTask, Exception)


@task(max_attempts=2)
def snoozes_for(delay: float) -> None:
    raise Snooze(math.nan if delay < 0 else delay)


@task
def cancels_itself(reason: str) -> None:
    raise Cancel(reason)


@task(backoff=lambda error, result: math.inf)
def waits_for_ever() -> None:
    raise LookupError


@pytest.mark.django_db
def test_a_task_that_gives_a_wrong_delay_fails_with_that_error() -> None:
    result = snoozes_for.enqueue(-1)
    run_jobs()
    (attempt,) = attempts_of(int(result.id))
    assert (attempt.outcome, attempt.exception_class) == ("failed", "builtins.ValueError")
    assert "delay of Snooze" in attempt.message
    assert Job.objects.get().state.attempts_allowed == 2, "charged"


# --- the reason of a cancelled job


@pytest.mark.django_db
def test_the_reason_of_cancel_is_the_error_of_the_result() -> None:
    heard: list[Any] = []

    def hear(task_result: Any, **kwargs: Any) -> None:
        heard.append(task_result)

    signals.task_finished.connect(hear)
    try:
        result = cancels_itself.enqueue("the order is gone")
        run_jobs()
    finally:
        signals.task_finished.disconnect(hear)
    result.refresh()
    (error,) = result.errors
    assert error.exception_class is Cancel
    assert error.traceback == "The job was cancelled: the order is gone"
    assert [heard_error.traceback for heard_error in heard[0].errors] == [error.traceback]


@pytest.mark.django_db
def test_the_reason_of_an_earlier_cancel_is_not_that_of_a_later_one() -> None:
    result = cancels_itself.enqueue("the order is gone")
    run_jobs()
    Job.objects.retry([result.id])
    Job.objects.cancel([result.id])
    result.refresh()
    assert [error.traceback for error in result.errors] == ["The job was cancelled."]


@pytest.mark.django_db
def test_a_backoff_that_gives_no_finite_number_is_noted_and_the_default_used() -> None:
    result = waits_for_ever.enqueue()
    run_jobs()
    (attempt,) = attempts_of(int(result.id))
    assert "the task's backoff raised a delay must be a finite number" in attempt.traceback
    assert Job.objects.get().state.run_at - attempt.finished_at < timedelta(days=1)
