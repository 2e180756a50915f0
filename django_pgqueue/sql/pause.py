"""Paused queues: a row for each, and one with an empty name that pauses all.

The claim itself looks here, so a pause holds from the next claim on and no worker has to be told.
"""

from .tables import STATE

PAUSE_TABLE = "django_pgqueue_queuepause"

# A scalar sub-select without a reference outwards: PostgreSQL runs it once for a statement, not for each row.
IS_PAUSED = f"""(
    SELECT true FROM {PAUSE_TABLE} AS pause
    WHERE pause.queue IN (%(queue)s::text, '') AND NOT pause.is_draining
    ORDER BY pause.queue
    LIMIT 1
)"""

# A drain of a paused queue opens it again until it is empty; a pause ends a drain.
PAUSE = f"""
INSERT INTO {PAUSE_TABLE} AS pause (queue, is_draining, since, by, reason)
VALUES (%(queue)s, %(is_draining)s, clock_timestamp(), %(by)s, %(reason)s)
ON CONFLICT (queue) DO UPDATE
SET is_draining = excluded.is_draining, since = excluded.since, by = excluded.by, reason = excluded.reason
WHERE pause.is_draining <> excluded.is_draining
RETURNING queue
"""
RESUME = f"DELETE FROM {PAUSE_TABLE} WHERE queue = %(queue)s RETURNING is_draining, since, by, reason"
PAUSES = f"SELECT queue, is_draining, since, by, reason FROM {PAUSE_TABLE} ORDER BY queue"

# A queue that drains is paused once nothing of it is ready or runs.  What becomes ready just then waits.
END_DRAINS = f"""
UPDATE {PAUSE_TABLE} AS pause
SET is_draining = false
WHERE is_draining
  AND NOT EXISTS (SELECT FROM {STATE} WHERE status = 'ready' AND queue = pause.queue)
  AND NOT EXISTS (SELECT FROM {STATE} WHERE status = 'running' AND queue = pause.queue)
RETURNING queue
"""
