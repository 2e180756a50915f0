"""The model: jobs as the state machine has them, sessions with open transactions, each verb in plain Python.

Nothing here knows SQL. A verb is a pure function of what its session sees (what is committed, and its own
transaction on top) and of who holds which row. It returns a ``Step``: the answer that the real verb must give
and what must have changed, or raises ``Blocked`` where the real one has to wait for another transaction.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django_pgqueue.records import DONE, LOCKED, LOST, Answer, Fence, NewJob, Released
from django_pgqueue.sql import FOLLOWER
from django_pgqueue.states import CANCELLED, DEAD, ENDED, LIVE, READY, RUNNING, SCHEDULED, SUCCEEDED
from django_pgqueue.states import LOST as LOST_OUTCOME


class Blocked(Exception):
    """The verb waits for a transaction of another session."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that ended."""

    version: int
    token: UUID
    outcome: str


@dataclass(frozen=True, slots=True)
class Row:
    """One job. ``position`` is learned from the database, where only its order counts."""

    max_attempts: int
    allowed: int
    quick: bool
    """Whether its backoff is nothing, so that a lost attempt is due again at once."""
    key: str | None = None
    status: str = READY
    priority: int = 0
    due: bool = True
    attempts: int = 0
    version: int = 0
    token: UUID | None = None
    worker: str | None = None
    lease_over: bool = False
    asked_to_cancel: bool = False
    progress: dict[str, int] | None = None
    position: int | None = None
    steps: frozenset[str] = frozenset()
    history: tuple[Ended, ...] = ()

    @property
    def follows(self) -> bool:
        return self.key is not None and self.key.endswith(FOLLOWER)

    @property
    def leader(self) -> str:
        return (self.key or "").removesuffix(FOLLOWER)

    def claimed(self, worker: str, token: UUID, lease_over: bool) -> "Row":
        return replace(
            self, status=RUNNING, version=self.version + 1, token=token, worker=worker, lease_over=lease_over
        )

    def freed(self, status: str, *, due: bool = True) -> "Row":
        return replace(self, status=status, due=due, token=None, worker=None, lease_over=False)

    def ended(self, outcome: str, status: str, *, charged: bool = True, due: bool = True) -> "Row":
        assert self.token is not None
        row = self.freed(status, due=due)
        return replace(
            row,
            attempts=self.attempts + 1,
            allowed=self.allowed + (not charged),
            history=(*self.history, Ended(self.version, self.token, outcome)),
        )

    def failed(self, outcome: str, *, final: bool, due: bool) -> "Row":
        if self.asked_to_cancel:
            return self.ended(outcome, CANCELLED)
        spent = final or self.attempts + 1 >= self.allowed
        return self.ended(outcome, DEAD if spent else SCHEDULED, due=spent or due)

    def put_back(self, outcome: str | None, status: str, *, due: bool = True) -> "Row":
        status = CANCELLED if self.asked_to_cancel else status
        if outcome is None:
            return self.freed(status, due=due)
        return self.ended(outcome, status, charged=False, due=due)


@dataclass(slots=True)
class Step:
    """What a verb must answer, and the rows as they must be afterwards; None for one that is gone."""

    answer: Any
    changed: dict[int, Row | None] = field(default_factory=dict)
    locked: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Session:
    """What a transaction of one session has changed and locked so far.

    ``keys``: those that any row it wrote has held, whatever it says now: their entries stand in the index.
    """

    open: bool = False
    changed: dict[int, Row | None] = field(default_factory=dict)
    locked: set[int] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)


class World:
    """All that is committed, and all sessions."""

    def __init__(self, sessions: int) -> None:
        self.committed: dict[int, Row] = {}
        self.sessions = [Session() for _ in range(sessions)]

    # --- transactions

    def begin(self, me: int) -> None:
        self.sessions[me].open = True

    def commit(self, me: int) -> None:
        self._store(self.sessions[me].changed)
        self.sessions[me] = Session()

    def abort(self, me: int) -> None:
        self.sessions[me] = Session()

    def apply(self, me: int, step: Step) -> None:
        session = self.sessions[me]
        if not session.open:
            self._store(step.changed)
            return
        session.changed |= step.changed
        session.locked |= step.changed.keys() | step.locked
        session.keys |= {row.key for row in step.changed.values() if row and row.key and row.status in LIVE}

    def _store(self, changed: Mapping[int, Row | None]) -> None:
        for job_id, row in changed.items():
            if row is None:
                del self.committed[job_id]
            else:
                self.committed[job_id] = row

    # --- what a session sees

    def view(self, me: int) -> dict[int, Row]:
        seen = self.committed | self.sessions[me].changed
        return {job_id: row for job_id, row in seen.items() if row is not None}

    def is_locked(self, me: int, job_id: int) -> bool:
        """Whether another session's transaction holds the row."""
        return any(job_id in other.locked for index, other in enumerate(self.sessions) if index != me)

    def free(self, me: int, test: Callable[[Row], bool]) -> dict[int, Row]:
        """What SKIP LOCKED finds, in the order of ids."""
        found = {job_id: row for job_id, row in self.view(me).items() if test(row)}
        return {job_id: found[job_id] for job_id in sorted(found) if not self.is_locked(me, job_id)}

    def awaited(self, me: int, ids: Iterable[int], test: Callable[[Row], bool]) -> dict[int, Row]:
        """What is found by a verb that waits for rows; raises Blocked where it would."""
        view = self.view(me)
        found = {job_id: view[job_id] for job_id in sorted(set(ids)) if job_id in view and test(view[job_id])}
        if any(self.is_locked(me, job_id) for job_id in found):
            raise Blocked
        return found

    def holder(self, me: int, key: str) -> int | None:
        """The live job that holds a key, as this session sees it; Blocked while another one changes that."""
        for other in (other for index, other in enumerate(self.sessions) if index != me):
            before = [self.committed[i] for i in other.changed if i in self.committed]
            if key in other.keys or any(row.key == key and row.status in LIVE for row in before):
                raise Blocked
        return self.visible_holder(me, key)

    def visible_holder(self, me: int, key: str) -> int | None:
        rows = self.view(me).items()
        return next((i for i, row in rows if row.key == key and row.status in LIVE), None)

    # --- the verbs

    def enqueue_unique(self, me: int, new: NewJob) -> int | None:
        """Return the live job that holds the key, None when the new one gets it."""
        assert new.unique_key is not None
        return self.holder(me, new.unique_key)

    def replace(self, me: int, key: str, new: NewJob) -> Step:
        waiting = [i for i, row in self.view(me).items() if row.key == key]
        found = self.awaited(me, waiting, lambda row: row.status in (SCHEDULED, READY))
        fresh = born(new)
        changed = {
            i: replace(
                row,
                status=fresh.status,
                due=fresh.due,
                priority=fresh.priority,
                max_attempts=fresh.max_attempts,
                allowed=row.attempts + fresh.max_attempts,
                quick=fresh.quick,
                position=None,
            )
            for i, row in found.items()
        }
        return Step(next(iter(found), None), dict(changed))

    def promotable(self, me: int) -> list[int]:
        """What promote finds at its start."""
        view = self.view(me)
        return [
            i
            for i, row in view.items()
            if row.status == SCHEDULED
            and row.due
            and not (row.follows and self.visible_holder(me, row.leader) is not None)
        ]

    def promote(self, me: int, found: Iterable[int]) -> Step:
        rows = self._still(me, found, lambda row: row.status == SCHEDULED and row.due)
        changed: dict[int, Row | None] = {}
        for i, row in rows.items():
            if not row.follows:
                changed[i] = replace(row, status=READY)
            elif self._gets_key(me, row.leader):
                changed[i] = replace(row, status=READY, key=row.leader)
        return Step(sorted(changed), changed, set(rows))

    def _gets_key(self, me: int, key: str) -> bool:
        try:
            return self.holder(me, key) is None
        except Blocked:
            return False

    def promote_now(self, me: int, ids: Iterable[int]) -> Step:
        found = self.awaited(me, ids, lambda row: row.status == SCHEDULED and not row.follows)
        return Step(sorted(found), {i: replace(row, status=READY, due=True) for i, row in found.items()})

    def claim(self, me: int, limit: int, worker: str, token: UUID, *, lease_over: bool) -> Step:
        ready = self.free(me, lambda row: row.status == READY)
        order = sorted(ready, key=lambda i: (-ready[i].priority, ready[i].position, i))[:limit]
        return Step(order, {i: ready[i].claimed(worker, token, lease_over) for i in order})

    def whereabouts(self, me: int, fence: Fence) -> str:
        row = self.view(me).get(fence.job_id)
        proof = (fence.lease_version, fence.lease_token)
        if row is None:
            return LOST
        if any((a.version, a.token) == proof and a.outcome != LOST_OUTCOME for a in row.history):
            return DONE
        return LOCKED if (row.version, row.token) == proof else LOST

    def fenced(self, me: int, fences: Iterable[Fence], act: Callable[[Fence, Row], Row]) -> Step:
        """A write that names fences; the answer is what became of each."""
        view, step = self.view(me), Step({})
        for fence in fences:
            row = view.get(fence.job_id)
            held = row is not None and (row.version, row.token) == (fence.lease_version, fence.lease_token)
            if row is not None and held and not self.is_locked(me, fence.job_id):
                after = act(fence, row)
                step.changed[fence.job_id] = after
                step.answer[fence] = Answer(DONE, after.status, after.attempts)
        seen = view | step.changed
        for fence in fences:
            if fence not in step.answer:
                now = seen.get(fence.job_id)
                where = self._whereabouts_after(me, fence, now)
                step.answer[fence] = Answer(where, now and now.status, now.attempts if now else None)
        return step

    def _whereabouts_after(self, me: int, fence: Fence, now: Row | None) -> str:
        # Asked by a second statement, which sees what the first one has done to the same job.
        session = self.sessions[me]
        kept = session.changed
        session.changed = {**kept, fence.job_id: now} if now is not None else kept
        try:
            return self.whereabouts(me, fence)
        finally:
            session.changed = kept

    def consume(self, me: int, fences: Iterable[Fence]) -> Step:
        """Like complete, but for what is left: nothing."""
        step = self.fenced(me, fences, complete)
        for fence in step.answer:
            if fence.job_id in step.changed and not self._is_held(me, fence):
                step.answer[fence] = Answer(LOST, None, None)
        step.changed = dict.fromkeys(step.changed)
        return step

    def _is_held(self, me: int, fence: Fence) -> bool:
        row = self.view(me).get(fence.job_id)
        return row is not None and (row.version, row.token) == (fence.lease_version, fence.lease_token)

    def record_step(self, me: int, fence: Fence, name: str) -> Step:
        """Waits for whoever changes the job."""
        if not self._is_held(me, fence):
            return Step("lost")
        if self.is_locked(me, fence.job_id):
            raise Blocked
        row = self.view(me)[fence.job_id]
        if name in row.steps:
            return Step("known")
        return Step("recorded", {fence.job_id: replace(row, steps=row.steps | {name})})

    def release_unheld(self, me: int, worker: str, held: Iterable[int]) -> Step:
        held = set(held)
        mine = self.free(me, lambda row: row.status == RUNNING and row.worker == worker)
        changed = {i: row.put_back(None, READY) for i, row in mine.items() if i not in held}
        return Step(sorted(changed), dict(changed))

    def expired(self, me: int) -> list[int]:
        """What rescue finds at its start."""
        return [i for i, row in self.view(me).items() if row.status == RUNNING and row.lease_over]

    def rescue(self, me: int, found: Iterable[int]) -> Step:
        rows = self._still(me, found, lambda row: row.status == RUNNING and row.lease_over)
        changed = {i: row.failed(LOST_OUTCOME, final=False, due=row.quick) for i, row in rows.items()}
        return Step(sorted((i, row.status, row.attempts) for i, row in changed.items()), dict(changed))

    def rescue_worker(self, me: int, lost: Iterable[Released]) -> Step:
        started = {job.fence: job.started_ago is not None for job in lost}

        def act(fence: Fence, row: Row) -> Row:
            if started[fence]:
                return row.failed(LOST_OUTCOME, final=False, due=row.quick)
            return row.put_back(None, READY)

        step = self.fenced(me, started, act)
        changed = {i: row for i, row in step.changed.items() if row is not None}
        return Step(sorted((i, row.status, row.attempts) for i, row in changed.items()), step.changed)

    def cancel(self, me: int, ids: Iterable[int]) -> Step:
        ids = sorted(set(ids))
        found = self.awaited(me, ids, lambda row: row.status in LIVE)
        changed: dict[int, Row | None] = {}
        for i, row in found.items():
            status = RUNNING if row.status == RUNNING else CANCELLED
            changed[i] = replace(row, status=status, asked_to_cancel=True)
        requested = [i for i in ids if i in found and found[i].status == RUNNING]
        cancelled = [i for i in ids if i in found and i not in requested]
        return Step((cancelled, requested, [i for i in ids if i not in found]), changed)

    def retry(self, me: int, ids: Iterable[int]) -> Step:
        ids = sorted(set(ids))
        found = self.awaited(me, ids, lambda row: row.status in (DEAD, CANCELLED))
        newest = {row.key: i for i, row in found.items() if row.key is not None}
        retried: list[int] = []
        for i, row in found.items():
            if row.key is None or (newest[row.key] == i and self.visible_holder(me, row.key) is None):
                retried.append(i)
        for i in retried:
            key = found[i].key
            if key is not None and self.holder(me, key) is not None:
                raise AssertionError("the model itself sees a holder that it did not see")
        changed = {
            i: replace(
                found[i],
                status=READY,
                due=True,
                asked_to_cancel=False,
                position=None,
                allowed=found[i].attempts + found[i].max_attempts,
            )
            for i in retried
        }
        conflicts = [i for i in found if i not in retried]
        return Step((retried, [i for i in ids if i not in found], conflicts), dict(changed), set(found))

    def prunable(self, me: int, status: str) -> list[int]:
        """What prune finds at its start."""
        return [i for i, row in self.view(me).items() if row.status == status and status in ENDED]

    def prune(self, me: int, status: str, found: Iterable[int]) -> Step:
        rows = self._still(me, found, lambda row: row.status == status)
        return Step(sorted(rows), dict.fromkeys(rows))

    def _still(self, me: int, found: Iterable[int], test: Callable[[Row], bool]) -> dict[int, Row]:
        """Of what a statement found at its start: what nobody holds and what is still so once locked."""
        free = self.free(me, test)
        return {i: free[i] for i in sorted(found) if i in free}


# --- what an owner may write


def complete(fence: Fence, row: Row) -> Row:
    return row.ended(SUCCEEDED, SUCCEEDED)


def born(new: NewJob) -> Row:
    """A job as its enqueueing makes it."""
    later = new.delay is not None and new.delay > 0
    return Row(
        max_attempts=new.max_attempts,
        allowed=new.max_attempts,
        quick=new.backoff_base == 0,
        key=new.unique_key,
        status=SCHEDULED if later else READY,
        due=not later or new.delay == SOON,
        priority=new.priority,
    )


SOON = 1e-6
"""A delay in seconds that makes a scheduled job which is due by the next statement."""
