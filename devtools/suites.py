"""Tests by what others wrote: Django's own of the Tasks API, and published packages that use a backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from devtools.environments import CACHE, ensure, say
from devtools.interpreters import NoInterpreter, choose
from devtools.legs import MATRIX, Leg
from devtools.running import Outcome, run_pytest

# Their databases take long to make on a busy machine.
PLAIN = ("-p", "no:cacheprovider", "--timeout=600")


class Client(NamedTuple):
    """A published package in an environment of its own; the tests are in tests/clients/FOLDER."""

    name: str
    folder: str
    requirement: str

    def environment(self) -> Path:
        """Make the environment and return its Python. Raises NoInterpreter and SetupError."""
        interpreter = choose()
        if interpreter.version < (3, 12):
            raise NoInterpreter(
                f"{self.name} needs Python 3.12 or newer; the newest found is {interpreter.minor}."
            )
        pins = ["Django==6.1.*", self.requirement]
        return ensure(CACHE / f"client-{self.name}", interpreter, ["test"], pins)


CLIENTS = (
    Client("wagtail", "wagtail_site", "wagtail==8.0.1"),
    Client("maintenance", "maintenance", "django-maintenance-tasks==0.2.1"),
    Client("monitor", "monitor", "django-tasks-monitor==0.1.0"),
    Client("crontask", "timetable", "django-crontask==2.0.1"),
    Client("tasks-db", "migration", "django-tasks-db==0.13.0"),
)


def conformance(arguments: list[str]) -> int:
    """Run Django's own tests on each Django that some Python here can run; arguments go to pytest."""
    return _closing_lines({str(leg): _conformance(leg, arguments) for leg in MATRIX})


def clients(arguments: list[str]) -> int:
    """Run the tests of all clients, or of those that are named."""
    names = [client.name for client in CLIENTS]
    chosen = [name for name in arguments if not name.startswith("-")]
    unknown = set(chosen) - set(names)
    if unknown:
        say(f"No client {', '.join(sorted(unknown))}: choose from {', '.join(names)}.")
        return 2
    options = [argument for argument in arguments if argument.startswith("-")]
    return _closing_lines(
        {client.name: _client(client, options) for client in CLIENTS if not chosen or client.name in chosen}
    )


def _conformance(leg: Leg, arguments: list[str]) -> Callable[[], Outcome]:
    def run() -> Outcome:
        env = {"DATABASE_URL": "", "PGQUEUE_POSTGRES": str(leg.postgres)}
        return run_pytest(leg.environment(), "-m", "tests.conformance", *arguments, env=env)

    return run


def _client(client: Client, options: list[str]) -> Callable[[], Outcome]:
    def run() -> Outcome:
        suite = f"tests/clients/{client.folder}/suite.py"
        settings = f"--ds=tests.clients.{client.folder}.settings"
        return run_pytest(client.environment(), "-m", "pytest", suite, settings, *PLAIN, *options)

    return run


def _closing_lines(runs: Mapping[str, Callable[[], Outcome]]) -> int:
    """Run all, then print pytest's closing line of each; 1 if any failed or none could run."""
    outcomes: dict[str, Outcome | None] = {}
    said: dict[str, str] = {}
    for name, run in runs.items():
        say(name)
        try:
            outcomes[name] = outcome = run()
            said[name] = outcome.closing
        except NoInterpreter as error:
            outcomes[name] = None
            said[name] = f"not run: {error}"
    for name, line in said.items():
        say(f"{name}: {line}")
    ran = [outcome for outcome in outcomes.values() if outcome]
    return int(not ran or any(outcome.status for outcome in ran))
