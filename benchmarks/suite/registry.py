"""The benchmarks by name, in the order of the documentation."""

from benchmarks.core.benchmark import Benchmark
from benchmarks.suite import (
    backlog,
    claim_plan,
    drain,
    drain_processes,
    enqueue,
    enqueue_many,
    idle,
    latency,
    memory,
    pinned_horizon,
)

MODULES = (
    drain,
    drain_processes,
    enqueue,
    enqueue_many,
    latency,
    backlog,
    pinned_horizon,
    claim_plan,
    idle,
    memory,
)
BENCHMARKS: dict[str, Benchmark] = {module.BENCHMARK.name: module.BENCHMARK for module in MODULES}
