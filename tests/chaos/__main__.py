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

SHORT_SECONDS, SHORT_JOBS = 150.0, 100_000


def main() -> int:
    """Run as the command line says; return 0 when the checker found nothing."""
    options = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    import django  # noqa: PLC0415 - the settings have to be named first

    os.environ.setdefault("DATABASE_URL", "postgresql://127.0.0.1/unused")
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from . import failover, place, run  # noqa: PLC0415 - these need the settings

    seed = options.seed if options.seed is not None else secrets.randbelow(10**6)
    jobs, seconds = (SHORT_JOBS, SHORT_SECONDS) if options.short else (options.jobs, options.minutes * 60)
    plan = run.Plan(seed, jobs, options.every, options.rate, seconds, options.only or [])
    if options.failover:
        say(f"seed {seed}, {options.rounds} failovers, {options.failover}")
        with failover.arena(seed, options.failover, say) as (arena, pair):
            result = run.run(plan, arena, say, partial(failover.failovers, arena, pair, options.rounds))
    else:
        say(f"seed {seed} (again: --seed {seed}), {jobs} jobs, a fault every {options.every:g} s")
        with place.arena(seed, jobs, say) as arena:
            result = run.run(plan, arena, say)
    folder = arena.folder
    print(result.text, flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(result.figures, indent=1))
    (folder / "figures.json").write_text(json.dumps(result.figures, indent=1))
    if result.violations:
        say(f"logs and records are kept in {folder}; seed {seed}")
        return 1
    if options.keep:
        say(f"logs and records are kept in {folder}")
        return 0
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="dev.py chaos")
    parser.add_argument("--seed", type=int, help="the order of the faults; printed at the start")
    parser.add_argument("--jobs", type=int, default=100_000, help="committed jobs (default 100000)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between the beginnings of faults")
    parser.add_argument("--rate", type=float, default=200.0, help="committed jobs a second")
    parser.add_argument("--minutes", type=float, default=0.0, help="end after so long, whatever --jobs says")
    parser.add_argument("--short", action="store_true", help="a run of less than five minutes")
    parser.add_argument("--only", action="append", metavar="FAULT", help="only this fault; may be repeated")
    parser.add_argument(
        "--failover", choices=("synchronous", "asynchronous"), help="fail over, and nothing else"
    )
    parser.add_argument("--rounds", type=int, default=4, help="so many times (default 4)")
    parser.add_argument("--keep", action="store_true", help="keep logs and records of a clean run, too")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    return parser.parse_args()


def say(text: str) -> None:
    """Tell how the run goes on."""
    print(f"[chaos] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
