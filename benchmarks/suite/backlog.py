"""backlog: does a drain stay as quick when the tables hold a great many other jobs?

Three piles: ready ones behind those that are drained, ended ones that are kept (ten times as many), and ones
that are scheduled for tomorrow with the highest priority.
"""

from functools import partial
from typing import Any

from benchmarks.contenders.base import BEST, Contender
from benchmarks.contenders.ours import OURS
from benchmarks.core import draining, filling, statistics
from benchmarks.core.benchmark import Benchmark, Setting
from benchmarks.core.lanes import Lane, Race, Sample

DRAINED = 20_000
PILES = ("ready", "ended", "scheduled")
READY = ", ready"


def lanes(setting: Setting) -> list[Lane]:
    """Return a drain of ours without a pile and with each, and of each peer without and with ready ones."""
    jobs = min(DRAINED, setting.size)
    fills = {
        "ready": filling.ready(setting.size),
        "ended": filling.succeeded(setting.size * 10),
        "scheduled": filling.scheduled(setting.size),
    }
    made = [Lane("ours", partial(drain, setting, OURS, jobs))]
    for pile, sql in fills.items():
        fill = (f"_{pile}_{setting.size}", sql)
        made.append(Lane(f"ours, {pile}", partial(drain, setting, OURS, jobs, fill)))
    for peer in setting.peers:
        made.append(Lane(peer.name, partial(drain, setting, peer, jobs)))
        made.append(Lane(f"{peer.name}{READY}", partial(behind, setting, peer, jobs)))
    return made


def drain(setting: Setting, contender: Contender, jobs: int, fill: tuple[str, str] = ("", "")) -> Sample:
    """Drain the first jobs, with or without a pile of others."""
    with contender.place(setting.databases, jobs, BEST, fill=fill) as place:
        return draining.drain(place, target=jobs).sample()


def behind(setting: Setting, contender: Contender, jobs: int) -> Sample:
    """Drain the first jobs of a queue that holds ``size`` more, enqueued through the peer's own bulk API."""
    with contender.place(setting.databases, jobs + setting.size, BEST) as place:
        return draining.drain(place, target=jobs).sample()


def finish(race: Race) -> dict[str, Any]:
    """Return each pile's rate over that of the plain drain, ours and the peers'."""
    plain = race.values("ours")
    shares = {
        f"{pile}_over_drain": statistics.ratio_of_pairs(race.values(f"ours, {pile}"), plain)
        for pile in PILES
        if race.values(f"ours, {pile}")
    }
    peers = {}
    for lane in race.samples:
        peer = lane.removesuffix(READY)
        if lane.endswith(READY) and peer != "ours" and race.values(peer):
            peers[peer] = statistics.ratio_of_pairs(race.values(lane), race.values(peer))
    return {**shares, "lowest_over_drain": min(shares.values(), default=0.0), "peers_ready_over_drain": peers}


BENCHMARK = Benchmark(
    name="backlog",
    unit="jobs/s",
    about=f"a drain of {DRAINED:,} jobs beside a pile of others; ended ones: ten times the size",
    sized="other jobs",
    size=1_000_000,
    short=10_000,
    lanes=lanes,
    pairs=lambda setting: [(peer.name, "ours, ready", f"{peer.name}, ready") for peer in setting.peers],
    finish=finish,
)
