"""Whether a call fits a function, found out without calling it, and in Python's own words when it does not.

What is looked at is what Python itself will look at: not the function behind a decorator, since a decorator
may add arguments of its own.  A wrapper that takes ``*args, **kwargs`` therefore takes anything.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

_P = inspect.Parameter
_ANY_NUMBER = sys.maxsize
_CONTEXT = object()


class Shape:
    """The calls that a function takes; ``skip_first``: its first parameter is given by somebody else."""

    def __init__(self, function: Callable[..., Any], *, skip_first: bool = False) -> None:
        self._function = function
        self._given = (_CONTEXT,) if skip_first else ()
        self._signature = _signature(function)
        parameters = list(self._signature.parameters.values()) if self._signature else []
        if skip_first and parameters and parameters[0].kind in (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD):
            parameters = parameters[1:]
        self._parameters = parameters
        plain = [p for p in parameters if p.kind in (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD)]
        needs_names = any(p.kind is _P.KEYWORD_ONLY and p.default is _P.empty for p in parameters)
        self._least = _ANY_NUMBER if needs_names else sum(p.default is _P.empty for p in plain)
        takes_more = self._signature is None or any(p.kind is _P.VAR_POSITIONAL for p in parameters)
        self._most = _ANY_NUMBER if takes_more else len(plain)
        self._by_name = _names_left(plain, parameters)

    def problem(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """Return why a call with these arguments would raise TypeError, or None when it would not."""
        # Binding takes microseconds, for each job of many: it decides only where this cannot.
        if not kwargs:
            if self._least <= len(args) <= self._most:
                return None
        elif len(args) < len(self._by_name):
            allowed, required = self._by_name[len(args)]
            if kwargs.keys() <= allowed and required <= kwargs.keys():
                return None
        if self._signature is None:
            return None
        try:
            self._signature.bind(*self._given, *args, **kwargs)
        except TypeError as error:
            return str(error)
        return None

    def __str__(self) -> str:
        """The parameters of a call, without annotations: ``(order_id, *, copy=False)``."""
        if self._signature is None:
            return "(...)"
        bare = [p.replace(annotation=_P.empty) for p in self._parameters]
        return str(inspect.Signature(bare))


@lru_cache(maxsize=4096)
def shape_of(function: Callable[..., Any], skip_first: bool) -> Shape:
    """Return the shape of a task's function, once for each."""
    return Shape(function, skip_first=skip_first)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    # From Python 3.14 on an annotation is evaluated when it is asked for, and may name what only a type
    # checker imports.
    options: dict[str, Any] = {}
    if sys.version_info >= (3, 14):
        import annotationlib  # noqa: PLC0415 - does not exist before

        options["annotation_format"] = annotationlib.Format.FORWARDREF
    try:
        return inspect.signature(function, follow_wrapped=False, **options)
    except (TypeError, ValueError):  # written in C, and silent about it
        return None


def _names_left(
    plain: Sequence[inspect.Parameter], parameters: Sequence[inspect.Parameter]
) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Return, for each number of positional arguments, the names that may follow and those that must.

    Empty where a name does not say which parameter it is for: such calls are bound.
    """
    if any(p.kind in (_P.POSITIONAL_ONLY, _P.VAR_KEYWORD) for p in parameters):
        return []
    named = [p for p in parameters if p.kind is _P.KEYWORD_ONLY]
    left = [[*plain[given:], *named] for given in range(len(plain) + 1)]
    return [
        (frozenset(p.name for p in rest), frozenset(p.name for p in rest if p.default is _P.empty))
        for rest in left
    ]
