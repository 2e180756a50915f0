"""graphile-worker: Node.js; with a local queue and batched completion very quick. Ended jobs are deleted."""

import json
from pathlib import Path

from benchmarks.contenders.base import Contender
from benchmarks.contenders.environments import node_environment

REQUIREMENTS = ("graphile-worker", "pg")
DRIVER = Path(__file__).parent / "drivers" / "graphile_worker.js"


class GraphileWorker(Contender):
    """At its best with 24 jobs at a time, a local queue of 500 and completion in batches."""

    name = "graphile-worker"
    table = "graphile_worker._private_jobs"
    pending = "SELECT count(*) FROM graphile_worker._private_jobs"

    def __init__(self) -> None:
        self._node, self._directory = "", Path()

    def prepare(self) -> None:
        """Install the packages; raises CannotRun when there is no Node.js."""
        self._node, self._directory = node_environment(self.name, REQUIREMENTS)

    def driver(self, *arguments: object) -> list[str]:
        """Return the command line of the driver; its second argument says where the packages are."""
        command, *rest = arguments
        return [self._node, str(DRIVER), str(self._directory), *map(str, [command, *rest])]

    def versions(self) -> dict[str, str]:
        """Return the versions of Node.js and the packages."""
        found = {name: self._version(name) for name in REQUIREMENTS}
        return {**found, **super().versions()}

    def _version(self, package: str) -> str:
        path = self._directory / "node_modules" / package / "package.json"
        return str(json.loads(path.read_text())["version"])
