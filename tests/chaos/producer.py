"""The load: a process that enqueues through Django in its own transactions, and writes down what it knows.

Started by the harness as ``python -m tests.chaos.producer``. It goes on until SIGTERM or until so many jobs
are committed, whatever happens to the database. Each job has a row of the caller's in the same transaction.
Some transactions are rolled back, by an error or to a savepoint.
"""

import argparse
import os
import random
import signal
import threading
import time
from contextlib import suppress
from importlib import import_module
from itertools import count
from typing import Any

import django
from django.db import Error, connection, transaction

from django_pgqueue import enqueue_many

from . import recording, tables
from .history import COMMITTED, ROLLED_BACK, UNKNOWN

Order = tuple[str, str, tuple[Any, ...]]
"""Tag, kind, and what the task gets after the tag."""
PER_TRANSACTION = (1, 9)
MANY = 4
"""From so many on the jobs of a transaction are enqueued by one call."""
ROLLED_BACK_SHARE, SAVEPOINT_SHARE = 0.10, 0.05
LEDGER = {"transfer": 0.97, "failing": 0.02, "long": 0.01}
MIX = {
    "plain": 0.62,
    "failing": 0.10,
    "coroutine": 0.10,
    "effect": 0.10,
    "store": 0.03,
    "doomed": 0.03,
    "long": 0.02,
}


class RolledBack(Exception):
    """The caller changed its mind."""


class Producer:
    """Enqueues at a steady rate: ``rate`` committed jobs a second, ``jobs`` in all (0: until told)."""

    def __init__(
        self, tasks: dict[str, Any], mix: dict[str, float], name: str, rate: float, jobs: int, seed: int
    ) -> None:
        self.tasks, self.mix, self.name, self.rate, self.jobs = tasks, mix, name, rate, jobs
        self.random = random.Random(seed)
        self.committed = 0
        self.stopping = threading.Event()
        self._numbers = count(1)

    def run(self) -> None:
        """Produce; what an outage delayed is not made up for."""
        due = time.monotonic()
        while not self.stopping.is_set() and not 0 < self.jobs <= self.committed:
            done = self.transaction()
            due = max(due + done / self.rate, time.monotonic() - 0.2)
            self.stopping.wait(max(due - time.monotonic(), 0.0))

    def transaction(self) -> int:
        """Make one transaction and return how many jobs it was about."""
        orders = [self._order() for _ in range(self.random.randint(*PER_TRANSACTION))]
        fates = {tag: ROLLED_BACK for tag, _, _ in orders}
        try:
            with transaction.atomic():
                self._place(orders)
                fates |= dict.fromkeys(fates, UNKNOWN)
                self._regret_one(orders, fates)
            fates |= {tag: COMMITTED for tag, fate in fates.items() if fate == UNKNOWN}
        except RolledBack:
            fates = dict.fromkeys(fates, ROLLED_BACK)
        except Error:
            connection.close()
            self.stopping.wait(0.1)
        for tag, kind, _ in orders:
            recording.write(recording.ASKED, tag, kind, fates[tag])
        self.committed += sum(fate == COMMITTED for fate in fates.values())
        return len(orders)

    def _order(self) -> Order:
        kind = self.random.choices(list(self.mix), list(self.mix.values()))[0]
        return f"{self.name}{next(self._numbers)}", kind, self._arguments(kind)

    def _arguments(self, kind: str) -> tuple[Any, ...]:
        seconds = round(self.random.uniform(0.0, 0.02), 4)
        return {
            "plain": (seconds,),
            "failing": (self.random.randint(1, 2),),
            "coroutine": (seconds,),
            "store": (seconds * 10,),
            "long": (self.random.uniform(0.3, 1.5),),
            "transfer": (*self.random.sample(range(1, tables.PEOPLE + 1), 2), self.random.randint(1, 99)),
        }.get(kind, ())

    def _place(self, orders: list[Order]) -> None:
        self._enqueue(*orders)
        if self.random.random() < ROLLED_BACK_SHARE:
            raise RolledBack

    def _regret_one(self, orders: list[Order], fates: dict[str, str]) -> None:
        """Now and then place one more, and go back to a savepoint before it."""
        if self.random.random() >= SAVEPOINT_SHARE:
            return
        orders.append(self._order())
        fates[orders[-1][0]] = ROLLED_BACK
        with suppress(RolledBack), transaction.atomic():
            self._enqueue(orders[-1])
            raise RolledBack
        if connection.needs_rollback:
            raise RolledBack  # the way back to the savepoint failed: Django rolls all back without a word

    def _enqueue(self, *orders: Order) -> None:
        with connection.cursor() as cursor:
            tags = [tag for tag, _, _ in orders]
            cursor.execute(f"INSERT INTO {tables.ORDERS} (tag) SELECT unnest(%s::text[])", [tags])
        if len(orders) < MANY:
            for tag, kind, arguments in orders:
                self.tasks[kind].enqueue(tag, *arguments)
        else:
            enqueue_many(self.tasks[kind].bind(tag, *args) for tag, kind, args in orders)


def main() -> None:
    """Produce as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    django.setup()
    tasks = vars(import_module("tests.chaos.tasks"))  # tasks ask for the settings
    if options.ledger:
        tasks |= vars(import_module("tests.chaos.ledger"))
    mix = LEDGER if options.ledger else MIX
    producer = Producer(tasks, mix, options.name, options.rate, options.jobs, options.seed)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: producer.stopping.set())
    producer.run()
    os._exit(0)


if __name__ == "__main__":
    main()
