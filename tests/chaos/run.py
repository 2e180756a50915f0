"""One run: set up, load, faults, the end of all jobs, the verdict.

The seed decides which faults come in which order; where exactly they hit is up to the machine.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from ..processes.nursery import ROOT
from ..processes.worker import environ
from ..waiting import wait_for, wait_until
from . import bugs, recording, tables
from .arena import Arena
from .checker import Violation, check
from .faults import Fault
from .gathering import gather
from .growth import SAMPLE_EVERY, Samples, trends, waits
from .growth import as_text as growth_as_text
from .harvest import HARVEST_EVERY, Harvest
from .history import RETURNED, History
from .measuring import Injected, Load, lines, rate, recoveries
from .report import as_text, totals
from .sampling import LOOK_EVERY, SCAN_EVERY, Deaths, Looks, Repeated
from .schedule import chosen, drawn
from .worker import Seat

WARM_UP = 10.0
"""Seconds without faults, in which the throughput before is measured."""
STARTED_WITHIN = 60.0
END_WITHIN = 180.0
UP_WITHIN = PROBED_WITHIN = 30.0
SAID_EVERY = 10.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run shall be. ``seconds`` bounds the time of faults; 0: until the jobs are asked for."""

    seed: int
    jobs: int = 100_000
    every: float = 2.0
    rate: float = 200.0
    seconds: float = 0.0
    only: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    soak: bool = False
    ledger: str = ""
    bug: str = ""


@dataclass(slots=True)
class Result:
    """What a run came to."""

    text: str
    figures: dict[str, Any]
    violations: list[Violation]


Trouble = Callable[["subprocess.Popen[bytes]"], Iterator[Injected]]
"""Makes trouble until the producer has ended, and yields what it did."""


def run(plan: Plan, arena: Arena, say: Callable[[str], None], trouble: Trouble | None = None) -> Result:
    """Run on an arena that stands, with its seats not yet taken; ``trouble`` is the schedule if None."""
    wanted = [fault for fault in chosen(plan.only) if fault.name not in plan.without]
    fitting = [fault for fault in wanted if not fault.missing(arena)]
    skipped = {} if trouble else {fault.name: why for fault in wanted if (why := fault.missing(arena))}
    looks, deaths = Looks(arena.admin), Deaths(arena.seats)
    harvest, samples = Harvest(arena.admin), Samples(arena.admin, arena.spared)
    watching = [Repeated("looks", LOOK_EVERY, looks), Repeated("deaths", SCAN_EVERY, deaths)]
    if plan.soak:
        watching.append(Repeated("harvest", HARVEST_EVERY, harvest))
        watching.append(Repeated("samples", SAMPLE_EVERY, samples))
    arena.environ |= {recording.LEDGER: plan.ledger, bugs.VARIABLE: plan.bug}
    for seat in arena.seats:
        seat.start(wait=False)
    for seat in arena.seats:
        seat.worker.wait_started(seat.processes)
    with background(*watching):
        with producing(arena, plan) as producer:
            wait_until(lambda: _has_asked(arena), STARTED_WITHIN, "the producer asked for nothing")
            wait_for(2.0)  # the first seconds are not like the others
            began = time.monotonic()
            wait_for(WARM_UP)
            injected = list(trouble(producer) if trouble else inject(arena, plan, fitting, producer, say))
        say("no more faults; waiting for the end of all jobs")
        problems = finish(arena)
    for watcher in (looks, harvest, samples):
        watcher.close()
    history = gather(arena, looks, deaths, harvest if plan.soak else None)
    violations = check(history) + [Violation("faults_can_be_done", problem) for problem in problems]
    load = load_of(history)
    before = rate(load.done, began, began + WARM_UP)
    table, counted = lines(recoveries(load, injected), lost_ends(history), injected), totals(history)
    growth = trends(samples.series | {"wait from commit to start, ms": waits(history)}) if plan.soak else []
    violations += [Violation("nothing_grows", str(trend)) for trend in growth if not trend.is_flat]
    text = as_text(counted, table, skipped, injected, violations, before)
    if growth:
        text = f"{growth_as_text(growth, (time.monotonic() - began) / 60)}\n\n{text}"
    figures = counted | {
        "seed": plan.seed,
        "faults": sum(not fault.error for fault in injected),
        "throughput_before": before,
        "injected": [[fault.name, fault.began, fault.ended, fault.error] for fault in injected],
        "by_fault": [{name: getattr(line, name) for name in line.__slots__} for line in table],
        "growth": [{name: getattr(trend, name) for name in trend.__slots__} for trend in growth],
        "violations": [str(violation) for violation in violations],
    }
    return Result(text, figures, violations)


def load_of(history: History) -> Load:
    """Return when jobs were asked for that succeed, and when each returned first."""
    first: dict[str, float] = {}
    for execution in sorted(history.executions, key=lambda execution: execution.began):
        if execution.how == RETURNED and execution.ended is not None:
            first.setdefault(execution.tag, execution.ended)
    asked = [a.at for a in history.asked if a.tag in first]
    return Load(sorted(asked), sorted(first.values()))


def lost_ends(history: History) -> list[float]:
    """Return when the calls returned whose attempts were then charged as lost."""
    lost = {(a.job_id, a.lease_version) for a in history.attempts if a.outcome == "lost"}
    return sorted(
        call.ended
        for call in history.executions
        if call.how == RETURNED and call.ended is not None and (call.job_id, call.lease_version) in lost
    )


# --- the parts of a run


def _has_asked(arena: Arena) -> bool:
    return any(fact[1] == recording.ASKED for _, fact in recording.read(arena.record))


@contextmanager
def producing(arena: Arena, plan: Plan) -> Iterator["subprocess.Popen[bytes]"]:
    """Have a process enqueue all the while."""
    words = ["--name", "p", "--rate", str(plan.rate), "--jobs", str(plan.jobs), "--seed", str(plan.seed)]
    words += ["--ledger"] if plan.ledger else []
    env = environ(arena.url) | arena.environ
    with (arena.folder / "producer.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.producer", *words], env=env, cwd=ROOT, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    said = (arena.folder / "producer.log").read_text()
    assert process.returncode == 0, f"the producer ended with {process.returncode}:\n{said[-3000:]}"


def inject(
    arena: Arena,
    plan: Plan,
    faults: list[Fault],
    producer: "subprocess.Popen[bytes]",
    say: Callable[[str], None],
) -> Iterator[Injected]:
    """Do one fault after another until everything is asked for, or the time is over."""
    began = said = time.monotonic()
    for count, fault in enumerate(drawn(plan.seed, faults), 1):
        if producer.poll() is not None or 0 < plan.seconds < time.monotonic() - began:
            return
        start = time.monotonic()
        error = ""
        try:
            fault.inject(arena)
        except Exception as caught:
            error = f"{type(caught).__name__}: {caught}"[:300]
        end = time.monotonic()
        yield Injected(fault.name, start, end, error)
        if error or end - said > SAID_EVERY:
            said = end
            say(f"{end - began:5.0f} s, fault {count}: {fault.name}" + (f" FAILED: {error}" if error else ""))
        wait_for(max(start + plan.every - end, plan.every / 2))


def finish(arena: Arena) -> list[str]:
    """Let all jobs end, have each worker run a probe, and stop them; return what went wrong."""
    arena.settle_down()
    problems = [f"{seat.name} is not up" for seat in arena.seats if not _comes_up(seat)]
    problems += _await_jobs(arena)
    for seat in arena.seats:
        if seat.worker.alive:
            seat.sitters[-1].probe = _probe(arena, seat.queue)
            if not seat.sitters[-1].probe:
                problems.append(f"{seat.name} ran no probe within {PROBED_WITHIN:g} s")
            seat.ask_to_stop()
    for seat in arena.seats:
        seat.await_end()
    return problems


def _comes_up(seat: Seat) -> bool:
    with suppress(AssertionError):
        return wait_until(lambda: seat.is_up, UP_WITHIN)
    return False


def _await_jobs(arena: Arena) -> list[str]:
    with arena.admin() as session:
        try:
            wait_until(lambda: not tables.unfinished(session), END_WITHIN)
        except AssertionError:
            return [f"{tables.unfinished(session)} jobs had not ended {END_WITHIN:g} s after the last fault"]
    return []


def _probe(arena: Arena, queue: str) -> str:
    tag = arena.ask("probe", queue=queue)
    try:
        wait_until(lambda: arena.calls(tag), PROBED_WITHIN)
    except AssertionError:
        return ""
    return tag


@contextmanager
def background(*threads: Repeated) -> Iterator[None]:
    """Have these run meanwhile."""
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.stop()
