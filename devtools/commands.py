"""The commands of dev.py. Each makes the environment it needs and hands over to the tool that does the work.

The exit status is that tool's own; 2 for a mistake in the call, 1 for a preparation that failed.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from devtools import audit as security
from devtools.environments import CACHE, ROOT, SetupError, ensure, main_directory, say
from devtools.interpreters import NoInterpreter, choose
from devtools.legs import MATRIX, Leg, environment
from devtools.running import become, run, summed_up
from devtools.suites import clients, conformance

NO_TESTS_COLLECTED = 5
TOOLS = ("browser", "lint")
FAST = "not slow and not browser"


def main(arguments: Sequence[str], usage: str) -> NoReturn:
    """Run one command and exit with its status."""
    commands = {
        "demo": demo,
        "test": test,
        "lint": lint,
        "audit": audit,
        "matrix": matrix,
        "conformance": conformance,
        "clients": clients,
        "slow": slow,
        "browser": browser,
        "chaos": chaos,
        "soak": soak,
        "bench": bench,
    }
    name, *rest = arguments or ["help"]
    if name in ("help", "-h", "--help"):
        print(usage.strip())
        sys.exit(0)
    if name not in commands:
        sys.exit(_usage_error(f"dev.py knows no command {name!r}: try {', '.join(commands)} or help."))
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(commands[name](rest))
    except (NoInterpreter, SetupError) as error:
        sys.exit(f"[dev] {error}")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def demo(arguments: list[str]) -> int:
    """Run the example shop."""
    become(environment(main_directory()), "-m", "example_project.demo", *arguments)


def test(arguments: list[str]) -> int:
    """Run the suite in the clone's environment; the whole of it in several processes at once."""
    become(environment(main_directory()), "-m", "pytest", *(arguments or spread(_processes())))


def spread(processes: int) -> list[str]:
    """Return the options that let pytest run so many files at a time."""
    return ["-n", str(processes), "--dist", "loadfile"]


def _processes() -> int:
    # Tests of workers wait more than they compute.
    return min((os.cpu_count() or 1) + 1, 4)


def slow(arguments: list[str]) -> int:
    """Run the tests that take minutes."""
    return _marked("slow", environment(main_directory()), arguments)


def browser(arguments: list[str]) -> int:
    """Run the tests that drive a browser."""
    return _marked("browser", environment(CACHE / "tools", *TOOLS), arguments)


def bench(arguments: list[str]) -> int:
    """Run benchmarks; without arguments a few of them, with small sizes."""
    become(environment(main_directory()), "-m", "benchmarks", *(arguments or ["brief", "--short"]))


def chaos(arguments: list[str]) -> int:
    """Run workers under injected faults and judge what they did."""
    become(environment(main_directory()), "-m", "tests.chaos", *arguments)


def soak(arguments: list[str]) -> int:
    """Do that for as many minutes as the first argument says, and watch what grows."""
    minutes, *rest = arguments or ["30"]
    become(environment(main_directory()), "-m", "tests.chaos", "--soak", minutes, *rest)


def lint(arguments: list[str]) -> int:
    """Check format, style, types and migrations; all even if one fails."""
    python = environment(CACHE / "tools", *TOOLS)
    migrations = ["makemigrations", "--check", "--dry-run", "--settings=tests.settings"]
    checks: dict[str, Callable[[], int]] = {
        "ruff check": lambda: run(python, "-m", "ruff", "check", *arguments),
        "ruff format": lambda: run(python, "-m", "ruff", "format", "--check"),
        "mypy": lambda: run(python, "-m", "mypy"),
        "pyright": lambda: run(python, "-m", "pyright", "--pythonpath", str(python)),
        "types of users' code": lambda: run(python, "-m", "devtools.snippets"),
        "missing migrations": lambda: run(
            python, "-m", "devtools.postgres", str(python), "-m", "django", *migrations
        ),
    }
    return summed_up(checks)


def audit(arguments: list[str]) -> int:
    """Look for known dangers, in the package and in what it needs to run; both even if one fails."""
    python = ensure(CACHE / "audit", choose(), ["audit"], [])
    return summed_up(
        {"bandit": lambda: security.bandit(python), "pip-audit": lambda: security.dependencies(python)}
    )


def matrix(arguments: list[str]) -> int:
    """Run the fast suite on each leg; a leg that cannot run has failed."""
    names = [leg.name for leg in MATRIX]
    unknown = set(arguments) - set(names)
    if unknown:
        return _usage_error(f"No leg {', '.join(sorted(unknown))}: choose from {', '.join(names)}.")
    legs = [leg for leg in MATRIX if not arguments or leg.name in arguments]
    return summed_up({str(leg): lambda leg=leg: _run_leg(leg) for leg in legs})  # type: ignore[misc]


def _run_leg(leg: Leg) -> int:
    try:
        python = leg.environment()
    except (NoInterpreter, SetupError) as error:
        say(str(error))
        return 1
    env = {"DATABASE_URL": "", "PGQUEUE_POSTGRES": str(leg.postgres)}
    chosen = f"{FAST} and not process"  # real workers are tried by `test`, once and alone on the machine
    return run(python, "-m", "pytest", "-m", chosen, *spread(2), "-p", "no:cacheprovider", env=env)


def _marked(marker: str, python: Path, arguments: list[str]) -> int:
    status = run(python, "-m", "pytest", "-m", marker, *arguments)
    if status == NO_TESTS_COLLECTED and not arguments and not _is_used(marker):
        say(f"no test is marked {marker}")
        return 0
    return status


def _is_used(marker: str) -> bool:
    """Tell whether any test file names the marker, so that a mistake in collecting cannot pass for "none"."""
    mark = re.compile(rf"\bmark\.{marker}\b")
    return any(mark.search(path.read_text()) for path in Path("tests").rglob("*.py"))


def _usage_error(message: str) -> int:
    print(message, file=sys.stderr)
    return 2
