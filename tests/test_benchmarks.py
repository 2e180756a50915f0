"""The benchmarks measure what they say: arithmetic, marks, lanes, JSON, and one small drain."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from benchmarks import __main__ as command
from benchmarks import report, svg
from benchmarks.contenders.registry import PEERS
from benchmarks.core import draining, statistics
from benchmarks.core.lanes import CannotRun, Lane, Race, Sample, race
from benchmarks.core.processes import Failed
from benchmarks.core.results import lines_of, read, result, write
from benchmarks.marks import Marks
from benchmarks.suite.registry import BENCHMARKS
from devtools.environments import ROOT

KEYS = {"name", "unit", "runs", "median", "min", "max", "versions", "machine", "ratios"}


# --- the arithmetic


@pytest.mark.parametrize(("percent", "value"), [(1, 1), (50, 50), (99, 99), (99.5, 100), (100, 100)])
def test_a_percentile_is_a_value_that_was_seen(percent: float, value: int) -> None:
    assert statistics.percentile(range(1, 101), percent) == value


def test_a_percentile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        statistics.percentile([], 50)


def test_a_ratio_is_the_median_of_pairs_not_the_ratio_of_medians() -> None:
    assert statistics.ratio_of_pairs([10, 20, 90], [10, 10, 30]) == 2
    assert statistics.ratio_of_pairs([10, 20, 90], [10]) == 1


def test_facts_are_medians_where_they_are_numbers() -> None:
    samples = [{"ms": 3, "plan": "a"}, {"ms": 1, "plan": "b", "late": 5}, {"ms": 2, "plan": "c"}]
    assert statistics.medians(samples) == {"ms": 2, "plan": "c", "late": 5}


def test_a_slope_is_that_of_the_line_through_the_points() -> None:
    assert statistics.slope([(0, 1), (1, 3), (2, 5)]) == pytest.approx(2)
    assert statistics.slope([(1, 1), (1, 9)]) == 0
    assert statistics.slope([]) == 0


def test_tenths_are_rates_over_jobs_not_over_time() -> None:
    samples = [(0.0, 0), (1.0, 500), (6.0, 1000)]
    first, last = draining.tenths(samples)
    assert (first, last) == (pytest.approx(500), pytest.approx(100))


def test_a_curve_has_the_rate_of_each_part() -> None:
    assert draining.curve([(0.0, 0), (1.0, 500), (6.0, 1000)], parts=2) == [[500, 500.0], [1000, 100.0]]


# --- the marks


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks.make(tmp_path / "marks", 100)


def test_marks_count_the_jobs_that_started(marks: Marks, tmp_path: Path) -> None:
    assert (marks.count(), marks.first, marks.process) == (0, 0.0, 0)
    task = Marks(tmp_path / "marks")  # another process has its own view of the file
    task.run(0)
    task.run(99)
    assert (marks.count(), marks.doubles(), marks.process) == (2, 0, os.getpid())
    assert marks.first > 0


def test_marks_tell_a_job_that_ran_twice(marks: Marks) -> None:
    for _ in range(300):
        marks.run(7)
    assert (marks.count(), marks.doubles()) == (1, 1)


def test_marks_keep_how_long_jobs_waited(marks: Marks) -> None:
    marks.run(1)
    marks.wait(2, since=0.0)
    assert list(marks.waits()) == [2]


# --- lanes


def lane(name: str, seen: list[str], values: list[float] | Exception) -> Lane:
    def measure() -> Sample:
        seen.append(name)
        if isinstance(values, Exception):
            raise values
        return Sample(values.pop(0))

    return Lane(name, measure)


def test_lanes_alternate_and_every_other_round_goes_backwards() -> None:
    seen: list[str] = []
    outcome = race([lane("ours", seen, [1, 2]), lane("peer", seen, [3, 4])], 2, "x", say=lambda _: None)
    assert seen == ["ours", "peer", "peer", "ours"]
    assert (outcome.values("ours"), outcome.values("peer")) == ([1, 2], [3, 4])


@pytest.mark.parametrize("error", [CannotRun("node is not on PATH"), Failed("no job started")])
def test_a_peer_that_cannot_run_is_reported_and_the_others_go_on(error: Exception) -> None:
    seen: list[str] = []
    said: list[str] = []
    outcome = race([lane("ours", seen, [1, 2]), lane("peer", seen, error)], 2, "x", said.append)
    assert outcome.values("ours") == [1, 2]
    assert outcome.failures == {"peer": f"cannot run here: {error}"}
    assert seen.count("peer") == 1
    assert any("cannot run here" in line for line in said)


def test_without_the_first_lane_there_is_no_result() -> None:
    with pytest.raises(Failed):
        race([lane("ours", [], Failed("broken")), lane("peer", [], [1.0])], 1, "x", say=lambda _: None)


def test_a_peer_whose_environment_cannot_be_made_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> None:
        raise CannotRun("Redis (redis-server) is not on PATH")

    peers = [SimpleNamespace(name="celery", prepare=refuse), SimpleNamespace(name="other", prepare=bool)]
    ready, failures = command.prepared(peers)
    assert [peer.name for peer in ready] == ["other"]
    assert failures == {"celery": "cannot run here: Redis (redis-server) is not on PATH"}
    assert "cannot run here" in capsys.readouterr().out


# --- results


@pytest.fixture
def outcome() -> dict:
    samples = {
        "ours": [Sample(300, {"p99_ms": 4}), Sample(100, {"p99_ms": 2}), Sample(200, {"p99_ms": 3})],
        "peer": [Sample(100), Sample(100), Sample(50)],
    }
    return result(
        name="drain",
        unit="jobs/s",
        about="no-op jobs",
        race=Race(samples, {"celery": "cannot run here: no redis-server"}),
        main="ours",
        pairs=[("peer", "ours", "peer"), ("celery", "ours", "celery")],
        versions={"postgresql": "18.0"},
        machine={"cores": 2, "load": 0.5},
        better="higher",
        size=3,
        sized="jobs",
        plans={"ours": "Index Scan"},
    )


def test_a_result_has_the_keys_that_readers_rely_on(outcome: dict, tmp_path: Path) -> None:
    write(outcome, tmp_path / "deep" / "drain.json")
    stored = read(tmp_path / "deep" / "drain.json")
    assert stored.keys() >= KEYS
    assert (stored["runs"], stored["median"], stored["min"], stored["max"]) == (
        [300, 100, 200],
        200,
        100,
        300,
    )
    assert stored["ratios"] == {"peer": 3}
    assert stored["p99_ms"] == 3
    assert stored["failures"] == {"celery": "cannot run here: no redis-server"}


def test_people_read_the_medians_the_ratios_and_what_could_not_run(outcome: dict) -> None:
    said = "\n".join(lines_of(outcome))
    assert "drain, ours: median 200 jobs/s (min 100, max 300, 3 runs)" in said
    assert "ours / peer: 3" in said
    assert "celery: cannot run here: no redis-server" in said
    assert "postgresql 18.0" in said


def test_the_page_shows_every_result(outcome: dict) -> None:
    page = report.page([outcome])
    assert "## drain" in page
    assert "| django_pgqueue | 200 | 100 – 300 |" in page
    assert "```text\nIndex Scan\n```" in page
    assert "celery: cannot run here" in page
    assert set(report.plots([outcome])) == {"drain.svg"}


def test_the_page_of_the_documentation_is_that_of_the_stored_results() -> None:
    found = report.load(report.FOLDER)
    assert report.PAGE.read_text() == report.page(found), "run: python -m benchmarks.report"
    for name, plot in report.plots(found).items():
        assert (report.FOLDER / name).read_text() == plot


@pytest.mark.parametrize(
    "draw",
    [
        lambda: svg.bars("a < b", [svg.Bar("x & y", 1, 0.5, 2, True, "1")]),
        lambda: svg.lines("rates", "jobs", "jobs/s", [svg.Line("ours", [[1, 2], [3, 4]])]),
    ],
)
def test_plots_are_well_formed(draw: Callable[[], str]) -> None:
    assert ElementTree.fromstring(draw()).tag.endswith("svg")


# --- the command


def test_every_benchmark_has_a_short_size() -> None:
    assert all(0 < benchmark.short < benchmark.size for benchmark in BENCHMARKS.values())
    assert set(command.BRIEF) < set(BENCHMARKS)


def test_peers_are_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.parser().parse_args(["drain", "--vs", "pgqueuer, celery"]).vs == ["pgqueuer", "celery"]
    assert command.parser().parse_args(["drain", "--vs", "all"]).vs == list(PEERS)
    with pytest.raises(SystemExit):
        command.parser().parse_args(["drain", "--vs", "sidekiq"])
    assert "no peer sidekiq; there are graphile-worker" in capsys.readouterr().err


@pytest.mark.process
def test_a_small_drain_from_end_to_end(tmp_path: Path) -> None:
    stored = tmp_path / "drain.json"
    arguments = ["drain", "--size", "200", "--runs", "2", "--json", str(stored)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = json.loads(stored.read_text())
    assert outcome.keys() >= KEYS
    assert (len(outcome["runs"]), outcome["attempts_kept"], outcome["size"]) == (2, 200, 200)
    assert set(outcome["lanes"]) == {"ours", "ours, defaults", "limit"}
    assert outcome["ratios"]["limit"] > 0
    assert outcome["versions"].keys() >= {"fsync", "synchronous_commit", "full_page_writes", "postgresql"}
    assert "run 1 of 2, ours:" in done.stdout
