"""Makes the history of a run from its record files, its tables and what was seen meanwhile."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import psycopg

from . import recording, tables, tasks
from .arena import Arena
from .harvest import Harvest
from .history import Asked, Execution, History, Ledger, Write
from .sampling import Deaths, Looks
from .worker import LEASE, RESCUE_EVERY


def gather(arena: Arena, looks: Looks, deaths: Deaths, harvest: Harvest | None) -> History:
    """Return the whole history; the workers must have ended or stand still."""
    history = History(LEASE, RESCUE_EVERY, tasks.KINDS)
    facts = list(recording.read(arena.record))
    history.asked = _asked(facts) + [Asked(tag, kind, outcome, at) for at, tag, kind, outcome in arena.asked]
    history.executions = _executions(facts)
    history.writes = _writes(arena)
    with arena.admin() as session, session.transaction():
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        _read_tables(history, session)
    if harvest:
        _add_harvest(history, harvest)
    transfers = {asked.tag for asked in history.asked if asked.kind == "transfer"}
    made = sum(state.status == "succeeded" for state in history.states if state.tag in transfers)
    history.ledger = replace(history.ledger, asked=made) if history.ledger else None
    history.attempts = [_readable(attempt) for attempt in history.attempts]
    history.sightings, history.overdue = looks.sightings, looks.overdue
    history.troubles = arena.troubles + [trouble for seat in arena.seats for trouble in seat.troubles]
    history.forgotten = arena.forgotten
    history.deaths = deaths.deaths(_explained(facts, history))
    history.workers = [end for seat in arena.seats for end in seat.ends()]
    return history


def _read_tables(history: History, session: psycopg.Connection) -> None:
    history.states = tables.states(session)
    history.attempts = tables.attempts(session)
    history.orders = tables.orders(session)
    history.effects = tables.effects(session)
    closing, transfers = tables.balances(session)
    history.ledger = Ledger(tables.PEOPLE * tables.OPENING_BALANCE, closing, transfers, asked=0)


def _add_harvest(history: History, harvest: Harvest) -> None:
    """Add what has been pruned since it was taken."""
    here = {state.job_id for state in history.states}
    history.states += [state for job_id, state in harvest.states.items() if job_id not in here]
    history.attempts += [attempt for (job_id, _), attempt in harvest.attempts.items() if job_id not in here]


def _readable(attempt: Any) -> Any:
    """Take the returned text out of its JSON."""
    value = attempt.value
    if isinstance(value, str) and value.startswith('"'):
        object.__setattr__(attempt, "value", json.loads(value))
    return attempt


def _asked(facts: Iterable[tuple[int, list[Any]]]) -> list[Asked]:
    return [Asked(fact[2], fact[3], fact[4], fact[0]) for _, fact in facts if fact[1] == recording.ASKED]


def _executions(facts: list[tuple[int, list[Any]]]) -> list[Execution]:
    ends = {fact[5]: (fact[0], fact[4]) for _, fact in facts if fact[1] == recording.ENDED}
    return [
        Execution(fact[2], fact[3], fact[4], fact[5], pid, fact[0], *ends.get(fact[6], (None, "")), fact[6])
        for pid, fact in facts
        if fact[1] == recording.BEGAN
    ]


def _writes(arena: Arena) -> list[Write]:
    return [
        Write(path.stem, *map(int, line.split()))
        for path in sorted(arena.record.glob("*.store"))
        for line in path.read_text().splitlines()
    ]


def _explained(facts: Iterable[tuple[int, list[Any]]], history: History) -> set[int]:
    """Processes that killed themselves on purpose, and those that a fault held up."""
    own = {pid for pid, fact in facts if fact[1] == recording.DIES}
    return own.union(*(trouble.pids for trouble in history.troubles if trouble.pids))
