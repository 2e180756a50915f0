"""Steps with real workers: a payment is made once, whatever dies in between."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from django_pgqueue import sql
from django_pgqueue.models import Job

from .. import support
from . import step_tasks
from .conftest import Workers
from .queue import Queue

pytestmark = pytest.mark.process


class Bank:
    """Does one thing for one idempotency key, however often it is asked; ``asked`` are all requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.done: dict[str, int] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        bank = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                answer = json.dumps({"id": bank.do(self.path[1:], self.headers["Idempotency-Key"])}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler

    def do(self, what: str, key: str) -> int:
        with self._lock:
            self.asked.append((what, key))
            return self.done.setdefault(key, len(self.done) + 1)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def times_asked(self, what: str) -> int:
        return sum(asked == what for asked, _ in self.asked)


@pytest.fixture
def bank() -> Iterator[Bank]:
    bank = Bank()
    yield bank
    bank.close()


def steps_of(queue: Queue, job_id: int) -> dict[str, tuple[object, int]]:
    rows = queue.fetch(f"SELECT name, result, lease_version FROM {sql.STEP} WHERE job_id = %s", [job_id])
    return {row["name"]: (row["result"], row["lease_version"]) for row in rows}


@pytest.mark.parametrize(
    ("die", "times_charged"), [("before the record", 2), ("after the record", 1), ("", 1)]
)
def test_a_payment_is_made_once_wherever_the_process_dies(
    queue: Queue, start: Workers, bank: Bank, die: str, times_charged: int
) -> None:
    start("--poll", 0.05)
    job = queue.enqueue(step_tasks.check_out, bank.url, 7, die, max_attempts=5)
    queue.wait(job, "succeeded")
    assert queue.attempts(job)[-1].return_value == [1, 2]
    assert queue.outcomes(job) == (["lost", "succeeded"] if die else ["succeeded"])
    # In the gap between the effect and its record only the key keeps the bank from charging twice.
    assert bank.times_asked("charge") == times_charged
    assert bank.times_asked("ship") == 1
    assert len({key for what, key in bank.asked if what == "charge"}) == 1
    assert len(bank.done) == 2
    first = 2 if die == "before the record" else 1
    assert steps_of(queue, job) == {"charge": (1, first), "ship": (2, 2 if die else 1)}


def test_what_was_done_is_recorded_when_the_connection_is_back(
    queue: Queue, start: Workers, bank: Bank
) -> None:
    worker = start("--poll", 0.05)
    job = queue.enqueue(step_tasks.check_out, bank.url, 7, "without a connection", max_attempts=1)
    queue.wait(job, "succeeded")
    assert (bank.times_asked("charge"), queue.outcomes(job)) == (1, ["succeeded"])
    assert any("steps" in event.fields["connection"] for event in worker.events("connection_lost"))


def test_a_step_stays_when_the_tasks_transaction_is_rolled_back(
    queue: Queue, start: Workers, bank: Bank
) -> None:
    start("--poll", 0.05)
    job = queue.enqueue(step_tasks.roll_back, bank.url, max_attempts=2)
    queue.wait(job, "succeeded")
    assert (bank.times_asked("charge"), queue.outcomes(job)) == (1, ["failed", "succeeded"])
    names = queue.fetch("DELETE FROM auth_group WHERE name LIKE %s RETURNING name", [f"order {job} %"])
    assert names == [{"name": f"order {job} 2"}]


def test_who_lost_the_lease_records_nothing(queue: Queue, start: Workers, bank: Bank) -> None:
    worker = start("--poll", 0.05, "--threads", 2)
    job = queue.enqueue(step_tasks.lose_the_lease, bank.url, max_attempts=3)
    queue.wait_started(job)
    rescued = Job.objects.rescue_worker(
        [support.released(_fence(queue.state(job)))], worker=support.WORKER, connection=queue.session
    )
    assert [row.job_id for row in rescued] == [job]
    queue.wait(job, "succeeded")
    assert queue.outcomes(job) == ["lost", "succeeded"]
    assert steps_of(queue, job) == {"charge": (1, queue.attempts(job)[-1].lease_version)}
    assert len(bank.done) == 1
    worker.wait_for("lease_lost")


def _fence(state: object) -> support.Fence:
    return support.Fence(state.job_id, state.lease_version, state.lease_token)  # type: ignore[attr-defined]


def test_steps_of_coroutines(queue: Queue, start: Workers, bank: Bank) -> None:
    start("--poll", 0.05)
    job = queue.enqueue(step_tasks.in_a_coroutine, bank.url, max_attempts=3)
    queue.wait(job, "succeeded")
    assert queue.attempts(job)[-1].return_value == [1, 2]
    assert (bank.times_asked("charge"), bank.times_asked("ship")) == (1, 1)
