"""What people may see of a job: secrets by their names, by the project's word, and where they turn up."""

import re
import sys
import time
import types
from typing import Any

import pytest
from django.test import override_settings
from django.views.debug import SafeExceptionReporterFilter, get_default_exception_reporter_filter

from django_pgqueue.checks import check_alias
from django_pgqueue.redaction import Redactor

from .pages import blocks

STARS = SafeExceptionReporterFilter.cleansed_substitute
PAY = "tests.tasks.pay"


def redactor(**options: Any) -> Redactor:
    settings = {"default": {"BACKEND": "django_pgqueue.backend.PgQueueBackend", "OPTIONS": options}}
    with override_settings(TASKS=settings):
        return Redactor(PAY, "default")


def hide_amounts(value: Any, *, name: str, task_path: str) -> Any:
    return "hidden by the project" if (name, task_path) == ("amount", PAY) else value


def break_down(value: Any, *, name: str, task_path: str) -> Any:
    raise LookupError("no such policy")


# --- arguments


def test_arguments_are_hidden_by_their_names_however_they_were_passed() -> None:
    args, kwargs = redactor().arguments([17, "hunter2", "extra"], {"api_token": "abcd", "note": "for Ann"})
    assert args == [17, STARS, "extra"]  # pay(order_id, password, *more)
    assert kwargs == {"api_token": STARS, "note": "for Ann"}


def test_what_is_nested_is_hidden_by_the_keys_above_it() -> None:
    shown = redactor().value("order", {"lines": [{"sku": "A1", "auth": {"user": "ann"}}], "passwords": ["x"]})
    assert shown == {"lines": [{"sku": "A1", "auth": STARS}], "passwords": STARS}


def test_arguments_of_a_task_that_this_code_lacks_are_known_by_their_keys_only() -> None:
    assert Redactor("gone.away.task", "default").arguments(["hunter2"], {"secret": 1}) == (
        ["hunter2"],
        {"secret": STARS},
    )


def test_what_is_nested_too_deeply_to_be_looked_at_is_not_shown() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert redactor().value("order", deep) == STARS


# --- texts


def test_a_value_that_was_hidden_in_the_arguments_is_hidden_in_the_texts() -> None:
    shown = redactor()
    shown.arguments([1, "hunter2"], {"secret": {"pin": 123456, "yes": True}})
    assert shown.text("message", "cannot log in with hunter2 and 123456: True") == (
        f"cannot log in with {STARS} and {STARS}: True"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no such host: db.example.org", None),
        ("order_id=17 failed", None),
        ("GET /orders?page=2&token=abcd: 403", f"GET /orders?page=2&token={STARS}: 403"),
        ("{'password': 'it\\'s', 'user': 'ann'}", f"{{'password': '{STARS}', 'user': 'ann'}}"),
        ('{"api_key": "k-1", "user": "ann"}', f'{{"api_key": "{STARS}", "user": "ann"}}'),
        ("postgresql://ann:s3cret@db/shop is down", f"postgresql://{STARS}@db/shop is down"),
        ("sent Authorization: Bearer abcdef123456", f"sent Authorization: {STARS} {STARS}"),
        ('    connect(password="s3cret")', f'    connect(password="{STARS}")'),
        ("    connect(password=settings.PASSWORD)", None),
    ],
)
def test_texts_hide_what_is_named_in_them(text: str, expected: str | None) -> None:
    assert redactor().text("traceback", text) == (text if expected is None else expected)


def test_what_is_named_behind_another_name_is_hidden_too() -> None:
    assert redactor().text("message", "refused: password=hunter2") == f"refused: password={STARS}"


def test_a_text_of_one_long_word_takes_no_time() -> None:
    began = time.process_time()
    redactor().text("message", "x" * 200_000)
    redactor().text("message", "x-y." * 50_000)
    assert time.process_time() - began < 1.0


def test_json_that_was_cut_is_treated_as_a_text() -> None:
    assert redactor().json_text("metadata", '{"user": "ann", "pass') == '{"user": "ann", "pass'
    assert redactor().json_text("metadata", '{"password": "abc", "more": [1, 2') == (
        f'{{"password": "{STARS}", "more": [1, 2'
    )
    assert redactor().json_text("metadata", '{"password": "abc", "more": 1}') == (
        f'{{"password": "{STARS}", "more": 1}}'
    )
    assert redactor().json_text("return_value", None) is None


# --- the project's word


def test_the_projects_filter_of_error_reports_decides() -> None:
    get_default_exception_reporter_filter.cache_clear()
    try:
        with override_settings(DEFAULT_EXCEPTION_REPORTER_FILTER="tests.test_redaction.Own"):
            assert redactor().value("iban", "DE02") == "(not shown)"
            assert redactor().value("password", "abc") == "abc"
    finally:
        get_default_exception_reporter_filter.cache_clear()


class Own(SafeExceptionReporterFilter):
    cleansed_substitute = "(not shown)"
    hidden_settings = re.compile("iban")


def test_the_projects_function_hides_more() -> None:
    shown = redactor(redact="tests.test_redaction.hide_amounts")
    assert shown.arguments([1], {"amount": 9900, "note": "x"})[1] == {
        "amount": "hidden by the project",
        "note": "x",
    }
    assert shown.text("message", "9900 is too much") == f"{STARS} is too much"


def test_the_function_of_the_docs_shows_the_end_of_an_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (block,) = blocks("function")
    module = types.ModuleType("privacy_of_the_docs")
    exec(block.compiled(), vars(module))
    monkeypatch.setitem(sys.modules, "privacy_of_the_docs", module)
    shown = redactor(redact="privacy_of_the_docs.redact")
    assert shown.arguments([1], {"iban": "DE0212345678", "note": "x"})[1] == {"iban": "…5678", "note": "x"}


@pytest.mark.parametrize("path", [f"{__name__}.break_down", f"{__name__}.nobody", "no.module"])
def test_a_function_that_fails_shows_nothing(path: str, caplog: pytest.LogCaptureFixture) -> None:
    shown = redactor(redact=path)
    assert shown.arguments([1], {"note": "for Ann"}) == ([STARS], {"note": STARS})
    assert shown.text("message", "for Ann") == STARS
    assert "redaction_failed" in caplog.text


@pytest.mark.parametrize("path", ["tests.test_redaction.nobody", "no.module", "tests.test_redaction.STARS"])
def test_a_function_that_cannot_be_loaded_is_named_by_a_check(path: str) -> None:
    messages = check_alias("default", {"OPTIONS": {"redact": path}})
    assert [(m.id, path in m.msg) for m in messages] == [("django_pgqueue.E002", True)]
    assert check_alias("default", {"OPTIONS": {"redact": "tests.test_redaction.hide_amounts"}}) == []
