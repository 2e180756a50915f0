"""Real sessions beside the model's: their transactions, how a verb is given to both, and who is meant by it.

Two sessions may keep transactions open over many steps, end them, or lose them with their backend. A third is
slow (``slowness``). A verb that must wait for another session gives up after ``LOCK_TIMEOUT``; the model says
when.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from django_pgqueue import sql
from django_pgqueue.records import Fence, WorkerIdentity
from django_pgqueue.states import (
    READY,
)

from .world import SOON, Blocked, Row, Step, World

HOUR = 3600.0
LOCK_TIMEOUT = "10ms"
MOST_JOBS = 12
HELD_OPEN = (0, 1)
"""The sessions that keep transactions open; the slow one comes after them."""
SLOW = 2
WORKERS = [WorkerIdentity(f"worker-{n}", "host", n) for n in (1, 2)]

sessions = st.sampled_from(HELD_OPEN)
picks = st.integers(0, MOST_JOBS - 1)
batches = st.lists(picks, min_size=1, max_size=3, unique=True)
switches = st.booleans()
keys = st.sampled_from(["a", "b"])
delays = st.sampled_from([None, SOON, HOUR])
backoffs = st.sampled_from([0.0, HOUR])
workers = st.sampled_from(WORKERS)
HELD, HELD_ONCE, MADE_UP = "held", "held once", "made up"
proofs = st.sampled_from([HELD, HELD, HELD_ONCE, MADE_UP])
"""Mostly the fence of a running job; else any that was ever given, or one with another token or version."""


class Place:
    """The database that the machine works on: its URL, and what has happened there so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.steps = 0
        self.happened: Counter[str] = Counter()
        """How often each verb changed something, and how often a verb had to wait or met a lock."""


class Sessions(RuleBasedStateMachine):
    """See the module. ``place`` is set by ``machine_on``."""

    place: Place

    def __init__(self) -> None:
        super().__init__()
        self.world = World(sessions=3)
        self.observer = psycopg.connect(self.place.url, autocommit=True, options="-c statement_timeout=5s")
        self.real = [self._connect() for _ in self.world.sessions]
        self.fences: list[Fence] = []
        self.last_position = 0

    def _connect(self) -> psycopg.Connection:
        session = psycopg.connect(self.place.url, autocommit=True)
        session.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'; SET statement_timeout = '20s'")
        return session

    def teardown(self) -> None:
        for session in (*self.real, self.observer):
            session.close()

    # --- one step: the real verb and the model's

    def _do(
        self, verb: str, me: int, act: Callable[[psycopg.Connection], Any], predict: Callable[[], Step]
    ) -> None:
        """Give a verb to both and compare their answers."""
        session = self.real[me]
        try:
            step = predict()
        except Blocked:
            self._must_wait(me, lambda: act(session))
            return
        answer = act(session)
        assert answer == step.answer, f"it answered {answer}, the model {step.answer}"
        self._learn_positions(me, step)
        self.world.apply(me, step)
        self._note(verb, step)

    def _note(self, verb: str, step: Step) -> None:
        happened = self.place.happened
        happened[verb] += bool(step.changed)
        if isinstance(step.answer, dict):
            happened.update(f"answered {said.result}" for said in step.answer.values())

    def _must_wait(self, me: int, act: Callable[[], Any]) -> None:
        try:
            answer = act()
        except psycopg.errors.LockNotAvailable:
            self._roll_back(me)
            self.place.happened["had to wait"] += 1
            return
        raise AssertionError(f"should have waited for another session, and answered {answer}")

    def _learn_positions(self, me: int, step: Step) -> None:
        """Whatever has just become ready stands behind all that was ready before."""
        before = self.world.view(me)
        ready = [
            i
            for i, row in step.changed.items()
            if row is not None and row.status == READY and (i not in before or before[i] != row)
        ]
        query = f"SELECT job_id, position FROM {sql.STATE} WHERE job_id = ANY(%s) AND position IS NOT NULL"
        positions = dict(self.real[me].execute(query, [ready]).fetchall()) if ready else {}
        assert positions.keys() == set(ready), f"jobs {ready} became ready, and have positions {positions}"
        assert all(place > self.last_position for place in positions.values()), "not at the tail of the queue"
        for i, place in zip(sorted(ready), sorted(positions.values()), strict=True):
            row = step.changed[i]
            assert row is not None
            step.changed[i] = replace(row, position=place)
            self.last_position = place
            if positions[i] != place:
                # Of jobs that become ready together any may be first. A history must be the same each time
                # it is played, so they are put into the order of their ids.
                self.real[me].execute(f"UPDATE {sql.STATE} SET position = %s WHERE job_id = %s", [place, i])

    # --- transactions

    def _is_idle(self) -> bool:
        return not all(self.world.sessions[me].open for me in HELD_OPEN)

    @precondition(_is_idle)
    @rule(me=sessions, hot=switches)
    def begin(self, me: int, hot: bool) -> None:
        if self.world.sessions[me].open:
            me = 1 - me
        self.real[me].execute("BEGIN")
        if hot:
            self.real[me].execute(sql.HOT_PATH, {"statement_timeout": "0", "lock_timeout": LOCK_TIMEOUT})
        self.world.begin(me)

    def _has_written(self) -> bool:
        return any(session.locked for session in self.world.sessions)

    def _written(self, me: int) -> int:
        return me if self.world.sessions[me].locked else 1 - me

    @precondition(_has_written)
    @rule(me=sessions)
    def commit(self, me: int) -> None:
        me = self._written(me)
        self.real[me].execute("COMMIT")
        self.world.commit(me)

    @precondition(_has_written)
    @rule(me=sessions, backend_dies=switches)
    def roll_back(self, me: int, backend_dies: bool) -> None:
        me = self._written(me)
        if not backend_dies:
            self._roll_back(me)
            return
        pid = self.real[me].info.backend_pid
        self.observer.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        self.real[me].close()
        self.real[me] = self._connect()
        self.world.abort(me)

    def _roll_back(self, me: int) -> None:
        if self.world.sessions[me].open:
            self.real[me].execute("ROLLBACK")
        self.world.abort(me)

    def _some(self, test: Callable[[Row], bool]) -> bool:
        return any(test(row) for row in self.world.committed.values())

    # --- who is meant

    def _ids(self, me: int, places: list[int], status: str) -> list[int]:
        """Some jobs, most of them in this state."""
        view = self.world.view(me)
        fitting = sorted(i for i, row in view.items() if row.status == status) or sorted(view)
        any_job = sorted(view)
        return sorted(
            {
                fitting[p % len(fitting)] if p < 3 * MOST_JOBS // 4 else any_job[p % len(any_job)]
                for p in places
            }
            if view
            else ()
        )

    def _fences(self, me: int, places: list[int], proof: str) -> list[Fence]:
        view = self.world.view(me)
        held = [Fence(i, row.version, row.token) for i, row in sorted(view.items()) if row.token is not None]
        if held and (proof == HELD or not self.fences):
            chosen = [held[place % len(held)] for place in places]
        else:
            chosen = [self.fences[-1 - place % len(self.fences)] for place in places]
        if proof == MADE_UP:
            chosen = [
                fence._replace(lease_token=uuid4())
                if place % 2
                else fence._replace(lease_version=fence.lease_version + 1)
                for place, fence in zip(places, chosen, strict=True)
            ]
        return list(dict.fromkeys(chosen))
