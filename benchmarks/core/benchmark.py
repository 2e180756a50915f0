"""What a benchmark is: lanes to run, ratios to give, a size. ``measure`` runs one and returns its result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.contenders.base import BEST, DEFAULTS, Contender
from benchmarks.core import facts
from benchmarks.core.databases import Databases
from benchmarks.core.lanes import Lane, Race, Sample, race
from benchmarks.core.results import Pairs, result

OURS = "ours"


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how large to measure, and beside whom."""

    databases: Databases
    size: int
    peers: Sequence[Contender] = ()


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark. ``size`` is of ``sized``, such as "jobs"; ``short`` is the size for a quick look.

    ``main`` is the lane whose runs are the result's own. ``finish`` adds facts that compare lanes.
    """

    name: str
    unit: str
    about: str
    sized: str
    size: int
    short: int
    lanes: Callable[[Setting], list[Lane]]
    main: str = OURS
    pairs: Callable[[Setting], Pairs] | None = None
    finish: Callable[[Race], dict[str, Any]] | None = None
    better: str = "higher"
    takes_peers: bool = True


def measure(
    benchmark: Benchmark,
    setting: Setting,
    runs: int,
    failures: dict[str, str] | None = None,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Run a benchmark; ``failures`` are peers that cannot take part, with the reasons."""
    lanes = benchmark.lanes(setting)
    lanes.sort(key=lambda lane: lane.name != benchmark.main)  # the main lane must not fail
    versions = facts.versions(setting.databases.admin)
    say(f"{benchmark.name}: {setting.size:,} {benchmark.sized}, {runs} runs; {benchmark.about}")
    if not facts.is_durable(versions):
        say("  NOT DURABLE: the server has fsync, synchronous_commit or full_page_writes off")
    outcome = race(lanes, runs, benchmark.unit, say)
    outcome.failures.update(failures or {})
    for peer in setting.peers:
        versions[peer.name] = version_of(peer)
    pairs = benchmark.pairs(setting) if benchmark.pairs else [(p.name, OURS, p.name) for p in setting.peers]
    return result(
        name=benchmark.name,
        unit=benchmark.unit,
        about=benchmark.about,
        race=outcome,
        main=benchmark.main,
        pairs=pairs,
        versions=versions,
        machine=facts.machine(),
        better=benchmark.better,
        size=setting.size,
        sized=benchmark.sized,
        durable=facts.is_durable(versions),
        **(benchmark.finish(outcome) if benchmark.finish else {}),
    )


def version_of(peer: Contender) -> str:
    """Return a peer's version, and in brackets those of what it runs on."""
    (_, own), *others = peer.versions().items()
    below = ", ".join(f"{name} {version}" for name, version in others)
    return f"{own} ({below})" if below else own


def lanes_of(contenders: Sequence[Contender], once: Callable[[Contender], Sample]) -> list[Lane]:
    """Return a lane for each contender, named after it."""
    return [Lane(contender.name, partial(once, contender)) for contender in contenders]


def both_configurations(
    contenders: Sequence[Contender], once: Callable[[Contender, str], Sample]
) -> list[Lane]:
    """Return two lanes for each contender: at its best under its name, and with its defaults."""
    best = [Lane(c.name, partial(once, c, BEST)) for c in contenders]
    defaults = [Lane(with_defaults(c.name), partial(once, c, DEFAULTS)) for c in contenders]
    return [*best, *defaults]


def with_defaults(name: str) -> str:
    """Return the name of the lane with default settings."""
    return f"{name}, defaults"


def pairs_of_both(setting: Setting) -> Pairs:
    """Return best against best under the peer's name, and defaults against defaults."""
    best = [(peer.name, OURS, peer.name) for peer in setting.peers]
    defaults = [
        (with_defaults(peer.name), with_defaults(OURS), with_defaults(peer.name)) for peer in setting.peers
    ]
    return [*best, *defaults]
