"""What enqueueing refuses, before any SQL: bad arguments, names and times."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from django.test import override_settings

from django_pgqueue import sql
from django_pgqueue.compat import (
    InvalidTask,
    task_backends,
)
from django_pgqueue.exceptions import InvalidArguments
from django_pgqueue.models import Job
from django_pgqueue.tasks import PgQueueTask

from .aliases import alias, jobs
from .support import (
    claim_queue,
    fetch,
    settle_one,
    shown,
    status_of,
)
from .tasks import ok

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

# --- bad arguments: refused before any SQL, so that the caller's transaction goes on

DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]
CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)

BAD_ARGUMENTS = {
    "NUL": ("a\x00b", ValueError, r"args\[0\]"),
    "NUL in a list": (["ok", ["\x00"]], ValueError, r"args\[0\]\[1\]\[0\]"),
    "NUL as a key": ({"\x00": 1}, ValueError, r"args\[0\]"),
    "lone surrogate": ("\udcff", ValueError, "surrogate"),
    "file name": (os.fsdecode(b"\xff"), ValueError, "surrogate"),
    "NaN": (float("nan"), ValueError, "nan"),
    "infinity": ([float("inf")], ValueError, "inf"),
    "keys that are no strings": ({1: "a"}, ValueError, "keys are strings"),
    "too large": ("x" * 1_000_001, ValueError, "max_argument_bytes allows 1,000,000"),
    "too large in bytes": ("ü" * 500_001, ValueError, "max_argument_bytes"),
    "nested too deeply": (DEEP, ValueError, "nested too deeply"),
    "circular": (CIRCULAR, ValueError, "nested too deeply"),
    "a number of 5000 digits": (10**5000, ValueError, "args"),
    "bytes that are no text": (b"\xff", ValueError, r"args\[0\]"),
    "a set": ({1}, TypeError, r"args\[0\]"),
    "a model": (object(), TypeError, r"args\[0\]"),
    "a datetime": (datetime.now(UTC), TypeError, r"args\[0\]"),
    "a path": (Path("x"), TypeError, r"args\[0\]"),
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_bad_arguments_are_refused_before_any_sql(name: str, django_assert_num_queries: Any) -> None:
    value, error, named = BAD_ARGUMENTS[name]
    with transaction.atomic():
        with django_assert_num_queries(0):
            with pytest.raises(error, match=named) as raised:
                ok.enqueue(value)
            assert "tests.tasks.ok" in str(raised.value)
            with pytest.raises(error, match="kwargs"):
                ok.enqueue(key=value)
        assert ok.enqueue("the transaction goes on").id
    assert jobs() == 1


def test_2500_from_a_generator_are_three_inserts_in_order(django_assert_num_queries: Any) -> None:
    """Three statements and a savepoint around them."""
    with django_assert_num_queries(5):
        results = ok.enqueue_many((number,) for number in range(2500))
    assert [result.args for result in results] == [[number] for number in range(2500)]
    ids = [int(result.id) for result in results]
    assert ids == sorted(ids)
    assert jobs() == 2500


def test_a_bad_item_among_2500_is_named_before_any_sql(django_assert_num_queries: Any) -> None:
    bad = {1777: ("\x00",), 2001: (object(),)}
    with django_assert_num_queries(0), pytest.raises(ValueError, match=r"item 1777: .*args"):
        ok.enqueue_many(bad.get(number, (number,)) for number in range(2500))
    with django_assert_num_queries(0), pytest.raises(TypeError, match="item 3: 'text' is neither"):
        ok.enqueue_many([(1,), {"a": 1}, ok.bind(2), "text"])


def test_a_bad_item_of_many_is_named_by_its_place(django_assert_num_queries: Any) -> None:
    calls = [(ok, (number,), {}) for number in range(5)] + [(ok, ("\x00",), {})]
    with django_assert_num_queries(0), pytest.raises(ValueError, match="item 5"):
        task_backends["default"].enqueue_many(calls)


def test_the_limit_of_arguments_is_an_option() -> None:
    with alias(OPTIONS={"max_argument_bytes": 10}):
        ok.enqueue("1234")
        with pytest.raises(InvalidArguments, match=r"takes 15 bytes.*allows 10"):
            ok.enqueue("12345678901")


LOSSLESS = [1e23, -0.0, 10**400, {"z": 1, "a": [None, True]}, "\u2028 %s 👩‍👩‍👧", [], {}, ""]


@pytest.mark.parametrize("value", LOSSLESS, ids=shown)
def test_arguments_come_back_as_they_were(value: Any) -> None:
    found = ok.get_result(ok.enqueue(value, key=value).id)
    assert repr((found.args, found.kwargs)) == repr(([value], {"key": value}))


def test_what_json_has_no_word_for_becomes_its_nearest() -> None:
    found = ok.get_result(ok.enqueue((1, 2), b"text").id)
    assert found.args == [[1, 2], "text"]


# --- names


def test_a_queue_that_is_not_declared_is_refused() -> None:
    with pytest.raises(InvalidTask, match="emial"):
        ok.using(queue_name="emial")


def test_without_declared_queues_any_good_name_will_do() -> None:
    with alias(QUEUES=[]):
        assert status_of(int(ok.using(queue_name="anything at all").enqueue().id)) == "ready"
        for name in ("a,b", " a", "", "x" * 129, "a\x00", "\udcff"):
            with pytest.raises(InvalidTask, match="queue name"):
                ok.using(queue_name=name)


def test_a_task_path_longer_than_its_column_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PgQueueTask, "module_path", property(lambda self: "tests." + "x" * 300))
    with pytest.raises(InvalidTask, match="306 characters; 255 are allowed"):
        ok.enqueue()
    assert jobs() == 0


# --- times


def seconds_until(job_id: Any) -> float:
    """Return the seconds until a job is due, by the database's own clock."""
    seconds = "extract(epoch FROM run_at - clock_timestamp())::float8 AS seconds"
    return fetch(f"SELECT {seconds} FROM {sql.STATE} WHERE job_id = %s", [int(job_id)])[0]["seconds"]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
def test_an_aware_time_is_that_moment_in_any_zone(zone: str) -> None:
    moment = (datetime.now(UTC) + timedelta(hours=5)).astimezone(ZoneInfo(zone))
    result = ok.using(run_after=moment).enqueue()
    assert abs(seconds_until(result.id) - 5 * 3600) < 60
    assert Job.objects.get(pk=int(result.id)).run_after == moment
    assert ok.get_result(result.id).task.run_after == moment


def test_a_timedelta_counts_from_now_by_the_databases_clock() -> None:
    result = ok.using(run_after=timedelta(hours=2)).enqueue()
    assert abs(seconds_until(result.id) - 2 * 3600) < 60
    assert status_of(int(result.id)) == "scheduled"
    assert status_of(int(ok.using(run_after=timedelta(0)).enqueue().id)) == "ready"
    assert status_of(int(ok.using(run_after=timedelta(days=-5)).enqueue().id)) == "ready"


@pytest.mark.parametrize("year", [1, 1583, 1969, 9998])
def test_a_far_time_is_stored_and_read_back(year: int) -> None:
    moment = datetime(year, 6, 1, tzinfo=UTC)
    result = ok.using(run_after=moment).enqueue()
    assert ok.get_result(result.id).task.run_after == moment
    claimed = claim_queue()
    assert [job.run_after for job in claimed] == ([moment] if year < 2000 else [])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York", "Pacific/Kiritimati"])
def test_without_time_zones_every_time_is_of_the_projects_zone(zone: str) -> None:
    with override_settings(USE_TZ=False, TIME_ZONE=zone):
        local = datetime.now() + timedelta(hours=5)  # noqa: DTZ005 - naive, as such a project has it
        result = ok.using(run_after=naive_in(zone, hours=5)).enqueue()
        assert abs(seconds_until(result.id) - 5 * 3600) < 60
        assert abs(seconds_until(ok.enqueue().id)) < 60
        found = ok.get_result(result.id)
        assert found.task.run_after == found.task.run_after.replace(tzinfo=None)
        assert found.enqueued_at.tzinfo is None
        for far in (datetime(1, 1, 3), datetime(9999, 12, 29)):  # noqa: DTZ001
            assert ok.get_result(ok.using(run_after=far).enqueue().id).task.run_after == far
        (claimed, *_) = claim_queue()
        assert settle_one("fail", claimed.fence, delay=60.0) == "done"
        assert abs(seconds_until(claimed.job_id) - 60) < 30
        assert ok.get_result(str(claimed.job_id)).errors
        assert local.tzinfo is None


def naive_in(zone: str, *, hours: float) -> datetime:
    return (datetime.now(ZoneInfo(zone)) + timedelta(hours=hours)).replace(tzinfo=None)
