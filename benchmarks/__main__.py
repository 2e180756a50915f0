"""The command: ``python -m benchmarks drain [--jobs N] [--repeat N] [--json FILE]``."""

import argparse
from collections.abc import Callable

from benchmarks import bench, drain

BENCHMARKS: dict[str, Callable[[int, int], bench.Result]] = {"drain": drain.run}


def main() -> None:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHMARKS))
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    with bench.durable_server():
        bench.prepare_database()
        bench.show(BENCHMARKS[arguments.name](arguments.jobs, arguments.repeat), arguments.json)


if __name__ == "__main__":
    main()
