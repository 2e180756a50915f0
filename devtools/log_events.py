"""Reads the queue's log events out of its source, so that the documentation can be compared with them.

Every event is a call of ``log(event, level, field=...)``.  The name must be readable from the source: a
string, or a variable of the same function that holds one of several strings.  Fields that come from a
dictionary (``**fields``) are followed to the literal keys of that dictionary.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from devtools.environments import ROOT

PACKAGE = ROOT / "django_pgqueue"
LOGGERS = ("log", "log_receiver_error")
NOT_FIELDS = {"exc_info", "level"}


class Unreadable(ValueError):
    """The source does not say which event or level a call logs; the message says where."""


@dataclass(slots=True)
class Event:
    """What the source says of one event, over all the places that log it."""

    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)


def events() -> dict[str, Event]:
    """Return every event that the package logs; raises Unreadable."""
    found: dict[str, Event] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ast.parse(path.read_text())
        for function in _functions(module):
            for call in _calls(function):
                place = f"{path.relative_to(ROOT)}:{call.lineno}"
                for name in _names(call, function, place):
                    event = found.setdefault(name, Event())
                    event.levels |= _levels(call, function, place)
                    event.fields |= _fields(call, function, module)
    return found


def _functions(module: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name != "log":
            yield node


def _calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOGGERS:
            yield node


def _names(call: ast.Call, function: ast.FunctionDef, place: str) -> set[str]:
    if isinstance(call.func, ast.Name) and call.func.id == "log_receiver_error":
        return {"receiver_failed"}
    names = _strings(call.args[0], function)
    if not names:
        raise Unreadable(f"{place}: the event {ast.unparse(call.args[0])} is not readable from the source")
    return names


def _levels(call: ast.Call, function: ast.FunctionDef, place: str) -> set[str]:
    if isinstance(call.func, ast.Name) and call.func.id == "log_receiver_error":
        return {"ERROR"}
    if len(call.args) < 2:
        return {"INFO"}
    levels = {
        node.attr
        for source in _values(call.args[1], function)
        for node in ast.walk(source)
        if isinstance(node, ast.Attribute) and node.attr.isupper()
    }
    if not levels:
        raise Unreadable(f"{place}: the level {ast.unparse(call.args[1])} is not readable from the source")
    return levels


def _fields(call: ast.Call, function: ast.FunctionDef, module: ast.Module) -> set[str]:
    named = {keyword.arg for keyword in call.keywords if keyword.arg} - NOT_FIELDS
    spread = [keyword.value for keyword in call.keywords if keyword.arg is None]
    if isinstance(call.func, ast.Name) and call.func.id == "log_receiver_error":
        named |= {"signal", "receiver"}
    return named | {key for value in spread for key in _keys(value, function, module)}


def _keys(value: ast.expr, function: ast.FunctionDef, module: ast.Module) -> set[str]:
    """Return the literal keys of a dictionary, followed through variables, ``|`` and the module's methods."""
    if isinstance(value, ast.Dict):
        return {
            key.value for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }
    if isinstance(value, ast.BinOp):
        return _keys(value.left, function, module) | _keys(value.right, function, module)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return {
            key
            for other in _functions(module)
            if other.name == value.func.attr
            for node in ast.walk(other)
            if isinstance(node, ast.Return) and node.value is not None
            for key in _keys(node.value, other, module)
        }
    if isinstance(value, ast.Name):
        return {key for source in _assigned(value.id, function) for key in _keys(source, function, module)}
    return set()


def _strings(value: ast.expr, function: ast.FunctionDef) -> set[str]:
    return {
        part.value
        for source in _values(value, function)
        for part in _outcomes(source)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def _values(value: ast.expr, function: ast.FunctionDef) -> list[ast.expr]:
    return _assigned(value.id, function) if isinstance(value, ast.Name) else [value]


def _outcomes(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.IfExp):
        return _outcomes(value.body) + _outcomes(value.orelse)
    return [value]


def _assigned(name: str, function: ast.FunctionDef) -> list[ast.expr]:
    return [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]
