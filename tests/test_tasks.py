"""The task decorator and using(): every option checked, and modules that run under other backends too."""

import importlib
import math
import pickle
import sys
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import django
import pytest
from django.test import override_settings

import django_pgqueue
from django_pgqueue import Backoff, PgQueueTask, task
from django_pgqueue.compat import BaseTaskBackend, InvalidTask, Task, TaskResultStatus, task_backends
from django_pgqueue.models import Job

from . import tasks
from .support import shown

OTHERS = BaseTaskBackend.__module__.rpartition(".")[0]
"""The package of the Tasks API's own backends."""


# --- the decorator


def test_the_bare_decorator_makes_a_task_with_the_defaults() -> None:
    assert isinstance(tasks.ok, PgQueueTask)
    assert isinstance(tasks.ok, Task)
    assert (tasks.ok.module_path, tasks.ok.name) == ("tests.tasks.ok", "ok")
    assert (tasks.ok.queue_name, tasks.ok.priority, tasks.ok.backend) == ("default", 0, "default")
    assert (tasks.ok.max_attempts, tasks.ok.backoff, tasks.ok.timeout, tasks.ok.retry_on) == (None,) * 4
    assert (tasks.ok.discard_on, tasks.ok.metadata) == ((), {})
    assert (tasks.ok.run_after, tasks.ok.delay) == (None, None)


def test_every_option_is_kept() -> None:
    mail = tasks.mail
    assert (mail.queue_name, mail.priority, mail.max_attempts, mail.timeout) == ("emails", 7, 3, 12.5)
    assert mail.backoff == Backoff(base=1.5, cap=60.0)
    assert (mail.discard_on, mail.retry_on) == ((ValueError, KeyError), (OSError,))
    assert mail.metadata == {"team": "shop"}


def test_a_task_can_be_called_like_its_function() -> None:
    assert tasks.mail.call("a@example.org") == "a@example.org"
    assert tasks.coroutine.call(1) == 2
    assert tasks.ok.func(1, a=2) == [[1], {"a": 2}]


def test_the_package_gives_its_names_on_first_use() -> None:
    for name in django_pgqueue.__all__:
        assert getattr(django_pgqueue, name).__name__.removesuffix("Error") == name.removesuffix("Error")
    with pytest.raises(AttributeError, match="no_such_name"):
        django_pgqueue.no_such_name  # noqa: B018


def policy(error: BaseException, result: Any) -> float:
    return 1.0


FINE: list[dict[str, Any]] = [
    {"max_attempts": 1},
    {"max_attempts": 1_000_000},
    {"backoff": Backoff()},
    {"backoff": policy},
    {"timeout": 0.1},
    {"timeout": 3600},
    {"discard_on": ValueError},
    {"discard_on": [ValueError, BaseException]},
    {"retry_on": (OSError,)},
    {"retry_on": ()},
    {"metadata": {"a": [1, {"b": None}]}},
    {"priority": -100},
    {"priority": 100},
    {"queue_name": "emails"},
]
CIRCULAR: dict[str, Any] = {}
CIRCULAR["a"] = CIRCULAR
WRONG: list[tuple[dict[str, Any], str]] = [
    *(({"max_attempts": value}, "max_attempts") for value in (0, -1, 1.5, "3", True, 1_000_001, math.inf)),
    *(
        ({"timeout": value}, "timeout")
        for value in (0, -1, "5", True, math.nan, math.inf, 10**400, timedelta(seconds=5))
    ),
    *(({"backoff": value}, "backoff") for value in (5, "5", (1, 2))),
    *(({"discard_on": value}, "discard_on") for value in ("ValueError", [ValueError()], [int], 5)),
    *(({"retry_on": value}, "retry_on") for value in ("OSError", [OSError()], [str], 5)),
    ({"metadata": {"a": "\x00"}}, r"metadata\['a'\].*NUL"),
    ({"metadata": {"a": math.nan}}, r"metadata\['a'\]"),
    ({"metadata": {"a": {1}}}, r"metadata\['a'\]"),
    ({"metadata": {1: "a"}}, "metadata"),
    ({"metadata": "text"}, "metadata"),
    ({"metadata": ["a"]}, "metadata"),
    *(
        ({"priority": value}, "priority must be a whole number")
        for value in (101, -101, 1.5, "5", True, math.nan, math.inf, [1])
    ),
    ({"queue_name": "emial"}, "emial"),
    ({"queue_name": ""}, "ueue"),
    *(({"queue_name": value}, "queue_name must be a string") for value in (5, ["emails"], b"emails", True)),
    *(({"backend": value}, "backend must be an alias") for value in (5, ["default"])),
    *(({"backoff": value}, "backoff must be") for value in (Backoff, lambda: 1.0, lambda error: 1.0, True)),
    ({"metadata": CIRCULAR}, "metadata"),
    *(({"unique_key": value}, "unique_key") for value in (5, b"key", "", "a\nb", "x" * 247)),
    *(({"on_conflict": value}, "on_conflict") for value in ("ignore", 5, ["raise"])),
    *(({"atomic": value}, "atomic") for value in (0, 1, "no")),
    *(({"max_attempts": value}, "max_attempts") for value in ([], math.nan)),
]


@pytest.mark.parametrize("options", FINE, ids=shown)
def test_options_that_are_fine(options: dict[str, Any]) -> None:
    made = task(**options)(tasks.ok.func)
    for name, value in options.items():
        classes = (value,) if isinstance(value, type) else value
        assert getattr(made, name) == (tuple(classes) if name in ("discard_on", "retry_on") else value)


@pytest.mark.parametrize(("options", "named"), WRONG, ids=shown)
def test_an_option_of_a_wrong_value_is_refused_by_its_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidTask, match=named):
        task(**options)(tasks.ok.func)
    with pytest.raises(InvalidTask, match=named):
        tasks.ok.using(**options)


@pytest.mark.parametrize("name", ["run_after", "delay"])
def test_a_time_belongs_to_a_call_and_not_to_the_decorator(name: str) -> None:
    with pytest.raises(TypeError, match="using"):
        task(**{name: datetime.now(UTC)})


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="retries"):
        task(retries=5)(tasks.ok.func)


def test_a_function_that_no_worker_could_find_is_refused() -> None:
    def local() -> None: ...

    for function in (local, lambda: None, len):
        with pytest.raises(InvalidTask):
            task(function)


def test_a_context_needs_a_parameter_for_it() -> None:
    with pytest.raises(InvalidTask, match="context"):
        task(takes_context=True)(tasks.other.func)


# --- using other options

CHANGES = {
    "priority": 9,
    "queue_name": "other",
    "max_attempts": 7,
    "backoff": Backoff(2.0, 4.0),
    "timeout": 1.0,
    "discard_on": (TypeError,),
    "retry_on": (RuntimeError,),
    "metadata": {"x": 1},
    "run_after": datetime(2031, 1, 1, tzinfo=UTC),
    "unique_key": "k",
    "on_conflict": "raise",
    "delay": 5.0,
}


@pytest.mark.parametrize("name", CHANGES)
def test_using_changes_one_option_and_leaves_the_others(name: str) -> None:
    changed = tasks.mail.using(**{name: CHANGES[name]})
    assert getattr(changed, name) == CHANGES[name]
    for other in (*CHANGES, "backend", "func", "takes_context"):
        if other != name:
            assert getattr(changed, other) == getattr(tasks.mail, other), other
    assert tasks.mail.using(**dict.fromkeys(CHANGES)) == tasks.mail, "None means unchanged"


def test_using_another_backend() -> None:
    both = {"default": task_backends.settings["default"], "second": task_backends.settings["default"]}
    with override_settings(TASKS=both):
        assert tasks.ok.using(backend="second").backend == "second"


def test_using_all_at_once_and_twice() -> None:
    changes = {name: value for name, value in CHANGES.items() if name != "delay"}
    changed = tasks.mail.using(**changes).using(priority=-3)
    for name, value in changes.items():
        assert getattr(changed, name) == (-3 if name == "priority" else value)


def test_a_timedelta_becomes_a_delay_and_replaces_a_time() -> None:
    at = datetime(2031, 1, 1, tzinfo=UTC)
    later = tasks.ok.using(run_after=timedelta(minutes=2))
    assert (later.run_after, later.delay) == (None, 120.0)
    assert later.using(run_after=at).delay is None
    again = tasks.ok.using(run_after=at).using(run_after=timedelta(seconds=1))
    assert (again.run_after, again.delay) == (None, 1.0)


@pytest.mark.parametrize("changes", [{"retries": 3}, {"func": print}, {"takes_context": True}])
def test_using_an_unknown_option_is_a_type_error(changes: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(changes))):
        tasks.ok.using(**changes)


@pytest.mark.parametrize("delay", ["5", math.nan, math.inf, True, [5]], ids=shown)
def test_a_delay_that_is_no_number_of_seconds_is_refused(delay: Any) -> None:
    with pytest.raises(InvalidTask, match="delay"):
        tasks.ok.using(delay=delay)


@pytest.mark.parametrize("value", [60, 1.5, "tomorrow", date(2031, 1, 1), True], ids=shown)
def test_a_time_that_is_none_is_refused_with_what_would_be_one(value: Any) -> None:
    with pytest.raises(
        InvalidTask, match="run_after must be an aware datetime or a timedelta, not"
    ) as caught:
        tasks.ok.using(run_after=value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"run_after": 60}, {"priority": "5"}, {"queue_name": ["a"]}], ids=lambda o: next(iter(o))
)
def test_the_backend_looks_at_tasks_of_djangos_own_class_too(options: dict[str, Any]) -> None:
    plain = object.__new__(Task)
    for f in fields(Task):
        object.__setattr__(plain, f.name, options.get(f.name, getattr(tasks.ok, f.name)))
    with pytest.raises(InvalidTask, match=f"{next(iter(options))} must be"):
        tasks.ok.get_backend().validate_task(plain)


NONES = [
    "priority",
    "queue_name",
    "backend",
    "takes_context",
    "discard_on",
    "metadata",
    "on_conflict",
    "atomic",
]
NONES += ["max_attempts", "backoff", "timeout", "retry_on", "unique_key"]


def test_none_stands_for_the_default_everywhere() -> None:
    assert task(**dict.fromkeys(NONES))(tasks.ok.func) == tasks.ok


FAR = [
    timedelta.max,
    timedelta.min,
    timedelta(days=365 * 9000),
    datetime.max.replace(tzinfo=UTC),
    datetime.min.replace(tzinfo=UTC),
]


@pytest.mark.parametrize("run_after", FAR, ids=str)
def test_a_time_that_cannot_be_read_back_everywhere_is_refused(run_after: Any) -> None:
    with pytest.raises(InvalidTask, match="run_after"):
        tasks.ok.using(run_after=run_after)


def test_a_naive_time_is_refused_under_use_tz() -> None:
    with pytest.raises(InvalidTask, match="aware"):
        tasks.ok.using(run_after=datetime(2031, 1, 1))  # noqa: DTZ001


# --- Django's own decorator

EVERYTHING = {
    "priority": 7,
    "queue_name": "emails",
    "max_attempts": 3,
    "backoff": Backoff(1.5, 60.0),
    "timeout": 12.5,
    "discard_on": (ValueError, KeyError),
    "retry_on": (OSError,),
    "metadata": {"team": "shop"},
    "unique_key": "key of all",
    "on_conflict": "raise",
}
"""Every option but what belongs to a function or to a call, and atomic, which is not built."""
THE_APIS = import_module(Task.__module__.rpartition(".")[0]).task
UNNAMED = {"func", "takes_context", "run_after", "delay", "atomic", "backend"}


@pytest.mark.skipif(
    (6, 0) <= django.VERSION < (6, 1), reason="Django 6.0's task() knows its own options only"
)
def test_every_option_through_the_apis_own_decorator() -> None:
    assert {f.name for f in fields(PgQueueTask)} == {*EVERYTHING, *UNNAMED}, (
        "a new option is to be tried here"
    )
    assert THE_APIS(**EVERYTHING)(tasks.ok.func) == task(**EVERYTHING)(tasks.ok.func)
    bare = THE_APIS(tasks.ok.func)
    assert bare == tasks.ok
    assert bare.using(**EVERYTHING) == task(**EVERYTHING)(tasks.ok.func)
    assert THE_APIS(atomic=True)(tasks.ok.func).atomic is True
    with pytest.raises(InvalidTask, match="max_attempts"):
        THE_APIS(max_attempts=0)(tasks.ok.func)


@pytest.mark.skipif(
    not (6, 0) <= django.VERSION < (6, 1),
    reason="elsewhere it takes all options",
)
def test_djangos_decorator_makes_our_tasks_and_using_takes_every_option() -> None:
    bare = THE_APIS(tasks.ok.func)
    assert bare == tasks.ok
    assert bare.using(**EVERYTHING) == task(**EVERYTHING)(tasks.ok.func)


@pytest.mark.django_db
def test_every_option_of_a_call_reaches_the_job() -> None:
    options = EVERYTHING | {"run_after": timedelta(hours=1)}
    result = tasks.ok.using(**options).enqueue(1)
    job = Job.objects.get(pk=int(result.id))
    assert (job.queue, job.priority, job.max_attempts, job.timeout) == ("emails", 7, 3, 12.5)
    assert (job.backoff_base, job.backoff_cap, job.metadata) == (1.5, 60.0, {"team": "shop"})
    assert (job.state.unique_key, job.state.status) == ("key of all", "scheduled")
    assert job.run_after - job.enqueued_at == timedelta(hours=1)
    with pytest.raises(django_pgqueue.DuplicateJob):
        tasks.ok.using(**options).enqueue(2)


# --- other backends: what test settings often have

MODULE = """
from django_pgqueue import Backoff, Snooze, task

@task
def plain(value):
    return value + 1

@task(max_attempts=3, backoff=Backoff(1.0, 2.0), timeout=5.0, discard_on=ValueError, metadata={"a": 1})
def with_options(value):
    return value * 2

@task(
    priority=5, queue_name="default", backend="default", max_attempts=3, timeout=5.0, metadata={"a": 1},
    backoff=lambda error, result: 1.0, discard_on=ValueError, retry_on=(OSError,), takes_context=False,
    unique_key=lambda value: f"key {value}", on_conflict="replace",
)
def with_every_option(value):
    return value * 3

@task
async def coroutine(value):
    return -value

@task(takes_context=True)
def with_context(context, value):
    return [context.attempt, value]

@task
def failing():
    raise KeyError("no")
"""


@pytest.fixture(params=["dummy.DummyBackend", "immediate.ImmediateBackend"])
def under_another_backend(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """A module of tasks imported under the Tasks API's Dummy or Immediate backend."""
    (tmp_path / "tasks_elsewhere.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    with override_settings(TASKS={"default": {"BACKEND": f"{OTHERS}.{request.param}"}}):
        yield importlib.import_module("tasks_elsewhere")
    del sys.modules["tasks_elsewhere"]


@pytest.mark.django_db
def test_a_decorated_module_runs_under_other_backends(under_another_backend: ModuleType) -> None:
    module = under_another_backend
    calls = [
        (module.plain, 6),
        (module.with_options, 10),
        (module.with_every_option.using(priority=0), 15),
        (
            module.plain.using(**EVERYTHING | {"queue_name": "default"}),
            6,
        ),
        (module.coroutine, -5),
        (module.with_context, [1, 5]),
        (module.plain.using(queue_name="default", priority=0), 6),
    ]
    for called, answer in calls:
        result = called.enqueue(5)
        if result.status == TaskResultStatus.SUCCESSFUL:
            assert result.return_value == answer
        else:
            assert result.status == TaskResultStatus.READY
            assert task_backends["default"].results[-1].id == result.id
    many = django_pgqueue.enqueue_many(called.bind(5) for called, _ in calls)
    assert [result.task for result in many] == [called for called, _ in calls]
    later = module.plain.using
    if task_backends["default"].supports_defer:
        assert later(run_after=timedelta(hours=1)).enqueue(5).status == TaskResultStatus.READY
    else:
        with pytest.raises(InvalidTask, match="run_after"):
            later(run_after=timedelta(hours=1))
    assert module.failing.enqueue().status in (TaskResultStatus.FAILED, TaskResultStatus.READY)


@pytest.mark.skipif(django.VERSION < (6, 1), reason="tasks can be pickled from Django 6.1 on")
def test_a_task_can_be_pickled() -> None:
    for one in (tasks.ok, tasks.mail):
        assert pickle.loads(pickle.dumps(one)) == one
