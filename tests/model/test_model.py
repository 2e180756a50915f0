"""Random histories of verbs from several sessions, compared with the model; seeded bugs, which it must find.

``PGQUEUE_MODEL_STEPS`` asks for more steps, ``--hypothesis-seed`` for other or the same ones.
"""

import os

import psycopg
import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import run_state_machine_as_test

from devtools.databases import database_url

from .machine import VerbsAndModel, machine_on
from .seeds import SEEDS, Seed

pytestmark = pytest.mark.django_db(transaction=True)

STEPS_OF_A_HISTORY = 80
MANY_STEPS = int(os.environ.get("PGQUEUE_MODEL_STEPS") or 10_000)
MOST_HISTORIES_UNTIL_FOUND = 400
FOUND = (AssertionError, psycopg.Error, LookupError, TypeError, FlakyFailure)
"""How a bug shows: a difference, an error of the server, a state that the model cannot go on from, or
a history that ends in another way when it is played again."""
QUICKLY_FOUND = ("complete without the token", "rescue does not look again", "prune leaves the attempts")
"""Every run looks for these: a dropped fence, a dropped second look, rows left behind."""


def play(machine: type[VerbsAndModel], histories: int, *phases: Phase) -> None:
    """Play so many random histories; raises what the first one that fails raises."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=histories,
            stateful_step_count=STEPS_OF_A_HISTORY,
            phases=phases,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def play_steps(steps: int) -> dict[str, int]:
    """Play until so many steps have been compared; return what happened, and how often."""
    with machine_on(database_url(connection.settings_dict)) as machine:
        while machine.place.steps < steps:
            missing = steps - machine.place.steps
            play(machine, missing // STEPS_OF_A_HISTORY + 1, Phase.generate, Phase.shrink)
        return dict(machine.place.happened)


def test_verbs_do_what_the_model_says() -> None:
    assert play_steps(800)["answered done"] > 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_verbs_do_what_the_model_says_for_long() -> None:
    happened = play_steps(MANY_STEPS)
    assert [what for what, often in happened.items() if not often] == [], "never tried with an effect"
    for what in ("had to wait", "answered done", "answered lost", "answered locked"):
        assert happened[what], f"{what}: {happened}"


@pytest.mark.parametrize("seed", [seed for seed in SEEDS if seed.bug in QUICKLY_FOUND], ids=str)
def test_a_seeded_bug_is_found(seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_found(seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [seed for seed in SEEDS if seed.bug not in QUICKLY_FOUND], ids=str)
def test_any_seeded_bug_is_found(seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_found(seed, monkeypatch)


def assert_found(seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a bug and play until database and model differ, or a constraint of the schema refuses it."""
    seed.plant(monkeypatch)
    with machine_on(database_url(connection.settings_dict)) as machine:
        with pytest.raises(FOUND):
            play(machine, MOST_HISTORIES_UNTIL_FOUND, Phase.generate)
        assert machine.place.steps > 0
