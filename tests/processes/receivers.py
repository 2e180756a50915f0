"""Receivers of the task signals as nobody should write them."""

from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db import transaction

from django_pgqueue.compat import signals


def connect() -> None:
    """Connect them all."""
    for signal, receivers in RECEIVERS.items():
        for receiver in receivers:
            signal.connect(receiver)


def raise_at_start(**_: Any) -> None:
    raise LookupError("receiver of task_started")


def raise_at_finish(**_: Any) -> None:
    raise LookupError("receiver of task_finished")


def leave_aborted_transaction(**_: Any) -> None:
    transaction.atomic().__enter__()
    ContentType.objects.create(id=1, app_label="a", model="a")
    ContentType.objects.create(id=1, app_label="b", model="b")


RECEIVERS = {
    signals.task_started: [raise_at_start, leave_aborted_transaction],
    signals.task_finished: [raise_at_finish, leave_aborted_transaction],
}
