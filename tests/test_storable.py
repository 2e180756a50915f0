"""What can be stored: any text once it is made storable, and only such JSON as comes back as it was."""

import json
import math
import os
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from django_pgqueue.storable import (
    MAX_TEXT,
    check_json,
    clean_name,
    clean_text,
    dump_json,
    dump_result,
    easy_json,
    safe_str,
)

from .support import shown

# Surrogates too: st.text() leaves them out unless they are asked for.
CHARACTERS = st.characters(exclude_categories=())
TEXTS = st.text(CHARACTERS, max_size=200)
in_one_transaction = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50
)


def stored(value: Any, as_type: str) -> Any:
    """Return a value as PostgreSQL gives it back."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT %s::{as_type}", [value])
        return cursor.fetchone()[0]


# --- texts that tasks leave behind


@pytest.mark.django_db
@in_one_transaction
@given(TEXTS)
@example("\x00")
@example("\udcff\ud800 lone, \ud83d\ude00 a pair of halves")
@example("\x00\udcff" * 50)
def test_clean_text_is_stored_and_read_back(text: str) -> None:
    clean = clean_text(text)
    assert stored(clean, "text") == clean


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=200))
def test_a_text_that_can_be_stored_stays_as_it_is(text: str) -> None:
    assert clean_text(text) == text


@given(TEXTS, st.integers(min_value=1, max_value=50))
def test_a_cut_text_keeps_its_ends_and_says_how_much_is_gone(text: str, limit: int) -> None:
    clean = clean_text(text, limit)
    if len(text) <= limit:
        assert "characters cut" not in clean or "characters cut" in text
    else:
        assert f"[... {len(text) - limit} characters cut ...]" in clean
        assert clean.startswith(clean_text(text[: limit // 2]))
        assert clean.endswith(clean_text(text[len(text) - (limit - limit // 2) :]))


def test_nul_and_lone_surrogates_stay_visible() -> None:
    assert clean_text("x\x00y") == "x\\x00y"
    assert clean_text("x\udcffy") == "x\\udcffy"


def test_fifty_million_characters_are_cut_to_a_bound() -> None:
    assert MAX_TEXT < len(clean_text("x" * 50_000_000)) < MAX_TEXT + 100


@given(TEXTS, st.integers(min_value=1, max_value=300))
def test_a_clean_name_is_one_line_that_fits_its_column(text: str, limit: int) -> None:
    name = clean_name(text, limit)
    assert len(name) <= limit
    assert "\n" not in name
    name.encode()


def test_a_name_of_four_hundred_characters_fits_a_column_of_255() -> None:
    assert clean_name("E" * 400, 255) == "E" * 254 + "…"


class Hostile:
    """Cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no str")

    def __repr__(self) -> str:
        raise SystemExit("no repr")


class OnlyRepr(Hostile):
    def __repr__(self) -> str:
        return "shown by repr"


class NotText:
    def __str__(self) -> Any:
        return 5


def test_an_object_that_cannot_be_shown_is_named() -> None:
    assert safe_str(Hostile()) == "<Hostile object that cannot be shown>"
    assert safe_str(OnlyRepr()) == "shown by repr"
    assert "NotText" in safe_str(NotText())
    assert safe_str(ValueError("x")) == "x"


# --- arguments: refused, with the place named, or stored as they are

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4)
    ),
    max_leaves=10,
)


@pytest.mark.django_db
@in_one_transaction
@given(JSON)
@example([1e23, -0.0, 5e-324, 10**400, -(2**64)])
@example({"z": 1, "a": {"b": 2, "aa": 3}})
def test_accepted_json_comes_back_the_same(value: Any) -> None:
    check_json(value, "args")
    text = dump_json(value)
    assert repr(stored(text, "json")) == repr(value)


REFUSED = [
    ("a\x00b", "args", "NUL"),
    (["ok", "\x00"], r"args\[1\]", "NUL"),
    ({"k": ["\x00"]}, r"args\['k'\]\[0\]", "NUL"),
    ({"\x00": 1}, "a key of args", "NUL"),
    ("\udcff", "args", "lone surrogate"),
    ([os.fsdecode(b"\xff")], r"args\[0\]", "lone surrogate"),
    ({"\ud800": 1}, "a key of args", "lone surrogate"),
    (math.nan, "args", "nan"),
    ([1, math.inf], r"args\[1\]", "inf"),
    ({"a": {"b": -math.inf}}, r"args\['a'\]\['b'\]", "-inf"),
    ({1: "one"}, "args has the key 1", "keys are strings"),
    ({None: 1}, "args has the key None", "keys are strings"),
    (b"bytes", "args", "bytes"),
    ([{1, 2}], r"args\[0\]", "set"),
    (object(), "args", "object"),
]


@pytest.mark.parametrize(("value", "place", "reason"), REFUSED, ids=shown)
def test_refused_json_names_the_place_and_the_reason(value: Any, place: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"{place}.*{reason}"):
        check_json(value, "args")


@given(TEXTS)
def test_a_string_is_accepted_exactly_when_postgresql_can_store_it(text: str) -> None:
    try:
        check_json(text, "args")
    except ValueError:
        assert "\x00" in text or any(0xD800 <= ord(character) <= 0xDFFF for character in text)
    else:
        assert "\x00" not in text
        text.encode()


# --- results: kept, because the work is done


@pytest.mark.django_db
@in_one_transaction
@given(TEXTS)
@example("\x00")
@example("\ud800")
@example("plain \udcff and \x00 and ü")
def test_a_result_of_any_text_is_stored_and_read_back(text: str) -> None:
    written = dump_result([text, {text: text}])
    raw = stored(stored_text(written), "text")
    assert json.loads(raw) == json.loads(json.dumps([text, {text: text}]))


def stored_text(text: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::json::text", [text])
        return cursor.fetchone()[0]


@pytest.mark.parametrize("value", [math.nan, math.inf, [math.nan], {"a": -math.inf}])
def test_a_result_that_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        dump_result(value)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", 1j])
def test_a_result_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        dump_result(value)


@pytest.mark.django_db
def test_what_jsonb_would_lose_is_the_reason_for_json() -> None:
    """If this fails, PostgreSQL has changed and the columns' type may be thought about again."""
    assert repr(stored("1e23", "jsonb")) != repr(1e23)
    with pytest.raises(Exception, match="Unicode escape"):
        stored('"\\u0000"', "jsonb")


@given(st.lists(st.one_of(st.integers(), st.integers().map(lambda n: n * 10**18), st.booleans(), st.none())))
@example([10**18, -(10**18)])
@example([True, 1])
@example([10**5000])
def test_easy_arguments_come_out_as_the_encoder_writes_them(values: list[Any]) -> None:
    try:
        expected = dump_json(values)
    except ValueError:  # a number of more digits than Python writes
        assert easy_json(values) is None
    else:
        assert easy_json(values) == expected
        named = {str(place): value for place, value in enumerate(values)}
        assert easy_json(named) == dump_json(named)
