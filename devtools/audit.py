"""Looks for what is known to be dangerous: bandit over the package, pip-audit over what it depends on.

A finding of bandit must have been answered in the source: by ``noqa`` with ruff's number of the same rule,
which is where its reason stands already, by ``nosec``, or by ruff's list of files for a rule.  pip-audit asks
a service about known vulnerabilities; where that cannot be reached nothing was audited, which is said and is
no failure.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from devtools.environments import ROOT, clean_environ, say

PACKAGE = "django_pgqueue"
SERVICE_LIMIT = 120.0
"""Seconds that pip-audit has."""


def bandit(python: Path) -> int:
    """Run bandit over the package; 1 for a finding that nobody has answered."""
    report = json.loads(_output(python, "bandit", "-q", "-f", "json", "-c", "pyproject.toml", "-r", PACKAGE))
    for error in report["errors"]:
        say(f"bandit could not read {error['filename']}: {error['reason']}")
    findings = list(unanswered(report["results"], ROOT))
    for finding in findings:
        say(f"{finding['filename']}:{finding['line_number']}: {finding['test_id']} {finding['issue_text']}")
    lines = report["metrics"]["_totals"]["loc"]
    say(f"bandit: {len(findings)} unanswered of {len(report['results'])} findings in {lines} lines")
    return int(bool(findings or report["errors"] or not lines))


def unanswered(findings: Iterable[Mapping[str, Any]], root: Path) -> Iterable[Mapping[str, Any]]:
    """Yield the findings whose lines do not say why they are right."""
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    for finding in findings:
        rule = re.sub("^B", "S", finding["test_id"])
        ignored = any(
            fnmatch(finding["filename"], pattern) and rule in rules
            for pattern, rules in ruff["per-file-ignores"].items()
        )
        lines = (root / finding["filename"]).read_text().splitlines()
        said = "\n".join(lines[number - 1] for number in finding["line_range"])
        if not ignored and not re.search(rf"# noqa: [\w, ]*\b{rule}\b", said):
            yield finding


def dependencies(python: Path) -> int:
    """Run pip-audit over what is installed; 1 for a known vulnerability."""
    try:
        said = _output(python, "pip_audit", "--format", "json", "--progress-spinner", "off", "--local")
        report = json.loads(said)
    except (subprocess.TimeoutExpired, ValueError) as error:
        say(f"pip-audit: nothing was audited, its service did not answer ({type(error).__name__})")
        return 0
    status, sentence = verdict(report["dependencies"])
    say(sentence)
    return status


def verdict(packages: Iterable[Mapping[str, Any]]) -> tuple[int, str]:
    """Return an exit status and what to say about pip-audit's list of packages."""
    listed = [package for package in packages if package["name"] != "django-pgqueue-tasks"]
    audited = [package for package in listed if "skip_reason" not in package]
    known = [
        f"{package['name']} {package['version']}: {vulnerability['id']}, mended in "
        f"{', '.join(vulnerability['fix_versions']) or 'no version'}"
        for package in audited
        for vulnerability in package["vulns"]
    ]
    if known:
        return 1, "pip-audit: " + "; ".join(known)
    if not audited:
        return 0, f"pip-audit: nothing was audited, its service knows none of {len(listed)} packages here"
    skipped = f", {len(listed) - len(audited)} that it does not know" if len(audited) < len(listed) else ""
    return 0, f"pip-audit: nothing known against {len(audited)} packages{skipped}"


def _output(python: Path, module: str, *arguments: str) -> str:
    command = [str(python), "-m", module, *arguments]
    done = subprocess.run(
        command, env=clean_environ(), cwd=ROOT, capture_output=True, text=True, timeout=SERVICE_LIMIT
    )
    if not done.stdout.strip():
        sys.stderr.write(done.stderr[-2000:])
    return done.stdout
