"""The benchmarks by name, in the order of the documentation."""

from benchmarks.core.benchmark import Benchmark
from benchmarks.suite import (
    admin_pages,
    backlog,
    claim_plan,
    drain,
    drain_processes,
    enqueue,
    enqueue_concurrent,
    enqueue_many,
    idle,
    latency,
    memory,
    mixed_durations,
    pinned_horizon,
    retention,
    scale_out,
    scheduled_mass,
)

MODULES = (
    drain,
    drain_processes,
    enqueue,
    enqueue_many,
    enqueue_concurrent,
    latency,
    backlog,
    pinned_horizon,
    scheduled_mass,
    retention,
    claim_plan,
    idle,
    memory,
    mixed_durations,
    scale_out,
    admin_pages,
)
BENCHMARKS: dict[str, Benchmark] = {module.BENCHMARK.name: module.BENCHMARK for module in MODULES}
