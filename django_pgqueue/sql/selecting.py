"""A walk along one index over the jobs that a filter means, in either direction from any place.

The index's own conditions and the place are an index range.  All other conditions are asked of the rows that
the range gives, ``look`` of them at most: however rare the matching jobs are, a walk costs no more than that.
No OFFSET and no sort: the first rows of page five thousand cost what those of page one cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .. import states
from ..selecting import BY_CAUSE, BY_END, BY_ID, BY_TASK, JobFilter
from .tables import JOB, STATE


@dataclass(frozen=True, slots=True)
class Order:
    """The columns of an index with their types, and what its entries have in common."""

    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    holds: str = "true"
    falls: bool = False

    @property
    def key(self) -> str:
        """The column with the job's id."""
        return self.columns[-1]


_TIME_AND_ID = ("timestamptz", "bigint")
# Spelled as the indexes are, or they cannot be used; literals, for a partial index needs to be proved.
ORDERS: Mapping[str, Order] = {
    BY_ID: Order(JOB, ("id",), ("bigint",), falls=True),
    BY_TASK: Order(JOB, ("id",), ("bigint",), falls=True),
    BY_CAUSE: Order(
        STATE, ("finished_at", "job_id"), _TIME_AND_ID, "status = 'dead' AND cause = %(cause)s", falls=True
    ),
    BY_END: Order(STATE, ("finished_at", "job_id"), _TIME_AND_ID, "finished_at IS NOT NULL", falls=True),
    states.SCHEDULED: Order(STATE, ("run_at", "job_id"), _TIME_AND_ID, "status = 'scheduled'"),
    states.READY: Order(
        STATE,
        ("queue", "(priority * -1)", "position", "job_id"),
        ("text", "int", "bigint", "bigint"),
        "status = 'ready'",
    ),
    states.RUNNING: Order(STATE, ("claimed_at", "job_id"), _TIME_AND_ID, "status = 'running'"),
}


def walk(asked: JobFilter, *, backwards: bool = False, from_place: bool = False) -> str:
    """Return a statement: the next ``limit`` jobs that match, and the last row that was looked at.

    Its rows are ``(job_id, matches, looked, place...)``; of ``matches = false`` there is one at most, and it
    has how many rows were looked at.
    """
    order = ORDERS[asked.order]
    falls = order.falls != backwards
    names = [f"place_{number}" for number in range(len(order.columns))]
    by, back = (", ".join(f"{name} {way}" for name in names) for way in _ways(falls))
    places = ", ".join(names)
    return f"""
WITH looked AS MATERIALIZED ({_looked(asked, order, names, falls, from_place)}), matching AS (
    SELECT looked.* FROM looked {_beside(asked, order)}
    ORDER BY {by}
    LIMIT %(limit)s
)
SELECT place_{len(names) - 1} AS job_id, true, 0, {places} FROM matching
UNION ALL
(SELECT place_{len(names) - 1}, false, (SELECT count(*) FROM looked), {places} FROM looked
 ORDER BY {back} LIMIT 1)
"""


def count(asked: JobFilter) -> str:
    """Return a statement: how many jobs match among the first ``look``, and how many those are."""
    order = ORDERS[asked.order]
    names = [f"place_{number}" for number in range(len(order.columns))]
    looked = _looked(asked, order, names, order.falls, from_place=False)
    return f"""
WITH looked AS MATERIALIZED ({looked})
SELECT (SELECT count(*) FROM looked {_beside(asked, order)}), (SELECT count(*) FROM looked)
"""


def rests(asked: JobFilter) -> bool:
    """Return whether there are conditions that the order's index cannot answer."""
    return bool(_beside(asked, ORDERS[asked.order]))


def joins(asked: JobFilter) -> bool:
    """Return whether each row is looked up in another table, too."""
    return "JOIN" in _beside(asked, ORDERS[asked.order])


def _ways(falls: bool) -> tuple[str, str]:
    return ("DESC", "ASC") if falls else ("ASC", "DESC")


def _looked(asked: JobFilter, order: Order, names: list[str], falls: bool, from_place: bool) -> str:
    """Return the rows of the index range; of several equal beginnings, each range merged with the others."""
    if asked.order == BY_TASK:
        ranges = [_range(asked, order, names, falls, from_place, "task_path = given.task_path")]
        source = "SELECT found.* FROM unnest(%(task_paths)s::text[]) AS given(task_path)"
        return _merged(f"{source} CROSS JOIN LATERAL ({ranges[0]}) AS found", names, falls)
    if asked.order == BY_END:
        ended = [status for status in asked.statuses if status in states.ENDED]
        ranges = [_range(asked, order, names, falls, from_place, f"status = '{status}'") for status in ended]
        if len(ranges) > 1:
            return _merged(" UNION ALL ".join(f"({one})" for one in ranges), names, falls)
        return ranges[0]
    return _range(asked, order, names, falls, from_place, "true")


def _range(
    asked: JobFilter, order: Order, names: list[str], falls: bool, from_place: bool, begins: str
) -> str:
    columns = order.columns
    conditions = [order.holds, begins, *_bounds(asked, order)]
    if asked.order == states.READY and asked.queue is not None:
        conditions.append("queue = %(queue)s")
        if from_place:
            conditions.append(_beyond(columns[1:], order.types[1:], falls, first=1))
    elif from_place:
        conditions.append(_beyond(columns, order.types, falls, first=0))
    chosen = ", ".join(f"{column} AS {name}" for column, name in zip(columns, names, strict=True))
    chosen = ", ".join([chosen, *dict.fromkeys(name for name, _ in _carried(asked, order))])
    by = ", ".join(f"{column} {_ways(falls)[0]}" for column in columns)
    held = " AND ".join(condition for condition in conditions if condition != "true") or "true"
    return f"SELECT {chosen} FROM {order.table} WHERE {held} ORDER BY {by} LIMIT %(look)s"


def _beyond(columns: tuple[str, ...], types: tuple[str, ...], falls: bool, *, first: int) -> str:
    given = ", ".join(f"%(place_{first + number})s::{kind}" for number, kind in enumerate(types))
    return f"({', '.join(columns)}) {'<' if falls else '>'} ({given})"


def _merged(ranges: str, names: list[str], falls: bool) -> str:
    by = ", ".join(f"{name} {_ways(falls)[0]}" for name in names)
    return f"SELECT * FROM ({ranges}) AS ranges ORDER BY {by} LIMIT %(look)s"


def _bounds(asked: JobFilter, order: Order) -> list[str]:
    """Return the conditions that bound the order's leading column."""
    bounds = []
    if order.columns[0] == "finished_at":
        bounds += ["finished_at >= %(finished_from)s"] if asked.finished_from is not None else []
        bounds += ["finished_at <= %(finished_to)s"] if asked.finished_to is not None else []
    if order.columns[0] == "id":
        bounds += ["id >= %(first_id)s"] if asked.first_id is not None else []
        bounds += ["id < %(end_id)s"] if asked.end_id is not None else []
    return bounds


def _beside(asked: JobFilter, order: Order) -> str:
    """Return joins and conditions for what the index cannot answer; empty when it answers everything."""
    conditions = [f"looked.{name} {test}" for name, test in _carried(asked, order)]
    key = f"looked.place_{len(order.columns) - 1}"
    join = ""
    if order.table == STATE:
        conditions += [f"{key} >= %(first_id)s"] if asked.first_id is not None else []
        conditions += [f"{key} < %(end_id)s"] if asked.end_id is not None else []
        job = ["job.task_path = ANY(%(task_paths)s::text[])"] if asked.task_paths is not None else []
        job += [f"job.enqueued_at {test}" for test in _of_enqueueing(asked)]
        # One look-up by key for each row; see the package about the operator.
        join = f" JOIN {JOB} AS job ON job.id = ANY(ARRAY[{key}])" if job else ""
        conditions += job
    return f"{join} WHERE {' AND '.join(conditions)}" if conditions else ""


def _carried(asked: JobFilter, order: Order) -> list[tuple[str, str]]:
    """Return columns of the walked table that are looked at row by row, with what is asked of them."""
    carried = []
    if asked.queue is not None and asked.order != states.READY:
        carried.append(("queue", "= %(queue)s"))
    if order.table == JOB:
        carried += [("enqueued_at", test) for test in _of_enqueueing(asked)]
    return carried


def _of_enqueueing(asked: JobFilter) -> list[str]:
    tests = [">= %(enqueued_from)s"] if asked.enqueued_from is not None else []
    return [*tests, *(["<= %(enqueued_to)s"] if asked.enqueued_to is not None else [])]


QUEUES_OF = f"SELECT DISTINCT queue FROM {STATE} WHERE job_id = ANY(%(job_ids)s::bigint[])"
