"""The checker itself: it passes a good history, and fails each bad one for its own reason and no other.

A bad history is the good one with one thing changed; what it must be refused for stands beside it.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from .checker import RULES, check
from .history import (
    COMMITTED,
    RAISED,
    RETURNED,
    ROLLED_BACK,
    UNKNOWN,
    Asked,
    Attempt,
    Death,
    Execution,
    History,
    Kind,
    Ledger,
    Overdue,
    Sighting,
    State,
    Trouble,
    WorkerEnd,
    Write,
)

LEASE = 3.0
KINDS = {
    "plain": Kind(),
    "doomed": Kind("dead", budget=2),
    "effect": Kind(has_effect=True),
    "untried": Kind("dead", budget=0),
}


def good() -> History:
    """Four jobs: done at once; done at the second attempt, its first worker killed; spent; with an effect."""
    return History(
        lease=LEASE,
        rescue_every=0.5,
        kinds=KINDS,
        asked=[
            Asked("a", "plain", COMMITTED, 1.0),
            Asked("b", "plain", COMMITTED, 1.0),
            Asked("c", "doomed", COMMITTED, 1.0),
            Asked("d", "effect", COMMITTED, 1.0),
            Asked("gone", "untried", ROLLED_BACK, 1.0),
            Asked("perhaps", "untried", UNKNOWN, 1.0),
        ],
        orders={"a", "b", "c", "d"},
        executions=[
            Execution("a", 1, 1, 1, 100, 2.0, 2.1, RETURNED, "a1"),
            Execution("b", 2, 1, 1, 101, 2.0),
            Execution("b", 2, 2, 2, 100, 4.0, 4.1, RETURNED, "b2"),
            Execution("c", 3, 1, 1, 100, 2.0, 2.1, RAISED, "c1"),
            Execution("c", 3, 2, 2, 100, 3.0, 3.1, RAISED, "c2"),
            Execution("d", 4, 1, 1, 100, 2.0, 2.1, RETURNED, "d1"),
        ],
        states=[
            State(1, "a", "succeeded", 1, 100, 1),
            State(2, "b", "succeeded", 2, 100, 2),
            State(3, "c", "dead", 2, 2, 2),
            State(4, "d", "succeeded", 1, 100, 1),
        ],
        attempts=[
            Attempt(1, 1, 1, "succeeded", 100, 12.0, 12.1, "a1"),
            Attempt(2, 1, 1, "lost", 101, 12.0, 12.5),
            Attempt(2, 2, 2, "succeeded", 100, 14.0, 14.1, "b2"),
            Attempt(3, 1, 1, "failed", 100, 12.0, 12.1),
            Attempt(3, 2, 2, "failed", 100, 13.0, 13.1),
            Attempt(4, 1, 1, "succeeded", 100, 12.0, 12.1, "d1"),
        ],
        effects={"d": 1},
        writes=[Write("a", 1, 100), Write("a", 1, 100), Write("b", 1, 101), Write("b", 2, 100)],
        sightings=[Sighting(1.5, 2, "ready", 0, 0), Sighting(2.5, 2, "running", 0, 1)],
        overdue=[Overdue(2.0, 1, 0.4)],
        deaths=[Death(101, 2.4)],
        workers=[WorkerEnd("w1", None, ran_probe=True), WorkerEnd("w2", 0, frozenset({0}))],
        ledger=Ledger(opening=1000, closing=1000, transfers=5, asked=5),
    )


def rules_broken(history: History) -> set[str]:
    return {violation.rule for violation in check(history)}


def test_a_good_history_is_clean() -> None:
    assert check(good()) == []


BAD: list[tuple[str, str, Callable[[History], object]]] = [
    (
        "a committed job has no row",
        "committed_jobs_exist",
        lambda h: h.asked.append(Asked("lost", "plain", COMMITTED, 1.0)) or h.orders.add("lost"),
    ),
    (
        "a committed job exists, and the caller's row does not",
        "committed_jobs_exist",
        lambda h: h.orders.discard("a"),
    ),
    (
        "a rolled-back job has a row",
        "rolled_back_jobs_left_nothing",
        lambda h: add_job(h, "gone"),
    ),
    (
        "a rolled-back job was run",
        "rolled_back_jobs_left_nothing",
        lambda h: add_call(h, Execution("gone", 3, 2, 2, 100, 5.0, 5.1, RAISED, "x")),
    ),
    (
        "of an unknown commit only the caller's row is there",
        "unknown_commits_are_whole",
        lambda h: h.orders.add("perhaps"),
    ),
    (
        "of an unknown commit only the job is there",
        "unknown_commits_are_whole",
        lambda h: add_job(h, "perhaps"),
    ),
    ("a job that nobody asked for", "nobody_else_asked", lambda h: add_job(h, "stray")),
    (
        "a job has not ended",
        "jobs_end_once",
        lambda h: change_state(h, 1, status="ready") or drop_attempts(h, 1),
    ),
    (
        "a job ended otherwise than its kind must",
        "jobs_end_once",
        lambda h: change_state(h, 2, status="cancelled") or change_attempt(h, 2, 2, outcome="failed"),
    ),
    ("a job succeeded twice", "jobs_end_once", lambda h: succeed_again(h)),
    (
        "a job went on after its budget",
        "jobs_end_once",
        lambda h: add_attempt(h, Attempt(3, 3, 3, "failed", 100, 15.0, 15.1), "c"),
    ),
    (
        "a job is dead before its budget is spent",
        "jobs_end_once",
        lambda h: change_attempt(h, 3, 1, outcome="released"),
    ),
    (
        "attempts have a gap",
        "attempts_have_no_gap",
        lambda h: change_attempt(h, 2, 2, number=3) or change_call(h, "b", 2, attempt=3),
    ),
    (
        "the state counts more attempts than there are",
        "attempts_have_no_gap",
        lambda h: change_state(h, 1, attempts=2),
    ),
    (
        "two attempts share a version",
        "lease_version_only_grows",
        lambda h: share_version(h),
    ),
    (
        "the state's version went down",
        "lease_version_only_grows",
        lambda h: change_state(h, 2, lease_version=1),
    ),
    (
        "a version was seen to go down",
        "nothing_goes_back",
        lambda h: h.sightings.append(Sighting(2.6, 2, "running", 0, 0)),
    ),
    (
        "an ended job came alive",
        "nothing_goes_back",
        lambda h: h.sightings.extend(
            [Sighting(3.0, 1, "succeeded", 1, 1), Sighting(3.5, 1, "running", 1, 2)]
        ),
    ),
    (
        "an owner took the job before the other had ended",
        "owners_do_not_overlap",
        lambda h: change_attempt(h, 2, 1, finished_db=14.05),
    ),
    (
        "two run a job at once",
        "executions_do_not_overlap",
        lambda h: change_call(h, "c", 1, ended=3.05),
    ),
    (
        "two run a job at once, and the freeze was shorter than half a lease",
        "executions_do_not_overlap",
        lambda h: (
            change_call(h, "c", 1, ended=3.05)
            or h.troubles.append(Trouble(2.0, 2.0 + LEASE / 2 - 0.1, frozenset({100})))
        ),
    ),
    (
        "two run a job at once, and another process was frozen",
        "executions_do_not_overlap",
        lambda h: change_call(h, "c", 1, ended=3.05) or h.troubles.append(Trouble(1.0, 9.0, frozenset({7}))),
    ),
    (
        "one claim is executed twice",
        "claims_run_once",
        lambda h: add_call(h, Execution("a", 1, 1, 1, 100, 2.2, 2.3, RAISED, "again")),
    ),
    (
        "an execution without an attempt",
        "executions_have_their_attempt",
        lambda h: add_call(h, Execution("a", 1, 7, 1, 100, 2.2, 2.3, RAISED, "more")),
    ),
    (
        "an execution was told another number",
        "executions_have_their_attempt",
        lambda h: change_call(h, "b", 2, attempt=1),
    ),
    (
        "the outcome of another attempt is stored",
        "outcomes_are_their_owners",
        lambda h: change_attempt(h, 2, 2, value="zombie"),
    ),
    (
        "a success is stored of a call that raised",
        "outcomes_are_their_owners",
        lambda h: change_call(h, "a", 1, how=RAISED),
    ),
    ("a loss of a process that never died", "losses_are_explained", lambda h: lose_without_death(h)),
    ("a returned outcome was lost in an outage", "outages_lose_no_outcome", lambda h: lose_outcome(h)),
    (
        "a supervisor killed a child whose task had returned",
        "outages_lose_no_outcome",
        lambda h: lose_outcome(h) or h.deaths.append(Death(100, 9.0, by_supervisor=True)),
    ),
    ("a lease stayed overdue", "no_lease_stays_overdue", lambda h: h.overdue.append(Overdue(9.0, 1, 1.1))),
    ("an effect happened twice", "effects_happen_once", lambda h: h.effects.update(d=2)),
    ("a success without its effect", "effects_happen_once", lambda h: h.effects.clear()),
    (
        "money vanished",
        "ledger_balances",
        lambda h: setattr(h, "ledger", Ledger(opening=1000, closing=999, transfers=5, asked=5)),
    ),
    (
        "a transfer was made twice",
        "ledger_balances",
        lambda h: setattr(h, "ledger", Ledger(opening=1000, closing=1000, transfers=6, asked=5)),
    ),
    ("an older owner wrote last", "fencing_tokens_hold", lambda h: h.writes.append(Write("b", 1, 101))),
    ("two owners have one token", "fencing_tokens_hold", lambda h: h.writes.append(Write("b", 2, 102))),
    ("a worker hangs", "workers_are_useful", lambda h: h.workers.append(WorkerEnd("w3", None))),
    (
        "a worker ended with another code",
        "workers_are_useful",
        lambda h: h.workers.append(WorkerEnd("w3", 1, frozenset({0}))),
    ),
    (
        "a stopped worker gave nothing back, and its network was well again",
        "workers_are_useful",
        lambda h: h.troubles.append(Trouble(5.0, 6.0, frozenset({300}))) or stopped(h, 1, (6.0, 9.0)),
    ),
    (
        "a stopped worker gave nothing back, and another one's network was frozen",
        "workers_are_useful",
        lambda h: h.troubles.append(Trouble(5.0, 8.0, frozenset({301}))) or stopped(h, 1, (6.0, 9.0)),
    ),
    (
        "a worker that was cut off while it stopped was killed",
        "workers_are_useful",
        lambda h: h.troubles.append(Trouble(5.0, 8.0, frozenset({300}))) or stopped(h, -9, (6.0, 9.0)),
    ),
    (
        "a worker logged what nobody foresaw",
        "workers_are_useful",
        lambda h: h.workers.append(WorkerEnd("w3", 0, frozenset({0}), complaints=("maintenance_failed",))),
    ),
    (
        "a process ended by itself",
        "workers_are_useful",
        lambda h: h.deaths.append(Death(102, 3.0, foreseen=False)),
    ),
]


@pytest.mark.parametrize(("rule", "spoil"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_a_bad_history_fails_for_its_own_reason(rule: str, spoil: Callable[[History], object]) -> None:
    history = good()
    spoil(history)
    assert rules_broken(history) == {rule}


def test_every_rule_has_a_history_that_breaks_it() -> None:
    assert {rule for _, rule, _ in BAD} == {rule.__name__ for rule in RULES}


def test_whoever_was_frozen_for_its_lease_may_run_beside_its_successor() -> None:
    history = good()
    change_call(history, "c", 1, ended=6.0)
    history.troubles.append(Trouble(2.0, 5.5, frozenset({100})))
    assert check(history) == []


def stopped(history: History, code: int, stopping: tuple[float, float]) -> None:
    """Add a worker that was told to stop in this time."""
    history.workers.append(WorkerEnd("w3", code, frozenset({0}), pid=300, stopping=stopping))


def test_whoever_is_cut_off_while_it_stops_may_say_that_jobs_were_left() -> None:
    history = good()
    history.troubles.append(Trouble(5.0, 8.0, frozenset({300})))
    stopped(history, 1, (6.0, 9.0))
    assert check(history) == []


def test_whose_task_hung_in_a_dead_connection_may_have_had_to_kill_it() -> None:
    history = good()
    history.troubles.append(Trouble(5.0, 8.0, frozenset({300})))
    stopped(history, 1, (16.0, 19.0))
    assert rules_broken(history) == {"workers_are_useful"}
    history.workers[-1] = replace(history.workers[-1], killed_child=True)
    assert check(history) == []


def test_two_short_troubles_at_once_are_one_long_one() -> None:
    history = good()
    change_call(history, "c", 1, ended=6.0)
    history.troubles += [Trouble(2.0, 3.0, frozenset({100})), Trouble(2.9, 3.9)]
    assert check(history) == []


def test_a_lease_may_be_overdue_while_nobody_could_rescue() -> None:
    history = good()
    history.overdue.append(Overdue(9.0, 1, 3.0))
    history.troubles.append(Trouble(4.0, 6.0))
    assert check(history) == []
    history.overdue.append(Overdue(6.0 + LEASE + 2 * 0.5 + 0.1, 1, 3.0))
    assert rules_broken(history) == {"no_lease_stays_overdue"}
    history.troubles.append(Trouble(7.0, 8.0, frozenset(), nobody_rescues=True))
    assert check(history) == []


def test_a_lease_may_be_overdue_for_longer_on_a_machine_on_which_all_looks_are_slow() -> None:
    history = good()
    history.overdue.append(Overdue(9.0, 1, 1.9, look=0.1))
    assert check(history) == []
    history.overdue.append(Overdue(9.0, 1, 2.1, look=0.1))
    assert rules_broken(history) == {"no_lease_stays_overdue"}


def test_a_lease_may_be_overdue_while_its_row_is_locked() -> None:
    history = good()
    history.overdue.append(Overdue(9.0, 1, 3.0))
    history.troubles.append(Trouble(4.0, 9.5, frozenset(), frozenset({1})))
    assert check(history) == []
    history.overdue.append(Overdue(9.0, 2, 3.0))
    assert rules_broken(history) == {"no_lease_stays_overdue"}


def test_after_a_lossy_failover_what_was_committed_last_may_be_gone_as_a_whole() -> None:
    history = good()
    history.forgotten = [(5.0, 6.0)]
    history.asked.append(Asked("late", "plain", COMMITTED, 5.1))
    assert check(history) == []
    history.orders.add("late")
    assert rules_broken(history) == {"committed_jobs_exist"}
    history.orders.discard("late")
    for at in (4.9, 6.1):
        history.asked[-1] = Asked("other", "plain", COMMITTED, at)
        assert rules_broken(history) == {"committed_jobs_exist"}


def test_after_a_lossy_failover_a_claim_of_that_time_may_be_made_again() -> None:
    history = good()
    history.forgotten = [(1.9, 2.05)]
    history.executions.append(Execution("a", 1, 1, 1, 102, 2.06, 2.3, RETURNED, "again"))
    assert check(history) == []
    history.forgotten = [(1.9, 1.95)]
    assert rules_broken(history) == {"claims_run_once", "executions_do_not_overlap"}


# --- changes to a history


def add_job(history: History, tag: str) -> None:
    """Add a row that says as little as possible."""
    history.states.append(State(9, tag, "dead", 0, 0, 0))


def add_call(history: History, execution: Execution) -> None:
    history.executions.append(execution)


def share_version(history: History) -> None:
    """Give both attempts of the third job one version, and only the second an execution."""
    change_attempt(history, 3, 2, lease_version=1)
    history.executions.pop(3)
    change_call(history, "c", 2, lease_version=1)


def change_state(history: History, job_id: int, /, **values: object) -> None:
    history.states[:] = [replace(s, **values) if s.job_id == job_id else s for s in history.states]  # type: ignore[arg-type]


def change_attempt(history: History, job_id: int, number: int, /, **values: object) -> None:
    history.attempts[:] = [
        replace(a, **values) if (a.job_id, a.number) == (job_id, number) else a  # type: ignore[arg-type]
        for a in history.attempts
    ]


def change_call(history: History, of: str, number: int, /, **values: object) -> None:
    history.executions[:] = [
        replace(e, **values) if (e.tag, e.attempt) == (of, number) else e  # type: ignore[arg-type]
        for e in history.executions
    ]


def drop_attempts(history: History, job_id: int) -> None:
    """Forget what was tried of a job, as if it had never been claimed."""
    history.attempts[:] = [a for a in history.attempts if a.job_id != job_id]
    history.executions[:] = [e for e in history.executions if e.job_id != job_id]
    change_state(history, job_id, attempts=0, lease_version=0)


def add_attempt(history: History, attempt: Attempt, tag: str) -> None:
    """Add a later attempt with its execution, and let the state count it."""
    history.attempts.append(attempt)
    how = RETURNED if attempt.outcome == "succeeded" else RAISED
    began = attempt.started_db
    history.executions.append(
        Execution(
            tag,
            attempt.job_id,
            attempt.lease_version,
            attempt.number,
            100,
            began,
            began + 0.1,
            how,
            attempt.value or "z",
        )
    )
    change_state(
        history,
        attempt.job_id,
        attempts=attempt.number,
        lease_version=attempt.lease_version,
        attempts_allowed=100,
    )


def succeed_again(history: History) -> None:
    add_attempt(history, Attempt(1, 2, 2, "succeeded", 100, 16.0, 16.1, "a2"), "a")


def lose_outcome(history: History) -> None:
    """The first attempt of the third job is lost although it had returned; nobody could renew at the time."""
    change_attempt(history, 3, 1, outcome="lost")
    change_call(history, "c", 1, how=RETURNED)
    history.troubles.append(Trouble(1.0, 2.9))


def lose_without_death(history: History) -> None:
    """The first attempt of the third job is lost, though its process lives."""
    change_attempt(history, 3, 1, outcome="lost")
