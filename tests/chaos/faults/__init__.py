"""The faults: what each does, what it needs, and how often it is drawn."""

from . import clients, database, network, processes  # noqa: F401 - each registers its faults
from .registry import FAULTS, Fault

__all__ = ["FAULTS", "Fault"]
