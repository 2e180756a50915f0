"""``python -m tests.chaos``: a run under faults, and its verdict; ``dev.py chaos`` prepares and calls it."""

import argparse
import json
import os
import secrets
import shutil
import signal
import sys
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
    from . import place, run  # noqa: PLC0415 - these need the settings

    seed = options.seed if options.seed is not None else secrets.randbelow(10**6)
    jobs, seconds = (SHORT_JOBS, SHORT_SECONDS) if options.short else (options.jobs, options.minutes * 60)
    plan = run.Plan(seed, jobs, options.every, options.rate, seconds, options.only or [])
    say(f"seed {seed} (again: dev.py chaos --seed {seed}), {jobs} jobs, a fault every {options.every:g} s")
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
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    return parser.parse_args()


def say(text: str) -> None:
    """Tell how the run goes on."""
    print(f"[chaos] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
