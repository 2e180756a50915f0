"""The supervisor: starts the keeper and the children, replaces what dies, passes signals on.

It is single-threaded and never connects to the database, so that nothing but the kernel can stop it
from seeing a child die.  What a dead child held is in its board; the keeper gives it back at once.

Exit codes: 0 stopped or drained, 1 children could not start or had to be killed while stopping, or a
drain was in vain (no tables, or no database for two leases), 2 wrong options (from the command).
"""

import logging
import os
import select
import signal
import time
from dataclasses import dataclass

from ..events import log
from .board import DEAD, FREE, LIVE, QUIT, STOP, Board, boards_of, make_memory
from .config import WorkerConfig
from .memory import resident_megabytes
from .processes import KEEPER, Shared, spawn
from .runners import SOFT_STOP_GRACE

TICK = 0.25
MEMORY_EVERY = 2.0
CRASHES_ALLOWED = 5
"""Children in a row that may die before they are ready; then it is the project that is broken."""
STUMBLES_ALLOWED = 10
"""Children in a row that may end by themselves, ready or not, before they have begun any job."""
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0
HARD_STOP = 7.0
"""Seconds after the grace at which children that still live are killed."""


@dataclass(slots=True)
class Child:
    """A running child: its board's number and what the supervisor knows about it."""

    index: int
    pid: int
    stopped_at: float | None = None
    killed_because: str = ""
    recycling: bool = False


class Supervisor:
    """Runs one worker; see the module."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        # Spare boards: a new child starts while the keeper still gives back what the old one held.
        count = 1 + config.processes * 2 + 2
        memory, memory_fd = make_memory(count)
        self.boards: list[Board] = boards_of(memory)
        self.shared = Shared(memory_fd, os.pipe(), tuple(_notice_pipe() for _ in range(count)))
        self.children: dict[int, Child] = {}
        self.keeper = 0
        self.remaining = config.max_jobs
        self._signals = 0
        self._stop_at: float | None = None
        self._killed = False
        self._drained = False
        self._in_vain = False
        self._crashes = 0
        self._stumbles = 0
        self._not_before = 0.0
        self._keeper_born = 0.0
        self._keeper_crashes = 0
        self._keeper_at = 0.0
        self._memory_at = 0.0

    def run(self) -> int:
        """Supervise until stopped or drained; return the exit code."""
        self._install_signals()
        log(
            "worker_started",
            pid=os.getpid(),
            queues=",".join(self.config.queues) or "*",
            processes=self.config.processes,
            threads=self.config.threads,
            lease=self.config.lease,
            drain=self.config.drain or None,
        )
        self._start_keeper()
        while True:
            self._start_missing()
            if not self.children and self._finished():
                break
            self._wait()
            self._reap()
            self._look_after()
        return self._end()

    # --- signals

    def _install_signals(self) -> None:
        self._wake, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGINT, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _on_stop(self, *_: object) -> None:
        self._signals += 1

    def _wait(self) -> None:
        readable, _, _ = select.select([self._wake], [], [], TICK)
        if readable:
            os.read(self._wake, 4096)

    # --- starting

    def _start_keeper(self) -> None:
        # It outlives every child, so that leases are renewed to the end.
        self._keeper_born = time.monotonic()
        self.keeper = spawn(KEEPER, self.config, self.boards, self.shared, None)

    def _start_missing(self) -> None:
        if not self.keeper and time.monotonic() >= self._keeper_at:
            self._start_keeper()
        while (
            len(self.children) < self.config.processes
            and not self._finished()
            and time.monotonic() >= self._not_before
        ):
            index = next((i for i, b in enumerate(self.boards) if i and b.get("state") == FREE), None)
            if index is None:
                return  # the database is away: the keeper could not yet give back what the dead ones held
            self._start_child(index)

    def _start_child(self, index: int) -> None:
        board = self.boards[index]
        board.clear()
        _drain_pipe(self.shared.notices[index][0])
        now = time.monotonic()
        board.set("beat", now)
        board.set("born", now)
        board.set("state", LIVE)
        quota = self._quota()
        board.set("quota", quota or 0)
        pid = spawn(index, self.config, self.boards, self.shared, quota)
        board.set("pid", pid)
        self.children[pid] = Child(index, pid)

    def _quota(self) -> int | None:
        limits = [self.config.max_jobs_per_child] if self.config.max_jobs_per_child else []
        if self.remaining is not None:
            limits.append(-(-self._unpromised() // (self.config.processes - len(self.children))))
        return min(limits, default=None)

    def _unpromised(self) -> int:
        promised = sum(int(self.boards[child.index].get("quota")) for child in self.children.values())
        return max((self.remaining or 0) - promised, 0)

    def _finished(self) -> bool:
        exhausted = self.remaining is not None and self._unpromised() == 0
        ended = self._drained or self._in_vain or exhausted
        return self._stop_at is not None or ended or self._is_hopeless()

    def _is_hopeless(self) -> bool:
        return self._crashes >= CRASHES_ALLOWED or self._stumbles >= STUMBLES_ALLOWED

    # --- ending of processes

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self.keeper:
                self._keeper_changed(status)
            elif pid in self.children:
                self._child_changed(self.children[pid], status)

    def _keeper_changed(self, status: int) -> None:
        if os.WIFSTOPPED(status):
            # A frozen keeper renews nothing; another one takes over where it stood.
            os.kill(self.keeper, signal.SIGKILL)
        elif not os.WIFCONTINUED(status):
            log("keeper_died", logging.ERROR, pid=self.keeper, how=how_ended(status))
            lived = time.monotonic() - self._keeper_born
            self._keeper_crashes = 0 if lived > LAST_PAUSE else self._keeper_crashes + 1
            self._keeper_at = time.monotonic() + _pause(self._keeper_crashes)
            self.keeper = 0

    def _child_changed(self, child: Child, status: int) -> None:
        if os.WIFSTOPPED(status):
            child.stopped_at = time.monotonic()
        elif os.WIFCONTINUED(status):
            child.stopped_at = None
        else:
            self._child_ended(child, status)

    def _child_ended(self, child: Child, status: int) -> None:
        del self.children[child.pid]
        board = self.boards[child.index]
        if self.remaining is not None:
            self.remaining -= int(board.get("used"))
        crashed = not (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0)
        if crashed:
            reason = child.killed_because or how_ended(status)
            log("child_died", logging.ERROR, worker=board.get_text("worker_id"), pid=child.pid, how=reason)
            self._drained = False  # what it held goes back and is due
            self._note_crash(board, status)
            board.set_text("reason", reason)
        elif board.get("in_vain"):
            self._in_vain = True
        elif board.get("drained"):
            self._drained = True
        if self._stop_at is not None and crashed:
            self._killed = True
        if board.get("claiming") or any(board.held()):
            board.set("state", DEAD)
            _notify(self.shared.notices[0][1])
        else:
            # Nothing to give back: no need to wait for the keeper and the database.
            board.set("state", FREE)

    def _note_crash(self, board: Board, status: int) -> None:
        now = time.monotonic()
        ready = bool(board.get("ready"))
        self._crashes = 0 if ready else self._crashes + 1
        # A signal came from outside or from a task, and a task may exit; else it is the child's own fault.
        by_itself = os.WIFEXITED(status) and not any(entry.started for entry in board.held())
        stumbled = not ready or (by_itself and now - board.get("born") < LAST_PAUSE)
        self._stumbles = self._stumbles + 1 if stumbled else 0
        if stumbled:
            self._not_before = now + _pause(self._stumbles)

    # --- looking after what runs

    def _look_after(self) -> None:
        now = time.monotonic()
        if self._signals:
            self._stop(now)
        for child in list(self.children.values()):
            self._look_after_child(child, now)
        if self.config.max_memory and now >= self._memory_at:
            self._memory_at = now + MEMORY_EVERY
            self._recycle_large()

    def _stop(self, now: float) -> None:
        again = self._signals > 1
        if self._stop_at is None:
            log("stopping", grace=self.config.grace, children=len(self.children))
            self._stop_at = now + (0.0 if again else self.config.grace)
        elif again and self._stop_at > now:
            log("stopping_now", children=len(self.children))
            self._stop_at = now
        for child in self.children.values():
            self._tell(child, QUIT if again else STOP)

    def _tell(self, child: Child, command: int) -> None:
        board = self.boards[child.index]
        if board.get("command") < command:
            board.set("command", command)
            _notify(self.shared.notices[child.index][1])

    def _look_after_child(self, child: Child, now: float) -> None:
        if child.killed_because:
            return
        if self._stop_at is not None and now > self._stop_at + HARD_STOP:
            self._kill(child, "did not stop in time")
        elif child.stopped_at is not None and now - child.stopped_at > self.config.lease:
            self._kill(child, f"was stopped (SIGSTOP) for more than the lease of {self.config.lease:g} s")
        else:
            overdue = self._overdue(child, now)
            if overdue is not None:
                self._kill(child, f"was killed: job {overdue} did not end at its timeout")

    def _overdue(self, child: Child, now: float) -> int | None:
        for entry in self.boards[child.index].held():
            if entry.deadline and now > entry.deadline + SOFT_STOP_GRACE:
                return entry.fence.job_id
        return None

    def _kill(self, child: Child, because: str) -> None:
        child.killed_because = because
        log("killing_child", logging.ERROR, pid=child.pid, because=because)
        os.kill(child.pid, signal.SIGKILL)

    def _recycle_large(self) -> None:
        for child in self.children.values():
            used = resident_megabytes(child.pid)
            if used is not None and used > (self.config.max_memory or 0) and not child.recycling:
                child.recycling = True
                log("recycling_child", pid=child.pid, memory_mb=used, max_memory_mb=self.config.max_memory)
                self._tell(child, STOP)

    def _end(self) -> int:
        self.boards[0].set("command", QUIT)
        _notify(self.shared.notices[0][1])
        self._await_keeper(time.monotonic() + HARD_STOP)
        crashed = self._is_hopeless()
        if crashed:
            count = max(self._crashes, self._stumbles)
            log("giving_up", logging.CRITICAL, reason=f"{count} children in a row died at their start")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # one that comes now must not spoil the exit code
        code = 1 if crashed or self._killed or self._in_vain else 0
        log("worker_stopped", pid=os.getpid(), code=code)
        return code

    def _await_keeper(self, until: float) -> None:
        if not self.keeper:
            return
        while time.monotonic() < until:
            pid, _ = os.waitpid(self.keeper, os.WNOHANG)
            if pid:
                return
            self._wait()
        os.kill(self.keeper, signal.SIGKILL)
        os.waitpid(self.keeper, 0)


def _pause(crashes: int) -> float:
    return min(FIRST_PAUSE * 2.0 ** min(crashes, 10), LAST_PAUSE) if crashes else 0.0


def how_ended(status: int) -> str:
    """Return a wait status in words."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"died of signal {number} ({signal.Signals(number).name})"
    return f"exited with code {os.waitstatus_to_exitcode(status)}"


def _notice_pipe() -> tuple[int, int]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    return read, write


def _notify(pipe: int) -> None:
    try:
        os.write(pipe, b"!")
    except BlockingIOError:
        return  # unread notices are there already


def _drain_pipe(pipe: int) -> None:
    try:
        os.read(pipe, 65536)
    except BlockingIOError:
        return
