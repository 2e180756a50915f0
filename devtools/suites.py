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
    """A published package; the tests are in tests/clients/FOLDER.

    `oldest` is the oldest Django that its own published requirements allow. `apart` is why it cannot share an
    environment with the others.
    """

    name: str
    folder: str
    requirement: str
    oldest: str = "6.0"
    apart: str = ""

    def environment(self, django: str) -> Path:
        """Make the environment and return its Python. Raises NoInterpreter and SetupError."""
        if django not in self.djangos:
            raise NoInterpreter(f"{self.requirement} requires Django {self.oldest} or newer.")
        interpreter = choose(PYTHONS[django])
        if interpreter.version < (3, 12):
            raise NoInterpreter(
                f"{self.name} needs Python 3.12 or newer; the newest found is {interpreter.minor}."
            )
        together = [one for one in CLIENTS if not one.apart and django in one.djangos]
        members = [self] if self.apart else together
        name = f"client-{self.name}" if self.apart else "clients"
        extras = ["test", "backport"] if django == "5.2" else ["test"]
        pins = [f"Django=={django}.*", *(one.requirement for one in members)]
        return ensure(CACHE / f"{name}-django{django}", interpreter, extras, pins)

    @property
    def djangos(self) -> tuple[str, ...]:
        """The versions that it can be tested on, newest first."""
        return tuple(django for django in PYTHONS if django >= self.oldest)


PYTHONS = {"6.1": None, "6.0": "3.12", "5.2": "3.12"}
"""Each Django, newest first, with the Python that it runs on; None is the newest."""
CLIENTS = (
    Client("wagtail", "wagtail_site", "wagtail==8.0.1", "5.2", apart="it brings the backport"),
    Client("maintenance", "maintenance", "django-maintenance-tasks==0.2.1"),
    Client("monitor", "monitor", "django-tasks-monitor==0.1.0"),
    Client("crontask", "timetable", "django-crontask==2.0.1"),
    Client("tasks-db", "migration", "django-tasks-db==0.13.0", "5.2"),
)


def conformance(arguments: list[str]) -> int:
    """Run Django's own tests on each Django that some Python here can run; arguments go to pytest."""
    return _closing_lines({str(leg): _conformance(leg, arguments) for leg in MATRIX})


def clients(arguments: list[str]) -> int:
    """Run the tests of all clients, or of those that are named; on the newest Django, with --all on each."""
    names = [client.name for client in CLIENTS]
    chosen = [name for name in arguments if not name.startswith("-")]
    unknown = set(chosen) - set(names)
    if unknown:
        say(f"No client {', '.join(sorted(unknown))}: choose from {', '.join(names)}.")
        return 2
    options = [argument for argument in arguments if argument.startswith("-") and argument != "--all"]
    djangos = list(PYTHONS) if "--all" in arguments else list(PYTHONS)[:1]
    return _closing_lines(
        {
            f"{client.name}, Django {django}": _client(client, django, options)
            for django in djangos
            for client in CLIENTS
            if not chosen or client.name in chosen
        }
    )


def _conformance(leg: Leg, arguments: list[str]) -> Callable[[], Outcome]:
    def run() -> Outcome:
        env = {"DATABASE_URL": "", "PGQUEUE_POSTGRES": str(leg.postgres)}
        return run_pytest(leg.environment(), "-m", "tests.conformance", *arguments, env=env)

    return run


def _client(client: Client, django: str, options: list[str]) -> Callable[[], Outcome]:
    def run() -> Outcome:
        suite = f"tests/clients/{client.folder}/suite.py"
        settings = f"--ds=tests.clients.{client.folder}.settings"
        return run_pytest(client.environment(django), "-m", "pytest", suite, settings, *PLAIN, *options)

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
