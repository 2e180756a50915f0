"""What retention comes to: rules that say which ended jobs are deleted at what age.

``OPTIONS["retention"]`` maps a status to seconds, and under ``"queues"`` a queue's name to such a mapping,
which wins over the general one.  None keeps for ever.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from .states import CANCELLED, DEAD, SUCCEEDED

QUEUES = "queues"
"""The key of the queues' own mappings; no status is called so."""


class Rule(NamedTuple):
    """Jobs that ended in ``status`` go ``age`` seconds later: those of ``queues``, or all but ``but_not``."""

    status: str
    age: float
    queues: tuple[str, ...] | None = None
    but_not: tuple[str, ...] = ()

    @property
    def is_general(self) -> bool:
        """True when the rule is of every queue, so that an index gives its jobs and no others."""
        return self.queues is None and not self.but_not


def is_kept(retention: Mapping[str, Any], status: str, queue: str) -> bool:
    """Return whether a job of this queue stays for any time after it ended in ``status``."""
    own: Mapping[str, float | None] = (retention.get(QUEUES) or {}).get(queue) or {}
    return own.get(status, retention.get(status)) != 0


def rules_of(retention: Mapping[str, Any]) -> list[Rule]:
    """Return the rules of an option's value that the checks accept."""
    of_queues: Mapping[str, Mapping[str, float | None]] = retention.get(QUEUES) or {}
    rules: list[Rule] = []
    for status in (SUCCEEDED, CANCELLED, DEAD):
        own = {queue: ages[status] for queue, ages in sorted(of_queues.items()) if status in ages}
        general = retention.get(status)
        if general is not None:
            rules.append(Rule(status, general, None, tuple(own)))
        rules += [
            Rule(status, age, tuple(queue for queue in own if own[queue] == age))
            for age in sorted({age for age in own.values() if age is not None})
        ]
    return rules
