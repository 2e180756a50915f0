"""Making processes: by fork from the single-threaded supervisor, or by exec where threads are about.

A fork of a process with threads may inherit a lock that nobody will release, so it is done only when
there is none (and no database connection either: children would share its socket).
"""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from django.db import connections

from ..events import log, log_to_stderr, logger
from .board import Board, boards_of, open_memory
from .child import ChildPipes, run_child
from .config import WorkerConfig
from .keeper import KeeperPipes, run_keeper

KEEPER = -1
"""In place of a board's number: the process is the keeper."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the supervisor made before its first child: memory and pipes, by descriptor.

    Board 0 is the keeper's own; boards 1 to n are the children's.  ``notices`` are (read, write) pairs
    in the same order.
    """

    memory_fd: int
    life: tuple[int, int]
    notices: tuple[tuple[int, int], ...]


def forget_connections() -> None:
    """Close this process's database connections, pools included; whoever is forked must not share them."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        close_pool = getattr(connection, "close_pool", None)
        if close_pool is not None:
            close_pool()


def spawn(
    which: int, config: WorkerConfig, boards: Sequence[Board], shared: Shared, quota: int | None
) -> int:
    """Start the keeper or the child of board number ``which``; return its pid."""
    forget_connections()
    if can_fork():
        pid = os.fork()
        if pid:
            return pid
        be(which, config, boards, shared, quota)
    return _exec(which, config, shared, quota)


def can_fork() -> bool:
    """True when this process has no other thread, Python's or native."""
    if threading.active_count() > 1:
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return True


def be(
    which: int, config: WorkerConfig, boards: Sequence[Board], shared: Shared, quota: int | None
) -> NoReturn:
    """Become the keeper or a child; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(shared.life[1])  # or the end of the supervisor would go unseen
        if which == KEEPER:
            pipes = KeeperPipes(shared.life[0], shared.notices[0][0], tuple(w for _, w in shared.notices[1:]))
            run_keeper(config, boards[0], list(boards[1:]), pipes)
        else:
            run_child(config, boards[which], ChildPipes(shared.life[0], shared.notices[which][0]), quota)
    except BaseException as error:  # noqa: BLE001 - nothing may return into the supervisor's code
        log("process_failed", logging.CRITICAL, exc_info=error, which=which)
        logging.shutdown()
    os._exit(1)


def _exec(which: int, config: WorkerConfig, shared: Shared, quota: int | None) -> int:
    fds = [shared.memory_fd, *shared.life, *(fd for pair in shared.notices for fd in pair)]
    numbers = [str(which), "" if quota is None else str(quota), ",".join(map(str, fds)), str(logger.level)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "django_pgqueue.worker.exec_child", config.dump(), *numbers],
        pass_fds=fds,
        env=environment,
    )
    process.returncode = 0  # the supervisor reaps by waitpid itself
    return process.pid


def be_from_arguments(arguments: Sequence[str]) -> NoReturn:
    """Become what ``_exec`` asked for, in a fresh interpreter where Django is set up."""
    config, which, quota, fds, level = arguments
    log_to_stderr(int(level))
    memory_fd, life_read, life_write, *pairs = map(int, fds.split(","))
    notices = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    shared = Shared(memory_fd, (life_read, life_write), notices)
    boards = boards_of(open_memory(memory_fd))
    be(int(which), WorkerConfig.load(config), boards, shared, int(quota) if quota else None)
