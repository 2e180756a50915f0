"""A peer written in Python: an environment of its own, and a driver of its name in ``drivers``."""

from pathlib import Path

from benchmarks.contenders.base import Contender
from benchmarks.contenders.environments import python_environment


class PythonPeer(Contender):
    """Subclasses name the packages, the first one being the queue itself, and the module of the driver."""

    requirements: tuple[str, ...] = ()
    module = ""

    def __init__(self) -> None:
        self._python = Path()

    def prepare(self) -> None:
        """Make the environment; raises CannotRun."""
        self._python = python_environment(self.name, self.requirements)

    def driver(self, *arguments: object) -> list[str]:
        """Return the command line of the driver."""
        module = f"benchmarks.contenders.drivers.{self.module}"
        return [str(self._python), "-m", module, *map(str, arguments)]
