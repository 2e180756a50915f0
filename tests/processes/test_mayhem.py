"""Three workers under kill -9 every second: no job is lost, and none has two live owners."""

import random
import time
from itertools import pairwise

import pytest

from django_pgqueue import sql

from ..waiting import wait_until
from . import tasks
from .conftest import Workers
from .queue import Execution, Queue
from .worker import Worker

pytestmark = pytest.mark.process

WORKER = ("--lease", 2, "--heartbeat", 0.5, "--poll", 0.1, "--processes", 2, "--threads", 3)


class Killer:
    """Every second kills a child, a keeper or a whole worker, which it replaces by a new one."""

    def __init__(self, start: Workers, seed: int) -> None:
        self.start = start
        self.random = random.Random(seed)
        self.workers = [start(*WORKER, wait=False) for _ in range(3)]
        self.killed: list[str] = []
        for worker in self.workers:
            worker.wait_started(2)
        self._at = time.monotonic() + 1.0

    def __call__(self) -> None:
        """Kill, when it is time."""
        if time.monotonic() < self._at:
            return
        self._at = time.monotonic() + 1.0
        place = self.random.randrange(3)
        worker, what = self.workers[place], self.random.choice(("child", "child", "keeper", "worker"))
        if what == "worker":
            worker.kill()
            self.workers[place] = self.start(*WORKER, wait=False)
        elif pid := self._victim(worker, what):
            worker.kill_process(pid)
        else:
            return
        self.killed.append(what)

    def _victim(self, worker: Worker, what: str) -> int:
        return worker.keeper if what == "keeper" else self.random.choice(worker.children or [0])


def run(queue: Queue, start: Workers, count: int, *, kills: int, timeout: float) -> None:
    seeded = random.Random(count)
    plain = queue.enqueue_many(
        tasks.sleep, [(seeded.uniform(0, 0.1),) for _ in range(count * 8 // 10)], max_attempts=50
    )
    failing = queue.enqueue_many(tasks.fail_at_first, [(2,)] * (count // 10), max_attempts=50)
    coroutines = queue.enqueue_many(tasks.asleep_recorded, [(0.05,)] * (count // 10), max_attempts=50)
    jobs = [*plain, *failing, *coroutines]
    killer = Killer(start, seed=count)

    def over() -> bool:
        killer()
        return not queue.value(f"SELECT count(*) FROM {sql.STATE} WHERE finished_at IS NULL")

    wait_until(over, timeout)
    for worker in killer.workers:  # the latest may have only just begun
        worker.wait_started(2)
    assert set(queue.statuses(jobs).values()) == {"succeeded"}
    assert len(killer.killed) >= kills
    deaths = {pid: at for worker in start.all for pid, at in worker.deaths.items()}
    executions: dict[int, list[Execution]] = {job: [] for job in jobs}
    for execution in queue.executions():
        executions[execution.job_id].append(execution)
    for job, calls in executions.items():
        assert calls, f"job {job} succeeded without having run"
        for earlier, later in pairwise(calls):
            over = earlier.ended if earlier.ended is not None else deaths[earlier.pid]
            assert over <= later.began, f"two live owners: {earlier} and {later}"
            assert earlier.lease_version < later.lease_version


def test_1500_jobs(queue: Queue, start: Workers) -> None:
    run(queue, start, 1500, kills=4, timeout=90.0)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_10000_jobs(queue: Queue, start: Workers) -> None:
    run(queue, start, 10_000, kills=20, timeout=500.0)
