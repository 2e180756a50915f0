"""What one run leaves behind, as plain values: what was asked, what was executed, what the tables hold.

The checker knows nothing else. Times are seconds of the monotonic clock, which all processes of a machine
share, unless a name ends in ``_db``: those are seconds of the database's clock. A job is known by its *tag*,
which the producer gives and every execution repeats: ids of rolled-back jobs can be given again by a server
that crashed.
"""

from dataclasses import dataclass, field

COMMITTED, ROLLED_BACK, UNKNOWN = "committed", "rolled back", "unknown"
"""How a transaction ended, as far as the producer can tell; *unknown*: the reply to its COMMIT never came."""
SETTLED_WITHIN = 1.0
"""Seconds in which an outcome is committed while the database answers."""
RETURNED, RAISED = "returned", "raised"


@dataclass(frozen=True, slots=True)
class Asked:
    """One job that a producer asked for, and what became of its transaction."""

    tag: str
    kind: str
    outcome: str
    at: float


@dataclass(frozen=True, slots=True)
class Execution:
    """One call of a task; ``ended`` is None when the process died in it. ``value`` is unique to the call."""

    tag: str
    job_id: int
    lease_version: int
    attempt: int
    pid: int
    began: float
    ended: float | None = None
    how: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """A job's row at the end of the run."""

    job_id: int
    tag: str
    status: str
    attempts: int
    attempts_allowed: int
    lease_version: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """A row of what happened; ``pid`` is the worker process that held the job."""

    job_id: int
    number: int
    lease_version: int
    outcome: str
    pid: int
    started_db: float
    finished_db: float
    value: str | None = None
    exception_class: str = ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A job's row as it stood at some moment of the run."""

    at: float
    job_id: int
    status: str
    attempts: int
    lease_version: int


@dataclass(frozen=True, slots=True)
class Overdue:
    """A moment at which a job was running although its lease had ended ``seconds`` ago.

    ``look`` is how long the harness's own looks took about that time: a busy machine makes those of the
    workers as slow.
    """

    at: float
    job_id: int
    seconds: float
    look: float = 0.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """A time in which processes could not renew their leases; ``pids`` None: nobody could.

    ``jobs`` are those whose rows somebody else had locked.  ``nobody_rescues``: there was no keeper to
    rescue what others lost.
    """

    began: float
    ended: float
    pids: frozenset[int] | None = None
    jobs: frozenset[int] = frozenset()
    nobody_rescues: bool = False

    def hits(self, pid: int, job_id: int) -> bool:
        """True when this process could not renew, or not this job."""
        return self.pids is None or pid in self.pids or job_id in self.jobs


@dataclass(frozen=True, slots=True)
class Death:
    """The end of a worker process.

    ``foreseen``: a fault or an order to stop explains it; ``by_supervisor``: its own supervisor killed it.
    """

    pid: int
    at: float
    foreseen: bool = True
    by_supervisor: bool = False


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a worker stood at the end: ``code`` None means that it ran, and then it must have run its probe.

    ``stopping``: from when it was told to stop to its end; ``pid``: its supervisor.  ``killed_child``: a
    task did not end at its time limit.
    """

    name: str
    code: int | None
    allowed: frozenset[int] = frozenset()
    ran_probe: bool = False
    complaints: tuple[str, ...] = ()
    pid: int = 0
    stopping: tuple[float, float] | None = None
    killed_child: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """A write to a store that compares fencing tokens, in the order in which the store accepted them."""

    tag: str
    token: int
    pid: int


@dataclass(frozen=True, slots=True)
class Kind:
    """What must become of the jobs of a kind; ``budget`` is the number of charged attempts allowed.

    ``atomic``: within a claim it is called again when its transaction met a deadlock.
    """

    status: str = "succeeded"
    budget: int = 100
    has_effect: bool = False
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class Ledger:
    """Transfers between accounts: every committed one must have moved its money once."""

    opening: int
    closing: int
    transfers: int
    asked: int


@dataclass(slots=True)
class History:
    """A whole run; ``lease`` and ``rescue_every`` are the workers' settings in seconds.

    ``forgotten`` are times of which commits may be missing as a whole, ``(from, until)``: they were made on a
    primary whose standby did not have them, and the standby took over. Without one nothing may be missing.
    """

    lease: float
    rescue_every: float
    kinds: dict[str, Kind]
    asked: list[Asked] = field(default_factory=list)
    orders: set[str] = field(default_factory=set)
    executions: list[Execution] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    effects: dict[str, int] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    overdue: list[Overdue] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    deaths: list[Death] = field(default_factory=list)
    workers: list[WorkerEnd] = field(default_factory=list)
    ledger: Ledger | None = None
    forgotten: list[tuple[float, float]] = field(default_factory=list)

    def may_forget(self, at: float) -> bool:
        """True when what was committed at this time may be gone."""
        return any(began <= at <= ended for began, ended in self.forgotten)

    def may_forget_end(self, call: Execution) -> bool:
        """True when the outcome of a call may be gone: it was committed soon after its end."""
        return call.ended is not None and any(
            began - SETTLED_WITHIN <= call.ended <= until for began, until in self.forgotten
        )
