"""What one ``runworkers`` was told: the options of its backend with the command line on top."""

import dataclasses
import json
import os
import secrets
import socket
from dataclasses import dataclass, field
from typing import Any

from ..conf import MAX_WORKER_ID, Options, timing_problems
from ..records import WorkerIdentity
from ..storable import clean_name


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Times in seconds, memory in megabytes.  ``queues`` empty means any queue."""

    alias: str = "default"
    database: str = "default"
    queues: tuple[str, ...] = ("default",)
    processes: int = 1
    threads: int = 4
    coroutines: int = 32
    drain: bool = False
    max_jobs: int | None = None
    max_jobs_per_child: int | None = None
    max_memory: int | None = None
    lease: float = 30.0
    heartbeat: float = 10.0
    grace: float = 25.0
    poll_interval: float = 1.0
    notify: bool = True
    prepared_statements: bool = True
    unknown_task_patience: float = 3600.0
    log_tail_bytes: int = 16_384
    log_tail_level: str = "INFO"
    release: str = ""
    retention: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def make(cls, alias: str, queues: tuple[str, ...], options: Options, **overrides: Any) -> "WorkerConfig":
        """Return the configuration; raises ValueError with a message for people when it cannot work."""
        shared = {f.name for f in dataclasses.fields(cls)} & {f.name for f in dataclasses.fields(Options)}
        values = {name: getattr(options, name) for name in shared} | {
            name: value for name, value in overrides.items() if value is not None
        }
        config = cls(alias=alias, queues=queues, **values)
        problems = timing_problems(
            dataclasses.replace(
                options, lease=config.lease, heartbeat=config.heartbeat, poll_interval=config.poll_interval
            )
        )
        if problems:
            raise ValueError(" ".join(f"{problem.message} {problem.hint}" for problem in problems))
        return config

    def dump(self) -> str:
        """Return JSON for a process made by exec."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> "WorkerConfig":
        """Return what ``dump`` wrote."""
        values = json.loads(text)
        return cls(**values | {"queues": tuple(values["queues"])})


def host_name() -> str:
    """Return this machine's name as it is stored with attempts."""
    return clean_name(socket.gethostname() or "localhost", 255)


def new_identity() -> WorkerIdentity:
    """Return an identity for this process start: readable by its host and pid, unique by chance."""
    host, pid = host_name(), os.getpid()
    tail = f".{pid}.{secrets.token_hex(6)}"
    return WorkerIdentity(f"{clean_name(host, MAX_WORKER_ID - len(tail))}{tail}", host, pid)
