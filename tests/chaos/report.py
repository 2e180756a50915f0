"""The report of a run, for people and as JSON."""

from collections import Counter, defaultdict
from statistics import quantiles
from typing import Any

from .checker import Violation
from .history import COMMITTED, RETURNED, ROLLED_BACK, UNKNOWN, History
from .measuring import Injected, Line

SHOWN = 20


def totals(history: History) -> dict[str, Any]:
    """Count what happened to the jobs."""
    fates = Counter(asked.outcome for asked in history.asked)
    rows = {state.tag for state in history.states}
    outcomes = Counter(attempt.outcome for attempt in history.attempts)
    committed = [asked for asked in history.asked if asked.outcome == COMMITTED]
    began: dict[str, float] = {}
    returned: dict[str, int] = defaultdict(int)
    for execution in history.executions:
        began[execution.tag] = min(began.get(execution.tag, execution.began), execution.began)
        returned[execution.tag] += execution.how == RETURNED
    waits = sorted(began[asked.tag] - asked.at for asked in committed if asked.tag in began)
    cuts = quantiles(waits, n=100) if len(waits) > 1 else [0.0] * 99
    return {
        "committed": fates[COMMITTED],
        "rolled_back": fates[ROLLED_BACK],
        "unknown": fates[UNKNOWN],
        "lost": sum(asked.tag not in rows for asked in committed),
        "doubled_effects": sum(count > 1 for count in history.effects.values()),
        "executions": len(history.executions),
        "attempts": dict(sorted(outcomes.items())),
        "returned_more_than_once": sum(count > 1 for count in returned.values()),
        "lost_attempts_after_return": _lost_after_return(history),
        "wait_ms": {"p50": 1000 * cuts[49], "p95": 1000 * cuts[94], "p99": 1000 * cuts[98]},
    }


def _lost_after_return(history: History) -> dict[str, int]:
    """Count attempts that were charged as lost although the task had returned, by what the rescue said."""
    returned = {(e.job_id, e.lease_version) for e in history.executions if e.how == RETURNED}
    reasons = (
        attempt.exception_class.rpartition(".")[2]
        for attempt in history.attempts
        if attempt.outcome == "lost" and (attempt.job_id, attempt.lease_version) in returned
    )
    return dict(sorted(Counter(reasons).items()))


def as_text(
    counted: dict[str, Any],
    lines: list[Line],
    skipped: dict[str, str],
    faults: list[Injected],
    violations: list[Violation],
    before: float,
) -> str:
    """Return the report for people."""
    head = f"{'fault':<38}{'times':>6}{'recovered in, median':>22}{'worst':>9}{'done/asked':>14}{'worst':>7}"
    head += f"{'run again':>11}"
    table = [
        f"{line.name:<38}{line.count:>6}{line.median:>20.2f} s"
        f"{line.worst:>7.2f} s{line.share:>14.2f}{line.worst_share:>7.2f}{line.again:>11}"
        for line in lines
    ]
    notes = [f"skipped: {name}: {why}" for name, why in skipped.items()]
    notes += [f"not done: {fault.name}: {fault.error}" for fault in faults if fault.error]
    waits = counted["wait_ms"]
    body = [
        f"jobs committed {counted['committed']}, rolled back {counted['rolled_back']},"
        f" unknown {counted['unknown']}; throughput before the first fault {before:.0f}/s",
        f"lost {counted['lost']}, doubled effects {counted['doubled_effects']}",
        f"executions {counted['executions']}; attempts {counted['attempts']};"
        f" jobs that returned more than once {counted['returned_more_than_once']}",
        f"outcomes lost between return and commit: {counted['lost_attempts_after_return'] or 'none'}",
        f"from commit to start: median {waits['p50']:.0f} ms,"
        f" 95 % {waits['p95']:.0f} ms, 99 % {waits['p99']:.0f} ms",
    ]
    found = [f"VIOLATION {violation}" for violation in violations[:SHOWN]]
    if len(violations) > SHOWN:
        by_rule = Counter(violation.rule for violation in violations)
        found.append(f"... {len(violations)} violations: {dict(by_rule)}")
    verdict = f"FAILED: {len(violations)} violations" if violations else "CLEAN: every rule holds"
    return "\n".join([head, *table, *notes, "", *body, "", *found, verdict])
