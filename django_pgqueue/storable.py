"""Makes any Python value storable in PostgreSQL text and json columns, or says why it is not.

Two directions.  What a caller hands in is *refused* when it cannot be stored as it is
(``check_json``): nothing is lost silently.  What a task leaves behind (texts of errors) is
*made* storable (``clean_text``): writing down an outcome must never fail for what is in it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

# Two days from the ends of Python's calendar: every session's time zone can show these times.
EARLIEST, LATEST = datetime(1, 1, 3), datetime(9999, 12, 29)  # noqa: DTZ001 - compared whatever the zone
MAX_TEXT = 64 * 1024
"""Characters kept of a message or traceback."""


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """Return ``text`` without NUL and lone surrogates, cut in the middle to ``limit`` characters."""
    if len(text) > limit:
        mark = f"\n[... {len(text) - limit} characters cut ...]\n"
        head = limit // 2
        text = text[:head] + mark + text[len(text) - (limit - head) :]
    if "\x00" in text:
        text = text.replace("\x00", "\\x00")
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def clean_name(text: str, limit: int) -> str:
    """Return a one-line name that fits a column of ``limit`` characters."""
    text = clean_text(text, limit=max(limit * 4, 64)).replace("\n", " ")
    return text if len(text) <= limit else text[: limit - 1] + "…"


def safe_str(value: object) -> str:
    """Return ``str(value)``, also for objects whose own conversion raises."""
    for convert in (str, repr):
        try:
            return convert(value)
        except BaseException:  # noqa: BLE001, S112 - a hostile __str__ may raise anything, SystemExit too
            continue
    return f"<{type.__dict__['__name__'].__get__(type(value))} object that cannot be shown>"


def dump_json(value: Any) -> str:
    """Return compact JSON text of an already checked value."""
    return _ENCODER.encode(value)


_LONG = 10**18


def easy_json(arguments: list[Any] | dict[str, Any]) -> str | None:
    """Return JSON text of numbers, truths and ASCII texts, as most arguments are; None of others."""
    values = arguments.values() if isinstance(arguments, dict) else arguments
    types = {type(value) for value in values}
    if types == {int} and values is arguments and max(values) < _LONG and min(values) > -_LONG:
        return f"[{','.join(map(int.__repr__, values))}]"  # ids, mostly: the encoder takes five times as long
    if not types <= ATOMS:
        return None
    try:
        text = _ENCODER.encode(arguments)
    except ValueError:
        return None
    return text if text.isascii() and "\\u0000" not in text else None


def dump_result(value: Any) -> str:
    """Return JSON text of a task's return value; raises ValueError or TypeError for what JSON cannot hold.

    NUL and lone surrogates are kept as escapes, which the ``json`` type stores as they are: the side
    effect has happened, and such a text must not turn its success into a failure.
    """
    text = _ENCODER.encode(value)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=True)
ATOMS = frozenset((str, int, float, bool, type(None)))
"""Types of which JSON's form is the value itself; a subclass may have another."""


def check_json(value: Any, where: str) -> None:
    """Raise ValueError naming ``where`` when ``value`` is not storable JSON.

    Accepts what ``normalize_json`` of Django leaves: dict, list, str, int, float, bool, None.
    Refuses NaN and infinities, NUL and lone surrogates in strings, and keys that are not strings.
    """
    if isinstance(value, str):
        _check_string(value, where)
    elif isinstance(value, bool) or value is None or isinstance(value, int):
        return
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value!r}, which JSON cannot hold")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{where} has the key {key!r}: JSON keys are strings")
            _check_string(key, f"a key of {where}")
            check_json(item, f"{where}[{key!r}]")
    elif isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        for index, item in enumerate(value):
            check_json(item, f"{where}[{index}]")
    else:
        raise ValueError(f"{where} is a {type(value).__name__}, which JSON cannot hold")


def time_problem(run_after: datetime | None, delay: float | None) -> str | None:
    """Return what is wrong with a due time, given as a time or in seconds from now, or None."""
    given: Any = run_after
    try:
        if delay is not None:
            given = f"in {delay:g} seconds"
            run_after = datetime.now(UTC) + timedelta(seconds=delay)
        if run_after is None or EARLIEST <= run_after.replace(tzinfo=None) <= LATEST:
            return None
    except OverflowError:
        pass
    return f"the time of run_after ({given}) must lie between {EARLIEST.date()} and {LATEST.date()}"


def _check_string(text: str, where: str) -> None:
    if "\x00" in text:
        raise ValueError(f"{where} holds a NUL character (\\x00), which PostgreSQL cannot store")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{where} holds a lone surrogate (\\u{ord(text[error.start]):04x}), "
                "which is not valid Unicode; decode file names with errors='replace' or pass bytes as base64"
            ) from None
