"""Reads the queue's log events out of its source, so that the documentation can be compared with them.

Every event is a call of ``log(event, level, field=...)``.  What the call names must be readable from the
source: strings and dictionary literals, followed through variables, parameters and functions of the package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from devtools.environments import ROOT

PACKAGE = ROOT / "django_pgqueue"
LOGGERS = ("log", "log_receiver_error")
NOT_FIELDS = {"exc_info", "level"}
Place = tuple[ast.expr, ast.FunctionDef]
"""An expression and the function in which its names mean something."""


class Unreadable(ValueError):
    """The source does not say which event or level a call logs; the message says where."""


@dataclass(slots=True)
class Event:
    """What the source says of one event, over all the places that log it."""

    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)


def events() -> dict[str, Event]:
    """Return every event that the package logs; raises Unreadable."""
    return Source().events()


class Source:
    """The functions of the package."""

    @cached_property
    def functions(self) -> list[ast.FunctionDef]:
        """Every function and method, but the one that writes the lines."""
        modules = (ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py")))
        nodes = (node for module in modules for node in ast.walk(module))
        return [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name != "log"]

    def events(self) -> dict[str, Event]:
        """Return every event with its levels and fields; raises Unreadable."""
        found: dict[str, Event] = {}
        for function in self.functions:
            for call in _calls(function, LOGGERS):
                for name in self._names(call, function):
                    event = found.setdefault(name, Event())
                    event.levels |= self._levels(call, function)
                    event.fields |= self._fields(call, function)
        return found

    def _names(self, call: ast.Call, function: ast.FunctionDef) -> set[str]:
        if _called(call) == "log_receiver_error":
            return {"receiver_failed"}
        names = {
            value.value
            for value, _ in self._values(call.args[0], function)
            if isinstance(value, ast.Constant) and isinstance(value.value, str)
        }
        return names or _unreadable("event", call.args[0], function)

    def _levels(self, call: ast.Call, function: ast.FunctionDef) -> set[str]:
        if _called(call) == "log_receiver_error":
            return {"ERROR"}
        if len(call.args) < 2:
            return {"INFO"}
        levels = {
            value.attr
            for value, _ in self._values(call.args[1], function)
            if isinstance(value, ast.Attribute)
        }
        return levels or _unreadable("level", call.args[1], function)

    def _fields(self, call: ast.Call, function: ast.FunctionDef) -> set[str]:
        named = {keyword.arg for keyword in call.keywords if keyword.arg} - NOT_FIELDS
        spread = [keyword.value for keyword in call.keywords if keyword.arg is None]
        if _called(call) == "log_receiver_error":
            named |= {"signal", "receiver"}
        return named | {key for value in spread for key in self._keys(value, function)}

    def _keys(self, value: ast.expr, function: ast.FunctionDef) -> set[str]:
        """Return the literal keys of a dictionary."""
        keys: set[str] = set()
        for source, place in self._values(value, function):
            if isinstance(source, ast.Dict):
                keys |= {str(key.value) for key in source.keys if isinstance(key, ast.Constant)}
            elif isinstance(source, ast.BinOp):
                keys |= self._keys(source.left, place) | self._keys(source.right, place)
            elif isinstance(source, ast.Call):
                keys |= {
                    key
                    for other in self.functions
                    if other.name == _called(source)
                    for node in ast.walk(other)
                    if isinstance(node, ast.Return) and node.value is not None
                    for key in self._keys(node.value, other)
                }
        return keys

    def _values(self, value: ast.expr, function: ast.FunctionDef) -> Iterator[Place]:
        """Yield what an expression may be: both sides of a condition, what a variable was given."""
        if isinstance(value, ast.IfExp):
            yield from self._values(value.body, function)
            yield from self._values(value.orelse, function)
        elif isinstance(value, ast.Name):
            for given, place in [*_assigned(value.id, function), *self._passed(value.id, function)]:
                yield from self._values(given, place)
        else:
            yield value, function

    def _passed(self, name: str, function: ast.FunctionDef) -> Iterator[Place]:
        """Yield what callers in the package pass as a positional parameter."""
        parameters = [argument.arg for argument in function.args.args]
        if name not in parameters:
            return
        for caller in self.functions:
            for call in _calls(caller, (function.name,)):
                if parameters.index(name) < len(call.args):
                    yield call.args[parameters.index(name)], caller


def _calls(function: ast.FunctionDef, names: tuple[str, ...]) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _assigned(name: str, function: ast.FunctionDef) -> Iterator[Place]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for value in _matched(target, node.value, name):
                    yield value, function
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            for value in _matched(node.target, node.value, name):
                yield value, function


def _matched(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    """Yield what ``name`` gets when ``target`` is assigned ``value``; tuples are taken apart."""
    if isinstance(value, ast.IfExp) and isinstance(target, ast.Tuple):
        yield from _matched(target, value.body, name)
        yield from _matched(target, value.orelse, name)
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for part, given in zip(target.elts, value.elts, strict=True):
            yield from _matched(part, given, name)
    elif isinstance(target, ast.Name) and target.id == name:
        yield value


def _unreadable(what: str, value: ast.expr, function: ast.FunctionDef) -> set[str]:
    raise Unreadable(
        f"{function.name}(), line {value.lineno}: the {what} {ast.unparse(value)} is not readable here"
    )
