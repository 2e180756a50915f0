"""Decides whether a run kept the promises: pure functions over its recorded history.

Each rule is a function that yields what breaks it. Together they say:

* a committed job has one row, with the caller's own row beside it, and ends once, as its kind must
* a rolled-back job left nothing and never ran; where the reply to COMMIT was lost, all is there or nothing
* attempts are numbered 1..n without a gap; ``lease_version`` only grows; what has ended stays ended
* no two owners at one time: neither in the rows nor in the executions, unless the earlier owner was frozen or
  cut off for so long that it had to lose its lease
* a claim is executed at most once, and every execution has its attempt: executions <= attempts
* the outcome that is stored is what the owner of that claim computed (its value is unique to the call)
* an attempt is lost only where a death or trouble explains it
* what a task returned is stored when the database comes back, unless its process died, froze or was cut off
* effects behind a key, and transfers of a ledger, happened exactly once
* a store that compares fencing tokens was never written to by an older owner, nor by two with one token
* no lease stays overdue for two rescue periods while somebody could have rescued it
* after a failover to a standby that lacked something, transactions of that time may be missing, each as a
  whole; all the rest holds
* workers are alive and run a probe, or ended with a code that is documented, and logged nothing unforeseen;
  who was told to stop ends with 0, or with 1 if it could not reach the database meanwhile

``check`` returns all violations; an empty list is the verdict "clean".
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from .history import (
    COMMITTED,
    RETURNED,
    ROLLED_BACK,
    UNKNOWN,
    Attempt,
    Execution,
    History,
    Overdue,
    Trouble,
    WorkerEnd,
)

ENDED = ("succeeded", "dead", "cancelled")
CHARGED = ("failed", "lost")
LOOKS_APART = 10.0
"""A duty of the keeper takes no more than a tenth of its time: a slow look for lost jobs comes less often."""
HANGS = 20.0
"""Seconds that a task may hang in a dead connection: its time limit and the grace after it."""
CLOCKS_DIFFER = 0.005
"""Seconds by which two times of one clock may be apart that were computed on two ways."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What was found: the rule that is broken, and where."""

    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


Rule = Callable[[History], Iterator[str]]


def check(history: History) -> list[Violation]:
    """Return everything that breaks a rule."""
    return [Violation(rule.__name__, what) for rule in RULES for what in rule(history)]


# --- what was asked


def committed_jobs_exist(history: History) -> Iterator[str]:
    """A committed job has exactly one row, and so has the caller's own write of the same transaction."""
    rows = Counter(state.tag for state in history.states)
    for asked in history.asked:
        if asked.outcome != COMMITTED:
            continue
        lost = history.may_forget(asked.at) and not rows[asked.tag] and asked.tag not in history.orders
        if not lost and (rows[asked.tag] != 1 or asked.tag not in history.orders):
            has = "has" if asked.tag in history.orders else "has not"
            yield f"{asked.tag} was committed; it has {rows[asked.tag]} rows, and {has} the caller's own"


def rolled_back_jobs_left_nothing(history: History) -> Iterator[str]:
    """A rolled-back job has no row and no execution."""
    rows = {state.tag for state in history.states}
    ran = {execution.tag for execution in history.executions}
    for asked in history.asked:
        if asked.outcome == ROLLED_BACK:
            where = {"a row": rows, "the caller's own row": history.orders, "an execution": ran}
            for what, tags in where.items():
                if asked.tag in tags:
                    yield f"{asked.tag} was rolled back and has {what}"


def unknown_commits_are_whole(history: History) -> Iterator[str]:
    """Where nobody knows whether the transaction was committed, all of it is there or nothing."""
    rows = Counter(state.tag for state in history.states)
    for asked in history.asked:
        if asked.outcome == UNKNOWN and rows[asked.tag] != (asked.tag in history.orders):
            yield f"{asked.tag}: {rows[asked.tag]} rows, caller's own row: {asked.tag in history.orders}"


def nobody_else_asked(history: History) -> Iterator[str]:
    """Every row and every execution belongs to a job that was asked for."""
    known = {asked.tag for asked in history.asked}
    for tag in {state.tag for state in history.states} - known:
        yield f"{tag} has a row, and nobody asked for it"
    for tag in {execution.tag for execution in history.executions} - known:
        yield f"{tag} was run, and nobody asked for it"


# --- how it ended


def jobs_end_once(history: History) -> Iterator[str]:
    """Every job has ended, as its kind must, by one final attempt, within its budget."""
    kinds = {asked.tag: history.kinds[asked.kind] for asked in history.asked}
    attempts = _by_job(history.attempts)
    for state in history.states:
        if state.tag not in kinds:
            continue
        kind, outcomes = kinds[state.tag], [a.outcome for a in attempts[state.job_id]]
        if state.status != kind.status:
            yield f"{state.tag} is {state.status}, not {kind.status}, after {outcomes}"
        final = outcomes.count("succeeded")
        if final != (state.status == "succeeded") or "succeeded" in outcomes[:-1]:
            yield f"{state.tag} is {state.status} and has {final} successes: {outcomes}"
        charged = sum(outcome in CHARGED for outcome in outcomes)
        if charged > kind.budget or (state.status == "dead" and charged != kind.budget):
            yield f"{state.tag} is {state.status} after {charged} charged attempts of {kind.budget}"


def attempts_have_no_gap(history: History) -> Iterator[str]:
    """Attempts are numbered from 1 to what the state says."""
    attempts = _by_job(history.attempts)
    for state in history.states:
        numbers = [attempt.number for attempt in attempts[state.job_id]]
        if numbers != list(range(1, state.attempts + 1)):
            yield f"{state.tag}: attempts {numbers}, the state says {state.attempts}"
    for job_id in attempts.keys() - {state.job_id for state in history.states}:
        yield f"job {job_id} has attempts and no state"


def lease_version_only_grows(history: History) -> Iterator[str]:
    """Each attempt has a larger version than the one before, and no look ever found a smaller one."""
    final = {state.job_id: state for state in history.states}
    for job_id, attempts in _by_job(history.attempts).items():
        versions = [attempt.lease_version for attempt in attempts]
        if versions != sorted(set(versions)):
            yield f"job {job_id}: versions {versions}"
        elif job_id in final and versions[-1] > final[job_id].lease_version:
            yield f"job {job_id}: attempt of version {versions[-1]}, now {final[job_id].lease_version}"


def nothing_goes_back(history: History) -> Iterator[str]:
    """Looked at twice, a job has no fewer attempts, no smaller version, and what had ended stays so."""
    seen = defaultdict(list)
    for sighting in history.sightings:
        if not history.may_forget(sighting.at):
            seen[sighting.job_id].append(sighting)
    for job_id, sightings in seen.items():
        for earlier, later in pairwise(sorted(sightings, key=lambda sighting: sighting.at)):
            if later.attempts < earlier.attempts or later.lease_version < earlier.lease_version:
                yield f"job {job_id} went from {earlier} to {later}"
            elif earlier.status in ENDED and later != replace(earlier, at=later.at):
                yield f"job {job_id} was {earlier.status} and is {later}"


# --- who owned it


def owners_do_not_overlap(history: History) -> Iterator[str]:
    """An attempt ended before the next one of its job began, by the database's clock."""
    for job_id, attempts in _by_job(history.attempts).items():
        for earlier, later in pairwise(attempts):
            if earlier.finished_db > later.started_db + CLOCKS_DIFFER:
                late = earlier.finished_db - later.started_db
                yield f"job {job_id}: attempt {earlier.number} ended {late:.3f} s after the next began"


def executions_do_not_overlap(history: History) -> Iterator[str]:
    """A job is not run by two at once, unless the earlier one had to lose its lease."""
    died = _deaths(history)
    for calls in _by_tag(history.executions).values():
        for earlier, later in pairwise(calls):
            if history.may_forget(earlier.began):
                continue  # its claim is forgotten, and the job was free
            over = died.get(earlier.pid, later.began + 1) if earlier.ended is None else earlier.ended
            if over > later.began and not _could_lose(history, earlier, later.began):
                yield f"two live owners: {earlier} and {later}"


def claims_run_once(history: History) -> Iterator[str]:
    """A claim is executed at most once, or until the transaction of an atomic task meets no deadlock."""
    atomic = {asked.tag for asked in history.asked if history.kinds[asked.kind].atomic}
    calls = Counter(
        (execution.tag, execution.lease_version)
        for execution in history.executions
        if execution.tag not in atomic and not history.may_forget(execution.began)
    )
    for (tag, version), count in calls.items():
        if count > 1:
            yield f"{tag} was called {count} times under version {version}"


def executions_have_their_attempt(history: History) -> Iterator[str]:
    """Every execution has the attempt of its claim, with the number that it was told."""
    ended = {(a.job_id, a.lease_version): a.number for a in history.attempts}
    for execution in history.executions:
        number = ended.get((execution.job_id, execution.lease_version))
        forgotten = history.may_forget(execution.began) or history.may_forget_end(execution)
        if number != execution.attempt and not forgotten:
            found = "has no attempt" if number is None else f"is attempt {number} in the table"
            yield f"{execution} {found}"


def outcomes_are_their_owners(history: History) -> Iterator[str]:
    """A success that is stored was returned by the execution of that claim, with that value."""
    returned = {(e.job_id, e.lease_version, e.value) for e in history.executions if e.how == RETURNED}
    for attempt in history.attempts:
        if attempt.outcome == "succeeded":
            key = (attempt.job_id, attempt.lease_version, attempt.value)
            if key not in returned:
                yield f"nobody who held that claim returned this: {attempt}"


def losses_are_explained(history: History) -> Iterator[str]:
    """A lost attempt's process died, or was kept from renewing."""
    died = _deaths(history)
    calls = {(e.job_id, e.lease_version): e for e in history.executions}
    for attempt in history.attempts:
        if attempt.outcome != "lost" or attempt.pid in died:
            continue
        call = calls.get((attempt.job_id, attempt.lease_version))
        if call and (history.may_forget(call.began) or history.may_forget_end(call)):
            continue
        if call is None or not _could_lose(history, call, float("inf")):
            yield f"nothing explains this loss: {attempt}"


def outages_lose_no_outcome(history: History) -> Iterator[str]:
    """What a task has returned is stored when the database comes back, however long it was away.

    Lost is it only with its process, or where that process alone was frozen or cut off.
    """
    killed = {death.pid for death in history.deaths if not death.by_supervisor}
    calls = {(e.job_id, e.lease_version): e for e in history.executions if e.how == RETURNED}
    single = [t for t in history.troubles if t.pids is not None]
    for attempt in history.attempts:
        call = calls.get((attempt.job_id, attempt.lease_version))
        if attempt.outcome != "lost" or call is None or call.pid in killed or history.may_forget_end(call):
            continue
        if not any(t.hits(call.pid, call.job_id) and t.ended > call.began for t in single):
            yield f"it had returned, and was charged as lost: {attempt}"


def no_lease_stays_overdue(history: History) -> Iterator[str]:
    """A lease that has ended is rescued within two rescue periods, but for times in which nobody could."""
    for overdue in history.overdue:
        allowed = 2 * history.rescue_every + LOOKS_APART * overdue.look
        if overdue.seconds > allowed and not _nobody_could_rescue(history, overdue):
            yield f"at {overdue.at:.1f} job {overdue.job_id} was overdue for {overdue.seconds:.1f} s"


# --- what it did


def effects_happen_once(history: History) -> Iterator[str]:
    """An effect behind a key stands once for each job of its kind that succeeded, and never twice."""
    for tag, count in history.effects.items():
        if count > 1:
            yield f"{tag} had its effect {count} times"
    kinds = {asked.tag: asked.kind for asked in history.asked}
    for state in history.states:
        kind = history.kinds.get(kinds.get(state.tag, ""))
        if kind and kind.has_effect and state.status == "succeeded" and not history.effects.get(state.tag):
            yield f"{state.tag} succeeded without its effect"


def ledger_balances(history: History) -> Iterator[str]:
    """No money appeared or vanished, and every transfer was made once."""
    ledger = history.ledger
    if ledger is None:
        return
    if ledger.closing != ledger.opening:
        yield f"{ledger.opening} in all accounts became {ledger.closing}"
    if ledger.transfers != ledger.asked:
        yield f"{ledger.asked} transfers were asked for, {ledger.transfers} were made"


def fencing_tokens_hold(history: History) -> Iterator[str]:
    """What a store accepted came with growing tokens, and each token from one owner."""
    accepted: dict[str, tuple[int, int]] = {}
    for write in history.writes:
        token, pid = accepted.get(write.tag, (-1, write.pid))
        if write.token < token or (write.token == token and write.pid != pid):
            yield f"{write.tag}: token {write.token} of {write.pid} after {token} of {pid}"
        accepted[write.tag] = (write.token, write.pid)


def workers_are_useful(history: History) -> Iterator[str]:
    """Whoever runs has run its probe; whoever ended did so as documented; nothing unforeseen was logged."""
    for worker in history.workers:
        if worker.code is None and not worker.ran_probe:
            yield f"{worker.name} is alive and does not work"
        if worker.code is not None and worker.code not in worker.allowed | _excused(history, worker):
            yield f"{worker.name} ended with {worker.code}, not with {sorted(worker.allowed)}"
        for line in worker.complaints:
            yield f"{worker.name} logged: {line}"
    for death in history.deaths:
        if not death.foreseen:
            yield f"process {death.pid} ended by itself"


def _excused(history: History, worker: WorkerEnd) -> frozenset[int]:
    """1 is documented for who could not give back what it held: its way to the database was troubled.

    It is, too, for whose child had to be killed: only its time limit ends a task with a dead connection.
    """
    if worker.stopping is None:
        return frozenset()
    asked, ended = worker.stopping
    patience = HANGS if worker.killed_child else 0.0
    cut_off = any(
        trouble.hits(worker.pid, 0) and trouble.began < ended and trouble.ended + patience > asked
        for trouble in history.troubles
    )
    return frozenset({1}) if cut_off else frozenset()


RULES: tuple[Rule, ...] = (
    committed_jobs_exist,
    rolled_back_jobs_left_nothing,
    unknown_commits_are_whole,
    nobody_else_asked,
    jobs_end_once,
    attempts_have_no_gap,
    lease_version_only_grows,
    nothing_goes_back,
    owners_do_not_overlap,
    executions_do_not_overlap,
    claims_run_once,
    executions_have_their_attempt,
    outcomes_are_their_owners,
    losses_are_explained,
    outages_lose_no_outcome,
    no_lease_stays_overdue,
    effects_happen_once,
    ledger_balances,
    fencing_tokens_hold,
    workers_are_useful,
)


def _by_job(attempts: Iterable[Attempt]) -> dict[int, list[Attempt]]:
    found: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in sorted(attempts, key=lambda attempt: attempt.number):
        found[attempt.job_id].append(attempt)
    return found


def _by_tag(executions: Iterable[Execution]) -> dict[str, list[Execution]]:
    found: dict[str, list[Execution]] = defaultdict(list)
    for execution in sorted(executions, key=lambda execution: execution.began):
        found[execution.tag].append(execution)
    return found


def _deaths(history: History) -> dict[int, float]:
    return {death.pid: death.at for death in history.deaths}


def _could_lose(history: History, call: Execution, before: float) -> bool:
    """True when trouble kept this call's process from renewing until its lease may have ended.

    The lease may have been renewed last up to half a lease before the trouble, and trouble after trouble adds
    up when nobody can renew in between.
    """
    return any(
        trouble.ended - trouble.began >= history.lease / 2
        for trouble in _joined(t for t in history.troubles if t.hits(call.pid, call.job_id))
        if trouble.ended > call.began and trouble.began < before
    )


def _joined(troubles: Iterable[Trouble]) -> list[Trouble]:
    joined: list[Trouble] = []
    for trouble in sorted(troubles, key=lambda trouble: trouble.began):
        if joined and trouble.began <= joined[-1].ended:
            last = joined.pop()
            trouble = Trouble(last.began, max(last.ended, trouble.ended))
        joined.append(trouble)
    return joined


def _nobody_could_rescue(history: History, overdue: Overdue) -> bool:
    """After trouble for all, and after a start, rescue waits for one lease; then it has two periods."""
    patience = history.lease + 2 * history.rescue_every
    return any(
        trouble.began <= overdue.at <= trouble.ended + patience
        for trouble in history.troubles
        if trouble.pids is None or trouble.nobody_rescues or overdue.job_id in trouble.jobs
    )
