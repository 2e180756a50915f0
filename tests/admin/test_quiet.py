"""Looking disturbs no work: a GET reads, takes no lock that anybody waits for, and waits for nobody. (C69)"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection, connections, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_pgqueue import sql
from django_pgqueue.models import Job
from tests.support import WORKER, claim_queue, completed, enqueue_many, fetch, make

from .site import LIST, page_of, text_of, visitor

QUERIES = [
    "",
    "?status=dead",
    "?status=ready&queue=default",
    "?q=tests",
    "?enqueued_at__range__gte_0=2020-01-01",
]


def addresses(job_id: int) -> list[str]:
    """Return what somebody who looks around opens."""
    return [*(LIST + query for query in QUERIES), page_of(job_id), f"{LIST}{job_id}/history/"]


@pytest.mark.django_db
def test_get_runs_in_a_read_only_transaction(boss: Client) -> None:
    job_id = make("dead").job_id
    for address in addresses(job_id):
        with transaction.atomic(), CaptureQueriesContext(connection) as queries:
            fetch("SELECT set_config('transaction_read_only', 'on', true)")
            text_of(boss.get(address))
            transaction.set_rollback(True)
        assert not any("FOR UPDATE" in query["sql"] or "FOR NO KEY" in query["sql"] for query in queries)


@pytest.mark.django_db(transaction=True)
def test_get_waits_for_no_row_that_somebody_holds(second_connection: psycopg.Connection) -> None:
    job_id = make("dead").job_id
    client = visitor(is_superuser=True)
    fetch("SELECT set_config('lock_timeout', '1s', false)")
    with second_connection.transaction():
        for table in (sql.JOB, sql.STATE, sql.ATTEMPT):
            second_connection.execute(f"SELECT FROM {table} FOR UPDATE")
        for address in addresses(job_id):
            text_of(client.get(address))
    fetch("SELECT set_config('lock_timeout', '0', false)")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("in_a_transaction", [False, True])
def test_work_goes_on_while_people_look(
    in_a_transaction: bool, connect: Callable[[], psycopg.Connection]
) -> None:
    job_ids = enqueue_many(300)
    looking = [visitor(is_superuser=True) for _ in range(2)]
    done, over = [], threading.Event()

    def look(client: Client) -> int:
        seen = 0
        try:
            while not over.is_set():
                connection.settings_dict["ATOMIC_REQUESTS"] = in_a_transaction
                for address in addresses(job_ids[seen % len(job_ids)]):
                    text_of(client.get(address))
                seen += 1
            return seen
        finally:
            connection.settings_dict["ATOMIC_REQUESTS"] = False
            connections.close_all()

    def work(session: psycopg.Connection) -> None:
        while claimed := claim_queue(limit=10, connection=session):
            held = [completed(job.fence) for job in claimed]
            while held:  # a claim that looks at the same rows may hold some for a moment
                answers = Job.objects.complete(held, worker=WORKER, connection=session)
                done.extend(fence.job_id for fence, answer in answers.items() if answer.result == "done")
                held = [settled for settled in held if answers[settled.fence].result == "locked"]

    sessions = [connect() for _ in range(2)]
    with ThreadPoolExecutor() as threads:
        lookers = [threads.submit(look, client) for client in looking]
        workers = [threads.submit(work, session) for session in sessions]
        try:
            for worker in workers:
                worker.result(60)
        finally:
            over.set()
        assert all(looker.result(60) >= 0 for looker in lookers)
    assert sorted(done) == job_ids
