"""The command: ``python -m benchmarks NAME [--vs PEERS] [--runs N] [--size N | --short] [--json FILE]``.

NAME is a benchmark, ``all``, or ``brief`` for those that say most. The server is an embedded one, durable, or
the one that DATABASE_URL names; each measurement gets a database of its own there. Peers get environments of
their own under .cache/, of the newest versions.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.contenders.base import Contender
from benchmarks.contenders.registry import PEERS
from benchmarks.core import results
from benchmarks.core.benchmark import Benchmark, Setting, measure
from benchmarks.core.databases import Databases, databases
from benchmarks.core.lanes import CannotRun
from benchmarks.suite.registry import BENCHMARKS

RUNS = 5
BRIEF = ("drain", "drain-processes", "enqueue", "enqueue-many", "latency", "claim-plan")
SELECTIONS = {"all": tuple(BENCHMARKS), "brief": BRIEF}


def main(arguments: Sequence[str]) -> int:
    """Run benchmarks; return the exit status."""
    chosen = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    names = SELECTIONS.get(chosen.name, (chosen.name,))
    with databases() as made:
        peers, failures = prepared([PEERS[name] for name in chosen.vs])
        for name in names:
            outcome = run(BENCHMARKS[name], made, chosen, peers, failures)
            say("\n".join(results.lines_of(outcome)))
            if chosen.json:
                several = chosen.name in SELECTIONS
                results.write(outcome, chosen.json / f"{name}.json" if several else chosen.json)
    return 0


def run(
    benchmark: Benchmark,
    made: Databases,
    chosen: argparse.Namespace,
    peers: Sequence[Contender],
    failures: dict[str, str],
) -> dict[str, object]:
    """Run one benchmark as the arguments say."""
    size = chosen.size or (benchmark.short if chosen.short else benchmark.size)
    beside = peers if benchmark.takes_peers else ()
    if peers and not beside:
        say(f"{benchmark.name}: of ours alone, no peer takes part")
    return measure(
        benchmark, Setting(made, size, beside), chosen.runs, failures if beside or not peers else {}, say
    )


def prepared(peers: Sequence[Contender]) -> tuple[list[Contender], dict[str, str]]:
    """Make the peers' environments; return those that can run here, and why the others cannot."""
    ready, failures = [], {}
    for peer in peers:
        try:
            peer.prepare()
            ready.append(peer)
        except CannotRun as error:
            failures[peer.name] = f"cannot run here: {error}"
            say(f"{peer.name}: {failures[peer.name]}")
    return ready, failures


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*BENCHMARKS, *SELECTIONS]
    made.add_argument("name", choices=names, metavar="NAME", help=", ".join(names))
    made.add_argument(
        "--vs", type=peer_names, default=[], metavar="PEERS", help=f"of {', '.join(PEERS)}, or all"
    )
    made.add_argument("--runs", type=int, default=RUNS, help="how often (default: %(default)s)")
    made.add_argument("--size", type=int, help="how many jobs, or what else the benchmark is sized by")
    made.add_argument("--short", action="store_true", help="small sizes, for a quick look")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the result there; of all: a directory")
    return made


def peer_names(text: str) -> list[str]:
    """Parse a list of peers."""
    names = list(PEERS) if text == "all" else [name.strip() for name in text.split(",") if name.strip()]
    unknown = sorted(set(names) - set(PEERS))
    if unknown:
        raise argparse.ArgumentTypeError(f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return names


def say(message: str) -> None:
    """Print progress at once."""
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
