"""The rules of a task's options: each refused by its name, with the value and with what would be right.

They hold at the decorator and at ``using()``, whatever backend the alias points at.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from django.db import DEFAULT_DB_ALIAS

from .compat import DEFAULT_TASK_BACKEND_ALIAS, DEFAULT_TASK_PRIORITY, DEFAULT_TASK_QUEUE_NAME, InvalidTask
from .conf import ATTEMPTS_WORDS, LONGEST, MAX_GIVEN_KEY, is_attempts, is_number, is_time
from .retries import Backoff
from .storable import check_json

OnConflict = Literal["return", "raise", "replace"]

_DEFAULTS: Mapping[str, Any] = {
    "priority": DEFAULT_TASK_PRIORITY,
    "backend": DEFAULT_TASK_BACKEND_ALIAS,
    "queue_name": DEFAULT_TASK_QUEUE_NAME,
    "takes_context": False,
    "discard_on": (),
    "metadata": {},
    "on_conflict": "return",
    "atomic": False,
}
"""What None stands for where the default is something else."""


def normalise(task: Any) -> None:
    """Bring the options of a task under construction into one form; raises InvalidTask for a wrong one."""
    for name, default in _DEFAULTS.items():
        if getattr(task, name) is None:
            object.__setattr__(task, name, dict(default) if name == "metadata" else default)
    if isinstance(task.run_after, timedelta):  # what Django's documentation allows and its code does not
        object.__setattr__(task, "delay", task.run_after.total_seconds())
        object.__setattr__(task, "run_after", None)
    for name in ("discard_on", "retry_on"):
        object.__setattr__(task, name, _classes(name, getattr(task, name)))
    check_options(task, _RULES)
    if isinstance(task.unique_key, str) and (problem := key_problem(task.unique_key)):
        raise InvalidTask(problem)
    if problem := atomic_problem(task.atomic, task.func):
        raise InvalidTask(problem)
    try:
        check_json(task.metadata, "metadata")
    except ValueError as error:
        raise InvalidTask(f"{error}.") from None
    except RecursionError:
        raise InvalidTask("metadata is nested too deeply to be stored as JSON.") from None


def check_options(task: Any, names: Iterable[str]) -> None:
    """Raise InvalidTask for the first of these options that has a wrong value; None is right for all."""
    for name in names:
        value = getattr(task, name)
        accepts, words = _RULES[name]
        if value is not None and not accepts(value):
            raise InvalidTask(f"{name} must be {words}, not {value!r}.")


def atomic_problem(atomic: bool | str, function: Any, database: str | None = None) -> str | None:
    """Return why a task cannot be atomic, or None; ``database`` is the queue's alias, where it is known."""
    if not atomic:
        return None
    if inspect.iscoroutinefunction(function):
        return "atomic needs a plain function: Django has no transactions in coroutines."
    wanted = DEFAULT_DB_ALIAS if atomic is True else atomic
    if database is None or database == wanted:
        return None
    return (
        f"atomic={atomic!r} opens its transaction on the database {wanted!r}, and the queue lives on "
        f"{database!r}: what is written on two databases cannot commit together. atomic={database!r} says "
        "that the task writes where the queue is."
    )


def key_problem(key: Any) -> str | None:
    """Return what is wrong with a unique key, or None."""
    if not isinstance(key, str) or not key or not key.isprintable():
        return f"unique_key must be a non-empty string of printable characters, not {key!r}."
    if len(key) > MAX_GIVEN_KEY:
        return f"unique_key {key[:40]!r}… has {len(key)} characters; {MAX_GIVEN_KEY} are allowed."
    return None


def _classes(name: str, value: Any) -> tuple[type[BaseException], ...] | None:
    if value is None:
        return None
    classes = (value,) if isinstance(value, type) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(item, type) and issubclass(item, BaseException) for item in classes):
        raise InvalidTask(f"{name} must hold exception classes, not {value!r}.")
    return classes


def _is_backoff(value: Any) -> bool:
    if isinstance(value, Backoff):
        return True
    if isinstance(value, type) or not callable(value):  # Backoff itself is callable, and no policy
        return False
    try:
        inspect.signature(value, follow_wrapped=False).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # written in C, and silent about its parameters
        return True
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    # The range of a priority and the zone of a time are Django's own rules.
    "priority": (is_number, "a whole number"),
    "backend": (_is_text, "an alias of TASKS"),
    "queue_name": (_is_text, "a string"),
    "run_after": (lambda v: isinstance(v, datetime), "an aware datetime or a timedelta"),
    "takes_context": (_is_switch, "True or False"),
    "max_attempts": (is_attempts, ATTEMPTS_WORDS),
    "delay": (is_number, "a number of seconds"),
    "metadata": (lambda v: isinstance(v, Mapping), "a dictionary"),
    "timeout": (is_time, f"a number of seconds above 0 and at most {LONGEST}"),
    "backoff": (_is_backoff, "a Backoff or a callable of the exception and the task result"),
    "unique_key": (lambda v: isinstance(v, str) or callable(v), "a string or a callable of the arguments"),
    "on_conflict": (
        lambda v: _is_text(v) and v in get_args(OnConflict),
        f"one of {', '.join(get_args(OnConflict))}",
    ),
    "atomic": (lambda v: _is_switch(v) or (_is_text(v) and v), "True, False or an alias of DATABASES"),
}
DJANGOS_OWN = ("priority", "queue_name", "run_after")
"""Options that a task of Django's own class has too, and that Django takes whatever their type."""
