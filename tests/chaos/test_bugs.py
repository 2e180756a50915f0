"""Runs of a product with a bug in it: the harness must find each, whole as it is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..processes.nursery import ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]

FOUND_BY = {
    "rescue-too-early": ("kill the keeper", {"executions_do_not_overlap", "losses_are_explained"}),
    "no-fence": ("freeze a worker", {"lease_version_only_grows", "owners_do_not_overlap"}),
    "enqueue-apart": ("kill a child", {"rolled_back_jobs_left_nothing"}),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_bug_is_found(bug: str, tmp_path: Path) -> None:
    fault, rules = FOUND_BY[bug]
    figures = tmp_path / "figures.json"
    words = ["--bug", bug, "--only", fault, "--minutes", "0.4", "--seed", "1", "--json", str(figures)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr
    broken = {violation.partition(":")[0] for violation in json.loads(figures.read_text())["violations"]}
    assert broken & rules, f"found only {broken}:\n{done.stdout}"
