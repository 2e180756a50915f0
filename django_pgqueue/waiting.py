"""Waiting for a result: woken by NOTIFY, looking once a second beneath.

A waiter has a connection of its own for as long as it waits.  It holds a shared advisory lock, and
workers that find it held send one NOTIFY for a batch of finished jobs; nobody pays while nobody waits.
"""

import time

import psycopg

from . import sql
from .connections import PrivateConnection
from .states import ENDED

LOOK_EVERY = 1.0
"""Seconds between two looks when no notice comes."""


def wait_until_ended(job_id: int, *, database: str, timeout: float | None, notify: bool) -> bool:
    """Block until the job has ended or ``timeout`` seconds are over; True when it has ended (or is gone).

    Survives restarts of the database.
    """
    until = time.monotonic() + timeout if timeout is not None else float("inf")
    connection = PrivateConnection(database, "waiter", prepared=False)
    try:
        while True:
            try:
                return _wait(connection, job_id, until, notify)
            except psycopg.Error:
                left = until - time.monotonic()
                if left <= 0:
                    return False
                time.sleep(min(max(connection.pause, 0.05), left))
    finally:
        connection.close()


def _wait(connection: PrivateConnection, job_id: int, until: float, notify: bool) -> bool:
    if notify:
        with connection.guarded() as raw:
            raw.execute(sql.LISTEN_FOR_RESULTS)
            raw.execute(sql.WAIT_FOR_RESULTS)
    while True:
        with connection.guarded() as raw:
            row = raw.execute(sql.STATUS, {"job_id": job_id}).fetchone()
        if row is None or row[0] in ENDED:
            return True
        left = until - time.monotonic()
        if left <= 0:
            return False
        with connection.guarded() as raw:
            for _ in raw.notifies(timeout=min(left, LOOK_EVERY), stop_after=1):
                pass
