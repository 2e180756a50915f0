"""Who sleeps on which queue, and the notifications that wake them: a shortcut, polling is what counts."""

from typing import LiteralString

LOCK_CLASS = "1346850129"
"""First key of the advisory locks that say "somebody sleeps on this queue", as it stands in a statement."""


def somebody_sleeps_on(queue: LiteralString) -> LiteralString:
    """Return an expression: does a worker hold the key of this queue shared?

    The key is taken for a moment, and for the session: for the transaction it would keep sleepers waiting.
    Where it is not to be had, another enqueuer may have it for its moment, so the locks themselves are asked.
    """
    key = f"{LOCK_CLASS}, hashtext({queue})"
    return f"""CASE WHEN pg_try_advisory_lock({key}) THEN NOT pg_advisory_unlock({key}) ELSE EXISTS (
        SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND classid = {LOCK_CLASS} AND mode = 'ShareLock' AND granted
          AND objid = (hashtext({queue})::bigint & 4294967295)::oid
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) END"""


CHANNEL = "django_pgqueue"

NOTIFY = f"SELECT pg_notify('{CHANNEL}', queue) FROM unnest(%(queues)s::text[]) AS given(queue)"

# A worker that serves any queue sleeps on '*'.
NOTIFY_SLEEPERS = f"""
SELECT pg_notify('{CHANNEL}', queue)
FROM unnest(%(queues)s::text[]) AS given(queue)
WHERE {somebody_sleeps_on("queue")} OR {somebody_sleeps_on("'*'")}
"""
SLEEP = f"SELECT pg_advisory_lock_shared({LOCK_CLASS}, hashtext(%(queue)s))"
AWAKE = f"SELECT pg_advisory_unlock_shared({LOCK_CLASS}, hashtext(%(queue)s))"
LISTEN = f"LISTEN {CHANNEL}"

# Those who wait for a result hold one key shared; a worker asks after its commit, once for a batch.
RESULTS_CHANNEL = "django_pgqueue_results"
NOTIFY_WAITERS = f"""
SELECT pg_notify('{RESULTS_CHANNEL}', '')
WHERE NOT pg_try_advisory_xact_lock({LOCK_CLASS}, hashtext('{RESULTS_CHANNEL}'))
"""
WAIT_FOR_RESULTS = f"SELECT pg_advisory_lock_shared({LOCK_CLASS}, hashtext('{RESULTS_CHANNEL}'))"
LISTEN_FOR_RESULTS = f"LISTEN {RESULTS_CHANNEL}"
