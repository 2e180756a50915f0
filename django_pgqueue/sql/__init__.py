"""Every raw statement of the queue, one per verb, each in the room of its part in a job's life.

In that order: ``enqueue``, ``claim``, ``lease``, ``settle``, ``rescue``, ``repair``, ``maintenance``; beside
them ``reading``, ``wakeup`` and ``testing``, and what operators look at: ``rollup``, ``depth``, ``pause``,
``registry``.  ``tables`` and ``fence`` hold what statements share.  Callers
know this package only, never its rooms.

Rules that hold throughout:

* The database clock decides: callers pass durations in seconds, never times of their own.
* Each statement re-checks its own precondition; the rows it returns are the answer.
* A fenced statement names ``(job_id, lease_version, lease_token)``.  ``lease_token`` is NULL unless
  the job runs, so the fence implies ``status = 'running'``.  Repeating the status would let the
  planner drive from the small-looking partial index, which fills with dead entries.
* Many rows are locked first, in id order, through a LATERAL sub-select with SKIP LOCKED: the only
  plan of that shape is a nested loop over the primary key, and nobody ever waits for a row.
* Rows found by one step are joined to a table as ``table.id = ANY(ARRAY[found.id])``.  By that operator
  nothing can be sorted or hashed, so the one plan left is a look-up by key for each found row.  A plain
  ``=`` lets the planner walk the whole table and compare each row with the found ones, which looks free
  to it while the statistics say that the table holds no rows: autovacuum may have counted them between
  two bursts, and counts again after tens of thousands of changes only.
* What people ask runs in their own transaction, without ``HOT_PATH``: there the found rows come as one
  array, and no join is left to be planned.
* Tables are named without a schema, so that ``search_path`` decides where the queue lives.
* Statements of the worker run under ``HOT_PATH``: set once for the worker's own session, and behind a pooler,
  where sessions are not its own, in each transaction.
* ``functions`` has what stands in the database, each made by a migration and never changed.
"""

from .bulk import ADVANCE_BULK, BULK, BULK_OUTCOMES, FAIL_BULK, NEXT_PART, START_BULK, STOP_BULK
from .causes import CAUSES, LAST_WORDS, SPAN_OF_THE_DEAD
from .claim import CLAIM, READY_QUEUES
from .depth import (
    ADD_SAMPLE,
    DEPTHS,
    LAST_SAMPLE,
    NOW,
    PLANNED_READY,
    PRUNE_SAMPLES,
    SAMPLES,
    SCHEDULED,
    STANDING,
)
from .diagnosis import BACKEND, EXPLAIN_CLAIM, HORIZON, INDEXES, SERVER, TABLES, TASK_LIVES
from .enqueue import ENQUEUE, ENQUEUE_ONE, ENQUEUE_UNIQUE, LIVE_BY_KEY, REPLACE
from .functions import (
    DROP_ENQUEUE_FUNCTION,
    DROP_ENQUEUE_FUNCTION_1,
    ENQUEUE_FUNCTION,
    MAKE_ENQUEUE_FUNCTION,
    MAKE_ENQUEUE_FUNCTION_1,
)
from .lease import BACKEND_LIVES, LOCK_HELD, LOCK_IF_STRICT, PROGRESS, RELEASE_UNHELD, RENEW, WHEREABOUTS
from .maintenance import (
    NEXT_RUN_AT,
    PROMOTE,
    PROMOTE_FOLLOWERS,
    PRUNE,
    PRUNE_QUEUES,
    WAIT_AS_BEFORE,
    WAIT_BRIEFLY,
)
from .pause import END_DRAINS, PAUSE, PAUSES, RESUME
from .reading import (
    CHILDREN,
    DEAD,
    ESTIMATE,
    FIRST_ID_AT,
    HISTORY,
    IDS_GIVEN,
    LAST_ERRORS,
    QUEUES,
    STATUS,
    STATUS_COUNTS,
    TASK_PATHS,
    UNKNOWN_SINCE,
    WORKERS,
)
from .registry import (
    ASK_TO_STOP,
    BEAT,
    FORGET_STALE,
    FORGET_WORKER,
    REGISTERED,
    RUNNING_NOW,
)
from .repair import CANCEL, DISCARD, MOVE, PROMOTE_NOW, REPRIORITISE, RETRY
from .rescue import RESCUE, RESCUE_WORKER
from .rollup import (
    ADD_ROLLUPS,
    COUNT_ATTEMPTS,
    EVER,
    HISTOGRAMS,
    LOCK_MARK,
    MAKE_MARK,
    MOVE_MARK,
    PRUNE_ROLLUPS,
    RESTART_MARK,
    SERIES,
    SPANS,
    TASKS,
    TOTALS,
)
from .selecting import QUEUES_OF, count, joins, rests, walk
from .settle import CANCEL_HELD, COMPLETE, CONSUME, FAIL, RELEASE, SNOOZE
from .steps import RECORD_STEP, RECORD_STEP_OF_LOCKED, STEPS
from .tables import ATTEMPT, FOLLOWER, HOT_PATH, JOB, POSITION, STATE, STEP, WORKER_HOT_PATH, WORKER_SESSION
from .testing import END_SESSIONS, FORWARD_TIME
from .wakeup import (
    AWAKE,
    CHANNEL,
    LISTEN,
    LISTEN_FOR_RESULTS,
    LOCK_CLASS,
    NOTIFY,
    NOTIFY_SLEEPERS,
    NOTIFY_WAITERS,
    RESULTS_CHANNEL,
    SLEEP,
    WAIT_FOR_RESULTS,
)

__all__ = [
    "ADD_ROLLUPS",
    "ADD_SAMPLE",
    "ADVANCE_BULK",
    "ASK_TO_STOP",
    "ATTEMPT",
    "AWAKE",
    "BACKEND",
    "BACKEND_LIVES",
    "BEAT",
    "BULK",
    "BULK_OUTCOMES",
    "CANCEL",
    "CANCEL_HELD",
    "CAUSES",
    "CHANNEL",
    "CHILDREN",
    "CLAIM",
    "COMPLETE",
    "CONSUME",
    "COUNT_ATTEMPTS",
    "DEAD",
    "DEPTHS",
    "DISCARD",
    "DROP_ENQUEUE_FUNCTION",
    "DROP_ENQUEUE_FUNCTION_1",
    "END_DRAINS",
    "END_SESSIONS",
    "ENQUEUE",
    "ENQUEUE_FUNCTION",
    "ENQUEUE_ONE",
    "ENQUEUE_UNIQUE",
    "ESTIMATE",
    "EVER",
    "EXPLAIN_CLAIM",
    "FAIL",
    "FAIL_BULK",
    "FIRST_ID_AT",
    "FOLLOWER",
    "FORGET_STALE",
    "FORGET_WORKER",
    "FORWARD_TIME",
    "HISTOGRAMS",
    "HISTORY",
    "HORIZON",
    "HOT_PATH",
    "IDS_GIVEN",
    "INDEXES",
    "JOB",
    "LAST_ERRORS",
    "LAST_SAMPLE",
    "LAST_WORDS",
    "LISTEN",
    "LISTEN_FOR_RESULTS",
    "LIVE_BY_KEY",
    "LOCK_CLASS",
    "LOCK_HELD",
    "LOCK_IF_STRICT",
    "LOCK_MARK",
    "MAKE_ENQUEUE_FUNCTION",
    "MAKE_ENQUEUE_FUNCTION_1",
    "MAKE_MARK",
    "MOVE",
    "MOVE_MARK",
    "NEXT_PART",
    "NEXT_RUN_AT",
    "NOTIFY",
    "NOTIFY_SLEEPERS",
    "NOTIFY_WAITERS",
    "NOW",
    "PAUSE",
    "PAUSES",
    "PLANNED_READY",
    "POSITION",
    "PROGRESS",
    "PROMOTE",
    "PROMOTE_FOLLOWERS",
    "PROMOTE_NOW",
    "PRUNE",
    "PRUNE_QUEUES",
    "PRUNE_ROLLUPS",
    "PRUNE_SAMPLES",
    "QUEUES",
    "QUEUES_OF",
    "READY_QUEUES",
    "RECORD_STEP",
    "RECORD_STEP_OF_LOCKED",
    "REGISTERED",
    "RELEASE",
    "RELEASE_UNHELD",
    "RENEW",
    "REPLACE",
    "REPRIORITISE",
    "RESCUE",
    "RESCUE_WORKER",
    "RESTART_MARK",
    "RESULTS_CHANNEL",
    "RESUME",
    "RETRY",
    "RUNNING_NOW",
    "SAMPLES",
    "SCHEDULED",
    "SERIES",
    "SERVER",
    "SLEEP",
    "SNOOZE",
    "SPANS",
    "SPAN_OF_THE_DEAD",
    "STANDING",
    "START_BULK",
    "STATE",
    "STATUS",
    "STATUS_COUNTS",
    "STEP",
    "STEPS",
    "STOP_BULK",
    "TABLES",
    "TASKS",
    "TASK_LIVES",
    "TASK_PATHS",
    "TOTALS",
    "UNKNOWN_SINCE",
    "WAIT_AS_BEFORE",
    "WAIT_BRIEFLY",
    "WAIT_FOR_RESULTS",
    "WHEREABOUTS",
    "WORKERS",
    "WORKER_HOT_PATH",
    "WORKER_SESSION",
    "count",
    "joins",
    "rests",
    "walk",
]
