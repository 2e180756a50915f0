"""``python -m tests.chaos``: a run under faults, and its verdict; ``dev.py chaos`` prepares and calls it."""

import argparse
import json
import os
import secrets
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

SHORT_SECONDS = 150.0
SPARED_FROM = ("kill all workers", "deploy")
"""Faults that leave no worker to watch; a soak goes without them, and spares one worker from the others."""
BUGS = ("rescue-too-early", "no-fence", "enqueue-apart")
LEDGERS = ("atomic", "plain")
MODES = ("synchronous", "asynchronous")


def main() -> int:
    """Run as the command line says; return 0 when the checker found nothing."""
    options = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.environ.setdefault("DATABASE_URL", "postgresql://127.0.0.1/unused")
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django

    django.setup()
    say(f"seed {options.seed} (--seed {options.seed} draws the same faults again)")
    result, folder = chosen_run(options)
    print(result.text, flush=True)
    for path in filter(None, [folder / "figures.json", options.json]):
        Path(path).write_text(json.dumps(result.figures, indent=1))
    if result.violations or options.keep:
        say(f"logs and records are kept in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if result.violations else 0


def chosen_run(options: argparse.Namespace) -> tuple[Any, Path]:
    """Run what was asked for; return the result and the folder of its logs."""
    from . import failover, harvest, place, run

    seconds = SHORT_SECONDS if options.short else 60 * (options.soak or options.minutes)
    plan = run.Plan(
        seed=options.seed,
        jobs=0 if options.soak else options.jobs,
        every=options.every,
        rate=options.rate,
        seconds=seconds,
        only=options.only,
        without=[*options.without, *(SPARED_FROM if options.soak else ())],
        soak=bool(options.soak),
        ledger=options.ledger or "",
        bug=options.bug or "",
    )
    if options.failover:
        with failover.arena(plan.seed, options.failover, say) as (arena, pair):
            trouble = partial(failover.failovers, arena, pair, options.rounds)
            return run.run(plan, arena, say, trouble), arena.folder
    with place.arena(plan.seed, plan.jobs, say, harvest.RETENTION if plan.soak else None) as arena:
        arena.spared = arena.seats[:1] if plan.soak else []
        return run.run(plan, arena, say), arena.folder


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="dev.py chaos")
    add = parser.add_argument
    add("--seed", type=int, default=secrets.randbelow(10**6), help="the order of the faults")
    add("--jobs", type=int, default=100_000, help="committed jobs (default 100000)")
    add("--every", type=float, default=2.0, help="seconds between the beginnings of faults (default 2)")
    add("--rate", type=float, default=200.0, help="jobs asked for in a second (default 200)")
    add("--minutes", type=float, default=0.0, help="end after so long, whatever --jobs says")
    add("--short", action="store_true", help="less than five minutes")
    add("--only", action="append", default=[], metavar="FAULT", help="this fault; may be repeated")
    add("--without", action="append", default=[], metavar="FAULT", help="not this fault")
    add("--soak", type=float, metavar="MINUTES", help="watch for so long what grows")
    add("--ledger", choices=LEDGERS, help="transfers between accounts, by tasks with or without atomic=True")
    add("--failover", choices=MODES, help="fail over between two servers, and no other fault")
    add("--rounds", type=int, default=4, help="so many times (default 4)")
    add("--bug", choices=BUGS, help="put this bug into the product; the run has to fail")
    add("--keep", action="store_true", help="keep logs and records of a clean run, too")
    add("--json", metavar="FILE", help="write the figures there, too")
    return parser.parse_args()


def say(text: str) -> None:
    """Tell how the run goes on."""
    print(f"[chaos] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
