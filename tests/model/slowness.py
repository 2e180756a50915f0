"""The slow session: its statement stops between its snapshot and its first row lock, while others go on.

What they commit meanwhile falls into the gap, and the statement must look again when it locks a row.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
from hypothesis.stateful import precondition, rule

from django_pgqueue.models import Job
from django_pgqueue.states import ENDED
from tests.waiting import wait_until

from .sessions import LOCK_TIMEOUT, SLOW, Sessions, picks
from .world import Step

PAUSE_LOCK = 7
"""The advisory lock that the slow session waits for."""


class Slowness(Sessions):
    """A verb that walks an index, begun in one step and ended in a later one."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: tuple[str, Future[Any], Callable[[], Step]] | None = None
        self.threads = ThreadPoolExecutor(1)

    def teardown(self) -> None:
        if self.pending is not None:
            self._let_go()
            self.pending[1].exception()
        self.threads.shutdown()
        super().teardown()

    @precondition(lambda self: self.pending is None and self._slow_verbs())
    @rule(pick=picks)
    def begin_slowly(self, pick: int) -> None:
        """Start a verb that walks an index, and stop it where it has its snapshot and no row yet."""
        verbs = self._slow_verbs()
        verb = verbs[pick % len(verbs)]
        act, predict = self._slow(verb)
        session = self.real[SLOW]
        self.observer.execute("SELECT pg_advisory_lock(%s)", [PAUSE_LOCK])
        session.execute("SET search_path = pausing, pg_catalog, public")
        future = self.threads.submit(act, session)
        self.pending = (verb, future, predict)
        pid = session.info.backend_pid
        wait_until(lambda: future.done() or self._waits(pid), message="The slow verb never stopped")
        if future.done():
            self.end_slowly()

    def _slow_verbs(self) -> list[str]:
        """The verbs that walk an index and would find something now."""
        ended = [status for status in sorted(ENDED) if self.world.prunable(SLOW, status)]
        rescue = ["rescue"] * 3 if self.world.expired(SLOW) else []
        promote = ["promote"] * 2 if self.world.promotable(SLOW) else []
        return rescue + promote + ended

    def _slow(self, verb: str) -> tuple[Callable[[psycopg.Connection], Any], Callable[[], Step]]:
        world = self.world
        if verb == "rescue":
            expired = world.expired(SLOW)
            return rescue_all, lambda: world.rescue(SLOW, expired)
        if verb == "promote":
            due = world.promotable(SLOW)
            return promote_all, lambda: world.promote(SLOW, due)
        old = world.prunable(SLOW, verb)
        return prune_all(verb), lambda: world.prune(SLOW, verb, old)

    def _waits(self, pid: int) -> bool:
        query = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = %s AND NOT granted)"
        return bool(self.observer.execute(query, [pid]).fetchone() == (True,))

    def _is_paused(self) -> bool:
        return self.pending is not None

    @precondition(_is_paused)
    @rule()
    def end_slowly(self) -> None:
        """Let it go on; what was committed meanwhile must count."""
        assert self.pending is not None
        (verb, future, predict), self.pending = self.pending, None
        self._let_go()
        answer = future.result(timeout=30)
        self.real[SLOW].execute("SET search_path = public")
        step = predict()
        assert answer == step.answer, f"it answered {answer}, the model {step.answer}"
        self._learn_positions(SLOW, step)
        self.world.apply(SLOW, step)
        self._note(f"slow {verb}", step)

    def _let_go(self) -> None:
        self.observer.execute("SELECT pg_advisory_unlock(%s)", [PAUSE_LOCK])


def promote_all(session: psycopg.Connection) -> list[int]:
    return sorted(row[0] for row in Job.objects.promote(limit=100, connection=session))


def rescue_all(session: psycopg.Connection) -> list[tuple[int, str, int]]:
    rows = Job.objects.rescue(limit=100, server_up=0.0, jitter=0.0, connection=session)
    return sorted((row.job_id, row.status, row.attempts) for row in rows)


def prune_all(status: str) -> Callable[[psycopg.Connection], list[int]]:
    return lambda session: sorted(
        row[0] for row in Job.objects.prune(status, age=0.0, limit=100, connection=session)
    )


SLOW_CLOCK = f"""
CREATE FUNCTION pausing.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    SET LOCAL lock_timeout = 0;
    PERFORM pg_advisory_lock_shared({PAUSE_LOCK}), pg_advisory_unlock_shared({PAUSE_LOCK});
    SET LOCAL lock_timeout = '{LOCK_TIMEOUT}';
    RETURN pg_catalog.clock_timestamp();
END $$
"""
