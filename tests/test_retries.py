"""Backoff: full jitter below a doubling ceiling, capped, and no number of failures overflows it."""

import math
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_pgqueue.retries import MAX_DELAY, Backoff, storable_delay

SECONDS = st.floats(min_value=0, allow_nan=False, allow_infinity=False)


@st.composite
def policies(draw: st.DrawFn) -> Backoff:
    base, cap = sorted((draw(SECONDS), draw(SECONDS)))
    return Backoff(base=base, cap=cap)


def test_the_ceiling_doubles_from_the_base_to_the_cap() -> None:
    backoff = Backoff(base=5.0, cap=60.0)
    assert [backoff.ceiling(failures) for failures in range(1, 7)] == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]


def test_the_first_failure_counts_as_one() -> None:
    assert Backoff(base=5.0, cap=60.0).ceiling(0) == Backoff(base=5.0, cap=60.0).ceiling(1) == 5.0


@pytest.mark.parametrize("failures", [60, 61, 1100, 100_000, 10**30])
@pytest.mark.parametrize(
    "backoff", [Backoff(), Backoff(0.0, 0.0), Backoff(1e-300, 1.0), Backoff(1e308, 1e308)]
)
def test_no_number_of_failures_overflows(backoff: Backoff, failures: int) -> None:
    delay = backoff.delay(failures)
    assert 0.0 <= delay <= min(backoff.cap, MAX_DELAY)


@given(backoff=policies(), failures=st.integers(min_value=-5, max_value=10**9))
def test_a_delay_is_finite_and_between_nothing_and_the_ceiling(backoff: Backoff, failures: int) -> None:
    ceiling = backoff.ceiling(failures)
    assert 0.0 <= backoff.delay(failures) <= ceiling <= min(backoff.cap, MAX_DELAY)
    assert math.isfinite(ceiling)


@given(backoff=policies(), failures=st.integers(min_value=1, max_value=200))
def test_the_ceiling_never_goes_down(backoff: Backoff, failures: int) -> None:
    assert backoff.ceiling(failures) <= backoff.ceiling(failures + 1)


def test_jitter_fills_the_whole_interval() -> None:
    """A herd that failed together is spread from now to the ceiling, not around it."""
    random.seed(5)
    delays = sorted(Backoff(base=100.0, cap=100.0).delay(1) for _ in range(1000))
    assert delays[0] < 5.0
    assert delays[-1] > 95.0
    assert 45.0 < delays[500] < 55.0
    assert all(later - earlier < 5.0 for earlier, later in pairwise(delays))


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, -math.inf, "5", None, True, 1 + 2j])
def test_a_policy_of_something_else_than_seconds_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="base"):
        Backoff(base=value, cap=1e9)
    with pytest.raises(ValueError, match="cap"):
        Backoff(base=0.0, cap=value)


def test_a_cap_below_the_base_is_refused_with_both_named() -> None:
    with pytest.raises(ValueError, match=r"cap \(1\.0\).*base \(2\.0\)"):
        Backoff(base=2.0, cap=1.0)


def test_whole_numbers_will_do() -> None:
    assert Backoff(base=1, cap=10).ceiling(3) == 4.0


# --- what the database can add to a time


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_storable_delay_is_between_now_and_ten_years(seconds: float) -> None:
    assert 0.0 <= storable_delay(seconds) <= MAX_DELAY


@given(st.floats(min_value=0, max_value=MAX_DELAY))
def test_a_delay_that_can_be_stored_stays_as_it_is(seconds: float) -> None:
    assert storable_delay(seconds) == seconds


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
def test_a_delay_that_is_not_finite_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"finite number of seconds, not {seconds}"):
        storable_delay(seconds)


def test_a_huge_whole_number_is_cut() -> None:
    assert storable_delay(10**300) == MAX_DELAY
    assert storable_delay(-(10**300)) == 0.0
    assert storable_delay(10**400) == MAX_DELAY
    assert storable_delay(-(10**400)) == 0.0


@pytest.mark.parametrize("values", [{"base": 10**400}, {"cap": 10**400}])
def test_a_policy_of_numbers_that_no_float_can_hold_is_refused(values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        Backoff(**values)
