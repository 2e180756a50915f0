"""Unique keys with real workers and callers in processes of their own. (C10, C11, C12)"""

import subprocess
import sys

import pytest

from .conftest import Workers, environ
from .queue import Queue

pytestmark = pytest.mark.process

KEY = "order 7"
BULK = """
import sys
import django
django.setup()
from django.db import transaction
from tests.processes import tasks
count, rounds, step, on_conflict = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
task = tasks.ok.using(unique_key=lambda number: f"order {number:05}", on_conflict=on_conflict)
for _ in range(rounds):
    with transaction.atomic():
        results = task.enqueue_many((number,) for number in range(count)[::step])
    assert [result.args for result in results] == [[number] for number in range(count)[::step]]
    assert len({result.id for result in results}) == count
"""


BULKS = {"return": ("return", 500, 20), "replace": ("replace", 200, 5), "in pieces": ("return", 2500, 2)}


@pytest.mark.parametrize("name", BULKS)
def test_bulk_inserts_of_the_same_keys_beside_a_worker(queue: Queue, start: Workers, name: str) -> None:
    """Two processes, one of them backwards, while a worker frees the keys: no deadlock reaches them."""
    on_conflict, count, rounds = BULKS[name]
    start("--poll", 0.05)
    words = [str(count), str(rounds)]
    callers = [
        subprocess.Popen(
            [sys.executable, "-c", BULK, *words, step, on_conflict],
            env=environ(queue.url),
            stderr=subprocess.PIPE,
            text=True,
        )
        for step in ("1", "-1")
    ]
    for caller in callers:
        _, said = caller.communicate(timeout=100)
        assert caller.returncode == 0, said
    jobs = [row["job_id"] for row in queue.fetch("SELECT job_id FROM django_pgqueue_jobstate")]
    queue.wait(jobs, "succeeded", timeout=60.0)
    assert len(jobs) >= count
