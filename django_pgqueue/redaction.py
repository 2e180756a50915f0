"""What of a job may be shown to people: its arguments, results and texts, less what must stay secret.

The rows keep what they were given, since the task needs it; whatever shows them asks here first.  Secret is
what Django's own error reports take for it (``DEFAULT_EXCEPTION_REPORTER_FILTER``, whose ``hidden_settings``
names passwords, tokens, keys and the like), by the name of an argument, of a key in it, or before ``=`` or
``:`` in a text; and what the project's own function in ``OPTIONS["redact"]`` hides.  A value that was hidden
in the arguments is hidden in the job's texts too.  Never raises: what cannot be looked at is not shown.
"""

import inspect
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from django.views.debug import get_default_exception_reporter_filter

from .checks import load_hook
from .events import log
from .resolving import resolve_task

Hook = Callable[..., Any]
"""``(value, *, name, task_path) -> value``: what is shown in place of a value."""

_P = inspect.Parameter
LEAST_SECRET = 4
"""Characters: shorter values are not looked for in texts, where they would hide half of the words."""
_CREDENTIALS_IN_URL = re.compile(r"(?<=://)[^/\s:@'\"]*:[^/\s@'\"]+(?=@)")
_AUTHORIZATION = re.compile(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9+/=._~-]{6,}")
_QUOTED = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""
# A name begins where a word does and has an end: else a text of one long word is read from each letter on.
_NAMED = re.compile(
    rf"""(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{{0,200}}+)(?P<sign>['"]?\s*[:=]\s*)(?P<value>{_QUOTED}|[^\s,;&)}}\]'"]*[^\s,;:.&)}}\]'"])"""
)


class Redactor:
    """Shows what may be shown of one job; ``alias`` is that of its backend in TASKS."""

    def __init__(self, task_path: str, alias: str) -> None:
        self._task_path = task_path
        self._filter: Any = get_default_exception_reporter_filter()
        self._hook = hook_of(alias)
        self._secrets: set[str] = set()

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments as they may be shown; positional ones are known by the function's names."""
        names = [*self._parameters[: len(args)], *[""] * max(len(args) - len(self._parameters), 0)]
        shown = [self.value(name, value) for name, value in zip(names, args, strict=True)]
        return shown, {name: self.value(name, value) for name, value in kwargs.items()}

    def value(self, name: str, value: Any) -> Any:
        """Return a value of JSON's types as it may be shown under this name."""
        try:
            shown = self._filter.cleanse_setting(name, value)
            shown = self._ask_hook(name, shown)
        except RecursionError:
            shown = self.substitute
        if shown != value:
            self._secrets |= set(_hidden(value, shown))
        return shown

    def text(self, name: str, text: str) -> str:
        """Return a text (a message, a traceback, log lines) as it may be shown.

        Give it the arguments first: what was hidden there is looked for here.
        """
        if not text:
            return text
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, self.substitute)
        text = _CREDENTIALS_IN_URL.sub(self.substitute, text)
        text = _AUTHORIZATION.sub(rf"\1\2{self.substitute}", text)
        text = "\n".join(self._line(line) for line in text.split("\n"))
        shown = self._ask_hook(name, text)
        return shown if isinstance(shown, str) else self.substitute

    def json_text(self, name: str, text: str | None) -> str | None:
        """Return JSON text as it may be shown; one that was cut, and so is no JSON, is treated as a text."""
        if not text:
            return text
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.text(name, text)
        return json.dumps(self.value(name, value), ensure_ascii=False)

    @property
    def substitute(self) -> str:
        """What stands for a secret."""
        return str(self._filter.cleansed_substitute)

    @cached_property
    def _parameters(self) -> list[str]:
        try:
            task = resolve_task(self._task_path)
            positional = (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD)
            parameters = inspect.signature(task.func).parameters.values()
            names = [parameter.name for parameter in parameters if parameter.kind in positional]
        except (Exception, SystemExit):  # noqa: BLE001 - raised by a module at its import
            return []
        return names[1:] if task.takes_context else names

    def _line(self, line: str) -> str:
        # A line of code in a traceback has names and no values, but for literals.
        is_code = line.startswith("    ")

        def hide(found: re.Match[str]) -> str:
            value = found["value"]
            is_literal = value[0] in "'\""
            if not self._is_secret(found["name"]) or (is_code and not is_literal):
                # "refused: password=x": what stands there may itself name something.
                within = value if is_literal else _NAMED.sub(hide, value)
                return f"{found['name']}{found['sign']}{within}"
            quote = value[0] if is_literal else ""
            return f"{found['name']}{found['sign']}{quote}{self.substitute}{quote}"

        return _NAMED.sub(hide, line)

    def _is_secret(self, name: str) -> bool:
        shown: Any = self._filter.cleanse_setting(name, None)
        return shown is not None

    def _ask_hook(self, name: str, value: Any) -> Any:
        if self._hook is None:
            return value
        try:
            return self._hook(value, name=name, task_path=self._task_path)
        except Exception as error:  # noqa: BLE001 - a broken hook must neither show a secret nor break a page
            log("redaction_failed", logging.ERROR, task=self._task_path, name=name, error=error)
            return self.substitute


@lru_cache(maxsize=64)
def hook_of(alias: str) -> Hook | None:
    """Return the project's own function for an alias; one that cannot be loaded hides everything."""
    params = (getattr(settings, "TASKS", None) or {}).get(alias) or {}
    path = (params.get("OPTIONS") or {}).get("redact")
    if path is None:
        return None
    try:
        return load_hook(path)
    except Exception as error:  # noqa: BLE001 - whatever its module raises: the check says it to people
        log("redaction_failed", logging.ERROR, redact=path, error=error)
        return _hide_all


def _hide_all(value: Any, *, name: str, task_path: str) -> str:
    return str(get_default_exception_reporter_filter().cleansed_substitute)


def _hidden(value: Any, shown: Any) -> Iterator[str]:
    """Yield the texts in ``value`` that ``shown`` does not show any more."""
    if isinstance(value, dict) and isinstance(shown, dict):
        for name, item in value.items():
            yield from _hidden(item, shown.get(name))
    elif isinstance(value, list) and isinstance(shown, list) and len(value) == len(shown):
        for item, other in zip(value, shown, strict=True):
            yield from _hidden(item, other)
    elif value != shown:
        yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    # Not by recursion: what was hidden because it is nested too deeply comes here, too.
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            left += item.values()
        elif isinstance(item, list):
            left += item
        elif item is not None and not isinstance(item, bool) and len(str(item)) >= LEAST_SECRET:
            yield str(item)


def _forget_hooks(*, setting: str, **kwargs: Any) -> None:
    if setting == "TASKS":
        hook_of.cache_clear()


setting_changed.connect(_forget_hooks)
