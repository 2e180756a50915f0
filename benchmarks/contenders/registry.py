"""The peers by name."""

from benchmarks.contenders.base import Contender

PEERS: dict[str, Contender] = {}
