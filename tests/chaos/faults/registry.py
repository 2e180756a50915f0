"""The register of faults: functions that do one thing to an arena, and return when the trouble is over."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Inject = Callable[[Any], None]
FAULTS: dict[str, "Fault"] = {}


@dataclass(frozen=True, slots=True)
class Fault:
    """``missing`` returns why an arena cannot have it, or nothing; ``weight`` says how often it comes."""

    name: str
    inject: Inject
    missing: Callable[[Any], str]
    weight: int

    @property
    def about(self) -> str:
        """What it does, in a sentence."""
        return " ".join((self.inject.__doc__ or "").split())


def fault(
    name: str, *, weight: int = 4, missing: Callable[[Any], str] = lambda arena: ""
) -> Callable[[Inject], Inject]:
    """Register the decorated function under this name."""

    def register(inject: Inject) -> Inject:
        FAULTS[name] = Fault(name, inject, missing, weight)
        return inject

    return register
