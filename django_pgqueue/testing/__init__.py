"""The test kit for projects: run jobs inside a test, look at what was enqueued, let time pass, crash.

Everything but ``run_worker`` works on the calling thread and inside the transaction of a ``TestCase``.
Importing this package touches neither the app registry nor the settings; the names resolve on first use.
It is also the value of the pytest fixture ``pgqueue``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .clock import forward_time as forward_time
    from .crashes import Crash as Crash
    from .crashes import WorkerDied as WorkerDied
    from .crashes import worker_dies as worker_dies
    from .enqueued import Like as Like
    from .enqueued import assert_enqueued as assert_enqueued
    from .enqueued import assert_enqueues as assert_enqueues
    from .enqueued import assert_not_enqueued as assert_not_enqueued
    from .enqueued import enqueued_jobs as enqueued_jobs
    from .reports import JobRun as JobRun
    from .reports import RanJob as RanJob
    from .running import TooManyJobs as TooManyJobs
    from .running import arun_jobs as arun_jobs
    from .running import run_jobs as run_jobs
    from .workers import WorkerFailed as WorkerFailed
    from .workers import WorkerProcess as WorkerProcess
    from .workers import run_worker as run_worker

_HOME = {
    "Crash": "crashes",
    "JobRun": "reports",
    "Like": "enqueued",
    "RanJob": "reports",
    "TooManyJobs": "running",
    "WorkerDied": "crashes",
    "WorkerFailed": "workers",
    "WorkerProcess": "workers",
    "arun_jobs": "running",
    "assert_enqueued": "enqueued",
    "assert_enqueues": "enqueued",
    "assert_not_enqueued": "enqueued",
    "enqueued_jobs": "enqueued",
    "forward_time": "clock",
    "run_jobs": "running",
    "run_worker": "workers",
    "worker_dies": "crashes",
}
__all__ = [
    "Crash",
    "JobRun",
    "Like",
    "RanJob",
    "TooManyJobs",
    "WorkerDied",
    "WorkerFailed",
    "WorkerProcess",
    "arun_jobs",
    "assert_enqueued",
    "assert_enqueues",
    "assert_not_enqueued",
    "enqueued_jobs",
    "forward_time",
    "run_jobs",
    "run_worker",
    "worker_dies",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
