"""Settings: every wrong one is named by a system check with an id and a hint, and none of them is a crash."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.test import override_settings

from django_pgqueue import conf, task
from django_pgqueue.backend import PgQueueBackend
from django_pgqueue.checks import check_admin, check_alias, queue_name_problem
from django_pgqueue.compat import task_backends
from django_pgqueue.conf import MAX_QUEUE_NAME, Options
from django_pgqueue.models import Job

from .support import shown
from .tasks import ok


def messages(options: Any = None, **params: Any) -> list[CheckMessage]:
    return check_alias("default", {"OPTIONS": options, **params})


def ids(options: Any = None, **params: Any) -> list[str]:
    found = messages(options, **params)
    assert all(message.hint for message in found), "every message says what to do"
    assert all("default" in message.msg for message in found), "every message says where"
    return [message.id.removeprefix("django_pgqueue.") for message in found]


# --- options


def test_no_options_and_the_defaults_spelled_out_are_fine() -> None:
    assert ids(None) == ids({}) == []
    assert ids(dataclasses.asdict(Options())) == []


def test_an_unknown_option_is_named_and_the_known_ones_are_listed() -> None:
    (message,) = messages({"leese": 5})
    assert (message.id, "'leese'" in message.msg) == ("django_pgqueue.E001", True)
    assert "lease" in message.hint


WRONG: dict[str, list[Any]] = {
    "database": [None, 5, ["default"]],
    "lease": [0, -1, "30", None, True, float("nan"), float("inf"), 1e300, 10**400],
    "heartbeat": [0, -1, "10", None, False, float("nan")],
    "poll_interval": [0, -0.1, "1", None, float("inf")],
    "notify": [1, 0, "yes", None],
    "prepared_statements": [1, None, "on"],
    "max_attempts": [0, -1, 2.0, "5", None, True, 10**6 + 1],
    "backoff_base": [-1, "1", None, float("nan"), True],
    "backoff_cap": [-1, "1", None, float("inf"), 10**400],
    "timeout": [0, -1, "60", True, float("nan")],
    "max_argument_bytes": [0, -1, 1e6, "1", None],
    "max_result_bytes": [0, -1, 1023, 1e6, "1", None],
    "log_tail_bytes": [-1, 1, 1023, 100_001, 2048.0, "2048", None, True, False],
    "log_tail_level": ["info", 20, None, "LOUD", []],
    "redact": [5, "redact", "shop.privacy.", "a b.c", True],
    "unknown_task_patience": [-1, "1", None],
    "processes": [0, 1.5, "2", None, True],
    "threads": [0, -4, "4", None],
    "coroutines": [0, None, "32"],
    "grace": [-1, None, "25"],
    "release": [None, 7, "x" * 129, "two\nlines"],
    "retention": [
        7,
        "7",
        None,
        {"running": 1},
        {"dead": -1},
        {"dead": "1"},
        {"dead": float("nan")},
        {5: 5},
        {"queues": 7},
        {"queues": {"q": 7}},
        {"queues": {"q": {"running": 1}}},
        {"queues": {"q": {"dead": -1}}},
        {"queues": {7: {}}},
    ],
    "task_aliases": [None, ["a"], {"a": 5}, {5: "a"}],
}


def test_every_option_is_tried() -> None:
    assert set(WRONG) == {field.name for field in dataclasses.fields(Options)}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]])
def test_an_option_of_a_wrong_value_is_named_with_its_value(name: str, value: Any) -> None:
    (message,) = messages({name: value})
    assert message.id == "django_pgqueue.E002"
    assert name in message.msg
    shown = value if not isinstance(value, dict) else next(iter(value.values()))
    assert repr(shown) in message.msg or repr(next(iter(value))) in message.msg
    options, _ = Options.parse({name: value})
    assert options == Options(), "a wrong value falls back to the default"


@pytest.mark.parametrize("options", [["lease"], "lease", 5, {"lease"}], ids=shown)
def test_options_of_another_type_are_an_error_and_not_a_crash(options: Any) -> None:
    assert ids(options) == ["E002"]
    assert PgQueueBackend("default", {"OPTIONS": options}).settings == Options()


def test_all_problems_are_named_at_once() -> None:
    assert sorted(ids({"leese": 1, "threads": 0, "grace": -1}, QUEUES="emails")) == [
        "E001",
        "E002",
        "E002",
        "E004",
    ]


# --- options that clash


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"lease": 20.0, "heartbeat": 10.0}, ("heartbeat (10 s)", "lease (20 s)")),
        ({"lease": 10.0, "heartbeat": 10.0}, ("heartbeat (10 s)", "lease (10 s)")),
        ({"lease": 10.0, "heartbeat": 30.0}, ("heartbeat (30 s)", "lease (10 s)")),
        ({"lease": 2.0}, ("heartbeat (10 s)", "lease (2 s)")),
        ({"lease": 30.0, "poll_interval": 60.0}, ("poll_interval (60 s)", "lease (30 s)")),
        ({"backoff_base": 10.0, "backoff_cap": 5.0}, ("backoff_base (10 s)", "backoff_cap (5 s)")),
    ],
    ids=str,
)
def test_options_that_clash_are_named_both_with_their_values(
    options: dict[str, float], named: tuple[str, str]
) -> None:
    (message,) = messages(options)
    assert message.id == "django_pgqueue.E003"
    assert all(words in message.msg for words in named)
    assert message.hint


def test_a_heartbeat_below_half_the_lease_is_fine() -> None:
    assert ids({"lease": 3.0, "heartbeat": 1.4, "poll_interval": 3.0}) == []


# --- retention


def test_retention_is_merged_with_the_defaults() -> None:
    options, problems = Options.parse({"retention": {"dead": None, "succeeded": 60}})
    assert problems == []
    assert options.retention == {"dead": None, "succeeded": 60, "cancelled": 7 * conf.DAY}


# --- queues


@pytest.mark.parametrize("queues", ["emails", 5, {"emails": 1}, None])
def test_queues_of_another_type_is_an_error(queues: Any) -> None:
    assert ids(QUEUES=queues) == ["E004"]


@pytest.mark.parametrize(
    "queues", [[], ["default"], ("a", "b"), {"a"}, frozenset(["a"]), ["Ünï", "a.b-c_d", "*"]]
)
def test_queues_that_are_fine(queues: Any) -> None:
    assert ids(QUEUES=queues) == []


@pytest.mark.parametrize(
    ("queues", "said"),
    [
        ("emails", "QUEUES is 'emails' and must be a list of names: ['emails']"),
        (5, "QUEUES is 5 and"),
        (None, "QUEUES is None"),
        ([["emails"]], "the queue name ['emails']"),
    ],
    ids=shown,
)
def test_queues_of_another_type_are_what_enqueue_complains_about(queues: Any, said: str) -> None:
    wrong = {"default": {**settings.TASKS["default"], "QUEUES": queues}}
    with override_settings(TASKS=wrong):
        for act in (lambda: ok.enqueue(), lambda: ok.using(queue_name="emails"), lambda: task(ok.func)):
            with pytest.raises(ImproperlyConfigured, match=re.escape(f"TASKS['default']: {said}")):
                act()


BAD_NAMES = ["", " ", "a,b", " a", "a ", "\ta", "x" * (MAX_QUEUE_NAME + 1), "a\x00", "\udcff", 5, None]


@pytest.mark.parametrize("name", BAD_NAMES, ids=shown)
def test_a_bad_queue_name_is_an_error_that_names_it(name: Any) -> None:
    (message,) = messages(QUEUES=["default", name])
    assert message.id == "django_pgqueue.E004"
    assert queue_name_problem(name) in message.msg


def test_the_longest_name_is_fine() -> None:
    assert queue_name_problem("ü" * MAX_QUEUE_NAME) is None


# --- databases


def test_an_alias_that_is_not_in_databases_is_an_error_that_lists_those_that_are() -> None:
    (message,) = messages({"database": "jobs"})
    assert (message.id, message.hint) == ("django_pgqueue.E006", "Choose one of default.")


@pytest.fixture(params=["sqlite3", "dummy"])
def other_vendor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An alias `other` on another database than PostgreSQL; its vendor."""
    engine = request.param
    other = {**connections.settings["default"], "ENGINE": f"django.db.backends.{engine}", "NAME": ":memory:"}
    databases = {**connections.settings, "other": other}
    monkeypatch.setattr(connections, "_settings", databases)
    monkeypatch.setitem(connections.__dict__, "settings", databases)
    monkeypatch.setattr(settings, "DATABASES", databases)
    yield connections["other"].vendor
    del connections["other"]


def test_another_vendor_is_an_error_and_not_a_crash(other_vendor: str) -> None:
    (message,) = messages({"database": "other"})
    assert message.id == "django_pgqueue.E005"
    assert "PostgreSQL" in message.msg
    assert message.hint


def test_enqueue_on_another_vendor_names_alias_vendor_and_what_to_do(other_vendor: str) -> None:
    said = f"'other' is {other_vendor}; django_pgqueue needs PostgreSQL.*OPTIONS"
    there = {"default": {**settings.TASKS["default"], "OPTIONS": {"database": "other"}}}
    with override_settings(TASKS=there):
        for act in (
            lambda: ok.enqueue(1),
            lambda: ok.enqueue_many([(1,), (2,)]),
            lambda: ok.using(unique_key="k").enqueue(1),
            lambda: ok.get_result("1"),
            lambda: Job.objects.db_manager("other").cancel([1]),
            lambda: Job.objects.db_manager("other").status_counts(),
        ):
            with pytest.raises(ImproperlyConfigured, match=said):
                act()


def test_enqueue_on_an_alias_that_is_not_there_names_it() -> None:
    nowhere = {"default": {**settings.TASKS["default"], "OPTIONS": {"database": "jobs"}}}
    with (
        override_settings(TASKS=nowhere),
        pytest.raises(ImproperlyConfigured, match="'jobs' is not in DATABASES"),
    ):
        ok.enqueue(1)


# --- the admin's needs


def test_rangefilter_missing_beside_the_admin_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_admin() == []
    installed = apps.is_installed
    monkeypatch.setattr(apps, "is_installed", lambda name: name != "rangefilter" and installed(name))
    (message,) = check_admin()
    assert (message.id, "rangefilter" in message.hint) == ("django_pgqueue.E007", True)


def test_without_the_admin_rangefilter_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apps, "is_installed", lambda name: False)
    assert check_admin() == []


# --- through Django's own check command

BACKEND = {"BACKEND": conf.BACKEND_PATH}


def found_by_django() -> list[str]:
    return sorted(message.id for message in run_checks() if str(message.id).startswith("django_pgqueue."))


def test_djangos_checks_report_each_problem_of_each_alias_once() -> None:
    tasks = {
        "default": {**BACKEND, "OPTIONS": {"leese": 1}},
        "other": {**BACKEND, "QUEUES": ["a,b"], "OPTIONS": {"heartbeat": 40.0}},
    }
    with override_settings(TASKS=tasks):
        assert found_by_django() == ["django_pgqueue.E001", "django_pgqueue.E003", "django_pgqueue.E004"]


def test_the_settings_of_these_tests_are_fine() -> None:
    assert found_by_django() == []


def test_a_backend_with_wrong_options_can_be_made_and_has_the_defaults() -> None:
    """Whatever is wrong must reach the checks; a crash before them would say less."""
    with override_settings(TASKS={"default": {**BACKEND, "OPTIONS": {"lease": "soon"}}}):
        assert task_backends["default"].settings == Options()
