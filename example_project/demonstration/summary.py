"""The summary in the terminal."""

from pathlib import Path

from .evidence import Evidence
from .faults import say
from .verdict import Check


def show(checks: list[Check], seen: Evidence, seconds: float) -> None:
    """Print what happened and every check, with what differs marked."""
    say()
    say(f"Jobs by status: {_listed(seen.statuses)}")
    say(f"Attempts by outcome: {_listed(seen.outcomes)}")
    say(f"Retried after a failure or a loss: {_retried(seen)} jobs")
    say()
    width = max(len(check.about) for check in checks)
    say(f"    {'':<{width}}  {'expected':>11}  found")
    for check in checks:
        mark = "ok" if check.passed else "NO"
        say(f"{mark}  {check.about:<{width}}  {check.expected:>11}  {check.found}")
    say()
    wrong = [check.about for check in checks if not check.passed]
    if wrong:
        say(f"{len(wrong)} of {len(checks)} checks failed after {seconds:.0f} s: {'; '.join(wrong)}.")
    else:
        say(f"All {len(checks)} checks passed in {seconds:.0f} s.")


def show_where_to_look(folder: Path, order_page: str) -> None:
    """Print what to open next."""
    say(f"Look at {folder / 'media' / 'invoices'} (a PDF for each order) and {folder / 'workers.log'}.")
    if order_page:
        say(f"An order and its jobs: {order_page}")
    else:
        say("To see the site and the admin, run it again with --serve (make demo SERVE=1).")


def _retried(seen: Evidence) -> int:
    return sum(state.attempts > 1 for jobs in seen.jobs.values() for state in jobs.states.values())


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {counts[name]}" for name in sorted(counts)) or "none"
