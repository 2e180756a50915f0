"""The figures: recovery after a fault, the schedule that a seed draws, and slopes."""

from itertools import islice

import pytest

from ..processes.nursery import ROOT
from .faults import FAULTS
from .growth import trend
from .measuring import Injected, Load, lines, rate, recoveries
from .schedule import chosen, drawn

STEADY = [n / 100 for n in range(6000)]
"""A hundred a second for a minute."""


def pausing(began: float, ended: float) -> Load:
    """A load of which nothing is done in a time; what was asked for then is done in the second after."""
    held = [at for at in STEADY if began <= at < ended]
    done = [at for at in STEADY if not began <= at < ended] + [
        ended + n / max(len(held), 1) for n in range(len(held))
    ]
    return Load(STEADY, sorted(done))


def test_where_nothing_happens_recovery_takes_no_time() -> None:
    (recovery,) = recoveries(Load(STEADY, STEADY), [Injected("x", 20.0, 20.0)])
    assert (recovery.seconds, recovery.share) == (0.0, 1.0)


def test_a_pause_after_the_fault_is_its_recovery() -> None:
    (recovery,) = recoveries(pausing(20.0, 22.0), [Injected("x", 20.0, 20.0)])
    assert recovery.seconds == pytest.approx(2.0, abs=0.3)
    assert recovery.share == pytest.approx(1.0, abs=0.01), "what was held up is done within the five seconds"


def test_what_never_comes_back_is_stated_as_the_whole_patience() -> None:
    load = Load([n / 10 for n in range(10_000)], [n / 10 for n in range(200)])
    (recovery,) = recoveries(load, [Injected("x", 20.0, 20.0)])
    assert (recovery.seconds, recovery.share) == (pytest.approx(60.0, abs=0.1), 0.0)


def test_the_clock_stands_while_another_fault_goes_on() -> None:
    faults = [Injected("x", 20.0, 20.0), Injected("outage", 20.5, 24.0)]
    first, _ = recoveries(pausing(20.0, 25.0), faults)
    assert first.seconds == pytest.approx(1.0, abs=0.3), "half a second before the outage, the rest after"


def test_a_fault_that_could_not_be_done_is_not_measured() -> None:
    assert recoveries(Load(STEADY, STEADY), [Injected("x", 20.0, 20.0, "no such thing")]) == []


def test_a_line_says_the_median_and_the_worst() -> None:
    faults = [Injected("x", at, at) for at in (10.0, 20.0, 30.0)]
    found = recoveries(pausing(20.0, 22.0), faults)
    (line,) = lines(found, [19.0, 20.4, 31.0], faults)
    assert (line.name, line.count, line.median) == ("x", 3, 0.0)
    assert line.worst == pytest.approx(2.0, abs=0.3)
    assert line.again == 2, "the last was lost long after every fault"


def test_throughput_is_the_median_of_whole_seconds() -> None:
    assert rate(pausing(20.0, 22.0).done, 10.0, 30.0) == 100


# --- the schedule


def test_a_seed_draws_the_same_faults_again() -> None:
    faults = chosen([])
    assert [f.name for f in islice(drawn(7, faults), 200)] == [f.name for f in islice(drawn(7, faults), 200)]
    assert [f.name for f in islice(drawn(7, faults), 50)] != [f.name for f in islice(drawn(8, faults), 50)]


def test_every_fault_comes_once_before_any_comes_again() -> None:
    first = [fault.name for fault in islice(drawn(7, chosen([])), len(FAULTS))]
    assert sorted(first) == sorted(FAULTS)


def test_an_unknown_fault_is_named() -> None:
    with pytest.raises(ValueError, match="no fault 'earthquake'"):
        chosen(["earthquake"])


def test_every_fault_says_what_it_does() -> None:
    assert {name for name, fault in FAULTS.items() if not fault.about} == set()


# --- slopes


@pytest.mark.parametrize(
    ("name", "values", "flat"),
    [
        ("memory of a child, MB", [60.0] * 200, True),
        ("memory of a child, MB", [30.0] * 50 + [60.0] * 150, True),
        ("memory of a child, MB", [60.0 + n / 10 for n in range(200)], False),
        ("memory of a child, MB", [60.0 - n / 10 for n in range(200)], True),
        ("connections of workers", [20.0 + n % 3 for n in range(200)], True),
        ("connections of workers", [20.0 + n / 20 for n in range(200)], False),
        ("size of job, MB", [300.0 if n == 150 else 40.0 for n in range(200)], True),
    ],
)
def test_a_series_is_flat_or_grows(name: str, values: list[float], flat: bool) -> None:
    assert trend(name, [(5.0 * n, value) for n, value in enumerate(values)]).is_flat is flat


def test_the_documentation_says_what_each_fault_does() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    missing = [name for name, fault in FAULTS.items() if f"| {name} | {fault.about} |" not in page]
    assert missing == []
