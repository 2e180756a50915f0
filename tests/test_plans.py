"""The plans of the hot statements, as the worker runs them: the index named, nothing sorted, nothing walked.

On an empty, a never-analysed and large tables; as custom plan, as generic plan, and as a plan that was cached
while the table was small and is still used when it has grown.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection

from devtools.databases import database_url
from django_pgqueue.managers import PromoteMark
from django_pgqueue.models import Job
from django_pgqueue.records import Consumed, Cursor, Fence

from . import plans
from .plans import Plan, Session
from .support import SETTLEMENTS, WORKER, claim_queue, released

# Without a mark pytest-django makes no database; the tests themselves use sessions of their own.
pytestmark = pytest.mark.django_db

ROWS = 200_000
CLAIM, PROMOTE, RESCUE, ENDED, STATE_KEY, JOB_KEY = (
    "pgqueue_state_claim",
    "pgqueue_state_promote",
    "pgqueue_state_rescue",
    "pgqueue_state_ended",
    "django_pgqueue_jobstate_pkey",
    "django_pgqueue_job_pkey",
)
BATCH = 20


# --- the statements, through the verbs


def _settle(verb: str) -> Callable[[Any], object]:
    def act(connection: psycopg.Connection) -> object:
        settlements = [SETTLEMENTS[verb](fence) for fence in plans.fences(BATCH)]
        return getattr(Job.objects, verb)(settlements, worker=WORKER, connection=connection)

    return act


def _rescue_worker(connection: psycopg.Connection) -> object:
    return Job.objects.rescue_worker(
        [released(f) for f in plans.fences(BATCH)], worker=WORKER, connection=connection
    )


def _consume(connection: psycopg.Connection) -> object:
    consumed = [Consumed(fence) for fence in plans.fences(BATCH)]
    return Job.objects.consume(consumed, worker=WORKER, connection=connection)


def _prune(connection: psycopg.Connection) -> object:
    return Job.objects.prune("succeeded", age=1.0, limit=BATCH, connection=connection)


def _renew_others(connection: psycopg.Connection) -> object:
    unknown = [Fence(f.job_id, 2, f.lease_token) for f in plans.fences(BATCH)]
    return Job.objects.renew(unknown, lease=30.0, connection=connection)


MARK = PromoteMark("2020-01-01 00:00:00+00", 5)
STATEMENTS: dict[str, Callable[[Any], object]] = {
    "claim": lambda connection: claim_queue(limit=BATCH, connection=connection),
    "claim behind a cursor": lambda connection: claim_queue(
        limit=BATCH, after=Cursor(0, 1000, 1000), connection=connection
    ),
    "promote": lambda connection: Job.objects.promote(limit=BATCH, connection=connection),
    "promote behind a mark": lambda connection: Job.objects.promote(
        limit=BATCH, after=MARK, connection=connection
    ),
    "renew": lambda connection: Job.objects.renew(plans.fences(BATCH), lease=30.0, connection=connection),
    "renew, lost": _renew_others,
    **{verb: _settle(verb) for verb in SETTLEMENTS},
    "consume": _consume,
    "rescue": lambda connection: Job.objects.rescue(limit=BATCH, server_up=0.0, connection=connection),
    "rescue_worker": _rescue_worker,
    "prune": _prune,
}
ASKING: dict[str, Callable[[Any], object]] = {
    "next_run_at": lambda connection: Job.objects.next_run_at(connection=connection),
    "ready_queues": lambda connection: Job.objects.ready_queues(connection=connection),
    "unknown_since": lambda connection: Job.objects.unknown_since(
        list(range(1, BATCH + 1)), exception_class="x", connection=connection
    ),
    "history": lambda connection: Job.objects.history(list(range(1, BATCH + 1)), connection=connection),
}
BY_FENCE = {"renew", "renew, lost", "rescue_worker", "consume", *SETTLEMENTS}
DRIVER = {
    "claim": CLAIM,
    "claim behind a cursor": CLAIM,
    "promote": PROMOTE,
    "promote behind a mark": PROMOTE,
    "rescue": RESCUE,
    "prune": ENDED,
}


# --- the tables


@pytest.fixture(scope="module")
def owner(django_db_setup: None, django_db_blocker: Any) -> Iterator[psycopg.Connection]:
    """A session that fills the tables; everything it did is undone when the module is over."""
    with (
        django_db_blocker.unblock(),
        psycopg.connect(database_url(connection.settings_dict), autocommit=True) as owner,
    ):
        if not plans.can_tell_plans(owner):
            pytest.skip("this role may not load auto_explain: plans cannot be seen")
        yield owner
        plans.leave(owner)


TABLES: dict[str, dict[str, int]] = {
    "empty": {},
    "never analysed": {"ready": ROWS},
    "all ready": {"ready": ROWS},
    "analysed while all rows were dead": {"ready": ROWS // 10},
    "analysed with ten rows": {"ready": ROWS // 10},
    "ready among ended": {"ready": ROWS // 2, "succeeded": ROWS // 2},
    "all scheduled": {"scheduled": ROWS},
}
ANALYSED = {"all ready", "ready among ended", "all scheduled"}
# Statistics may be long out of date: autovacuum analyses after tens of thousands of changes. The worst they
# can say is that there are no rows, in pages that hold dead ones: then a walk through an index looks free.
FORGOTTEN = {"analysed while all rows were dead": 0, "analysed with ten rows": 10}
SESSIONS = {
    "custom plan": "force_custom_plan",
    "generic plan": "force_generic_plan",
    "cached while empty": "force_generic_plan",
}


@pytest.fixture(scope="module", params=TABLES)
def tables(request: pytest.FixtureRequest, owner: psycopg.Connection) -> Iterator[dict[str, Session]]:
    """The tables in one of these conditions, and the sessions to look at them with."""
    sessions = {"cached while empty": Session("cached while empty", "force_generic_plan")}
    if not (request.param == "all ready" and ready_jobs(owner) == ROWS):  # else left by "never analysed"
        plans.empty(owner)
        if request.param in FORGOTTEN:
            plans.analyse_with(owner, FORGOTTEN[request.param])
        for act in (STATEMENTS | ASKING).values():
            with sessions["cached while empty"].hot() as connection:
                act(connection)
        plans.fill(owner, **TABLES[request.param])
    if request.param in ANALYSED:
        plans.analyse(owner)
    sessions |= {name: Session(name, mode) for name, mode in SESSIONS.items() if name not in sessions}
    yield sessions
    for session in sessions.values():
        session.close()


def ready_jobs(owner: psycopg.Connection) -> int:
    return owner.execute(f"SELECT count(*) FROM {plans.sql.STATE} WHERE status = 'ready'").fetchone()[0]


def executed(session: Session, act: Callable[[Any], object]) -> list[Plan]:
    """Run a verb as the worker does, undo it, and return the plans of its statements."""
    with session.hot() as connection:
        act(connection)
    assert session.plans
    return list(session.plans)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_plan(tables: dict[str, Session], statement: str) -> None:
    for session in tables.values():
        told = executed(session, STATEMENTS[statement])
        for plan in told:
            assert_reads_by_index(plan)
        if statement in BY_FENCE:
            assert_driven_by_key(told[0])
        else:
            assert_driven_by(told[0], DRIVER[statement])


def assert_reads_by_index(plan: Plan) -> None:
    """Check that no table is walked or sorted, and that the work is that of a batch."""
    assert {node["Node Type"] for node in plan.scans()} <= SCANS, f"\n{plan}"
    assert plan.sorted_rows_of_tables() == [], f"\n{plan}"
    assert not {node["Node Type"] for node in plan.nodes} & JOINS, f"\n{plan}"
    for scan in plan.scans():
        assert scan["Actual Rows"] * scan["Actual Loops"] <= max(BATCH, plans.RUNNING), f"\n{plan}"
        assert scan.get("Rows Removed by Filter", 0) <= plans.RUNNING, f"\n{plan}"
    assert plan.buffers < 100 * BATCH, f"\n{plan}"


SCANS = {"Index Scan", "Index Only Scan", "Tid Scan"}
JOINS = {"Hash Join", "Merge Join", "Bitmap Heap Scan"}
BY_KEY = re.compile(r"\(*(job_id|id) (=|>=) ")


def assert_driven_by(plan: Plan, index: str) -> None:
    """Check that one partial index leads, as a range, and that rows are then found by primary key."""
    lead = plan.scan_of(index)
    condition = lead.get("Index Cond", "")
    if index == CLAIM:
        assert "queue" in condition, f"\n{plan}"
        assert "ROW((priority * '-1'::integer), " in condition, f"\n{plan}"
        # A locked row is looked at again: nothing else is filtered.
        assert lead["Filter"] == "((status)::text = 'ready'::text)", f"\n{plan}"
    elif index == PROMOTE:
        assert "run_at <= " in condition, f"\n{plan}"
        assert "ROW(run_at, job_id) > " in condition, f"\n{plan}"
        assert "'scheduled'" in lead["Filter"], f"\n{plan}"
    elif index == ENDED:
        assert "status" in condition, f"\n{plan}"
        assert "finished_at < " in condition, f"\n{plan}"
        assert "ROW(finished_at, job_id) > " in condition, f"\n{plan}"
    assert_found_by_key(plan, [scan for scan in plan.scans() if scan is not lead])


def assert_driven_by_key(plan: Plan) -> None:
    """Check that rows are found by primary key, never through an index that fills with dead entries."""
    assert all(name.endswith("_pkey") for name in plan.indexes()), f"\n{plan}"
    assert_found_by_key(plan, plan.scans())


def assert_found_by_key(plan: Plan, scans: list[dict[str, Any]]) -> None:
    for scan in scans:
        if scan["Node Type"] == "Tid Scan":
            continue
        if scan["Index Name"] == "pgqueue_state_one_live_job_per_key":
            assert "unique_key = " in scan["Index Cond"], f"\n{plan}"
            continue
        assert scan["Index Name"] in (STATE_KEY, JOB_KEY, "django_pgqueue_attempt_pkey"), f"\n{plan}"
        assert BY_KEY.match(scan["Index Cond"]), f"\n{plan}"


@pytest.mark.parametrize("statement", ASKING)
def test_asking_is_cheap(tables: dict[str, Session], statement: str) -> None:
    for session in tables.values():
        told = executed(session, ASKING[statement])
        assert len(told) == 1, told
        (plan,) = told
        assert {node["Node Type"] for node in plan.scans()} <= {"Index Scan", "Index Only Scan"}, f"\n{plan}"
        assert plan.buffers < 200, f"\n{plan}"


# --- cases from public reports, with the figures that they ask for. Small here; in millions when marked slow.

SIZES = [
    pytest.param(100_000, id="100k"),
    pytest.param(2_000_000, id="2M", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
]


@pytest.fixture
def session(owner: psycopg.Connection) -> Iterator[Session]:
    """The worker's session with PostgreSQL's own choice between custom and generic plans."""
    session = Session("PostgreSQL's choice", "auto")
    yield session
    session.close()


def refill(owner: psycopg.Connection, **counts: int) -> None:
    plans.empty(owner)
    plans.fill(owner, **counts)


def drain_and_idle(session: Session, queue: str, times: int = 10) -> list[Plan]:
    """Claim ten jobs again and again, as a worker does; return the claims' plans. Each is undone."""
    return [
        executed(session, lambda connection: claim_queue(queue, limit=10, connection=connection))[0]
        for _ in range(times)
    ]


@pytest.mark.parametrize("size", SIZES)
def test_a_claim_costs_the_same_whatever_has_ended(
    owner: psycopg.Connection, session: Session, size: int
) -> None:
    refill(owner, ready=100)
    alone = max(plan.buffers for plan in drain_and_idle(session, "default"))
    refill(owner, ready=100, succeeded=size)
    for _ in ("not analysed", "analysed"):
        told = drain_and_idle(session, "default")
        assert max(plan.buffers for plan in told) < 200, told
        assert max(plan.buffers for plan in told) < alone + 100, told
        assert min(plan.milliseconds for plan in told) < 5, told
        plans.analyse(owner)
    for act in ASKING.values():  # what a worker asks again and again
        (plan,) = executed(session, act)
        assert plan.buffers < 200, f"\n{plan}"
        assert plan.milliseconds < 50, f"\n{plan}"


@pytest.mark.parametrize("size", SIZES)
def test_jobs_due_in_the_future_cost_a_claim_nothing(
    owner: psycopg.Connection, session: Session, size: int
) -> None:
    refill(owner, ready=10, scheduled=size)
    plans.analyse(owner)
    told = drain_and_idle(session, "default") + drain_and_idle(session, "idle")
    told += [executed(session, act)[0] for act in (STATEMENTS["promote"], ASKING["next_run_at"])]
    assert max(plan.buffers for plan in told) < 200, told
    assert min(plan.milliseconds for plan in told) < 10, told


@pytest.mark.parametrize("size", SIZES)
def test_a_large_queue_costs_the_others_nothing_before_and_after_the_sixth_execution(
    owner: psycopg.Connection, session: Session, size: int
) -> None:
    small = {f"queue_small{number}": 100 for number in range(3)} | {
        f"queue_other{number}": 10 for number in range(16)
    }
    refill(owner, **small, ready=size)
    plans.analyse(owner)
    for queue in ("small0", "small1", "small2"):
        told = drain_and_idle(session, queue, times=12)
        for plan in told:
            assert_driven_by(plan, CLAIM)
            assert_reads_by_index(plan)
        assert max(plan.buffers for plan in told) < 200, told
        assert max(plan.buffers for plan in told[6:]) <= max(plan.buffers for plan in told[:5]) + 50, told


# --- what people ask of many jobs at once: without the worker's settings, in the transaction of a web request

BULK = 400
BULK_VERBS: dict[str, tuple[str, Callable[..., object]]] = {
    "cancel": ("ready", Job.objects.cancel),
    "retry": ("dead", Job.objects.retry),
    "promote_now": ("scheduled", Job.objects.promote_now),
}


@pytest.mark.parametrize("statistics", [*FORGOTTEN, "fresh"])
@pytest.mark.parametrize("verb", BULK_VERBS)
def test_many_at_once_are_handled_once_each(
    owner: psycopg.Connection, session: Session, verb: str, statistics: str
) -> None:
    status, act = BULK_VERBS[verb]
    plans.empty(owner)
    if statistics in FORGOTTEN:
        plans.analyse_with(owner, FORGOTTEN[statistics])
    plans.fill(owner, **{status: 20 * BULK})
    if statistics == "fresh":
        plans.analyse(owner)
    first = plans.RUNNING + 1
    with session.plain() as connection:
        act(list(range(first, first + BULK)), connection=connection)
    (plan,) = session.plans
    assert BULK <= plan.most_rows() <= 21 * BULK, f"\n{plan}"
    assert plan.buffers < 100 * BULK, f"\n{plan}"
