"""The reference of the public API, from signatures and docstrings: the generated part of docs/api.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any

SECTIONS = {
    "Tasks": ("django_pgqueue", ["task", "PgQueueTask", "Call", "enqueue_many", "Backoff"]),
    "What a task may raise": ("django_pgqueue", ["Retry", "Snooze", "Cancel"]),
    "What a task may get": ("django_pgqueue", ["TaskTimeout", "LeaseLost"]),
    "The context of a task": ("django_pgqueue.execution", ["JobContext"]),
    "Results": ("django_pgqueue.results", ["JobResult", "Progress"]),
    "Errors of enqueueing": ("django_pgqueue.exceptions", ["InvalidArguments", "DuplicateJob"]),
    "The backend": ("django_pgqueue.backend", ["PgQueueBackend"]),
    "The manager": ("django_pgqueue.managers", ["JobManager"]),
    "The manager, on jobs that a worker holds": ("django_pgqueue.holding", ["HeldJobs"]),
    "The router": ("django_pgqueue.routers", ["QueueRouter"]),
    "The test kit": (
        "django_pgqueue.testing",
        [
            *("run_jobs", "arun_jobs", "JobRun", "RanJob", "TooManyJobs", "forward_time"),
            *("assert_enqueued", "assert_enqueues", "assert_not_enqueued", "enqueued_jobs", "Like"),
            *("worker_dies", "Crash", "WorkerDied", "run_worker", "WorkerProcess", "WorkerFailed"),
        ],
    ),
}
"""Title of a section: the module and the public names in it."""


def api_reference() -> str:
    """Return all sections in Markdown."""
    return "\n\n".join(block for title in SECTIONS for block in _section(title))


def _section(title: str) -> Iterator[str]:
    module_name, names = SECTIONS[title]
    module = import_module(module_name)
    yield f"## {title}"
    for name in names:
        thing = getattr(module, name)
        yield f"### `{module_name}.{name}{_signature(thing)}`"
        yield _text(thing)
        if inspect.isclass(thing) and (members := "\n".join(_members(thing))):
            yield members


def _members(cls: type) -> Iterator[str]:
    if is_dataclass(cls):
        yield from _own_fields(cls)
    for name, member in vars(cls).items():
        if name.startswith("_") or isinstance(member, type):
            continue
        if isinstance(member, property):
            yield f"- `{name}`: {_text(member, one_line=True)}"
        elif inspect.isfunction(member):
            prefix = "await " if inspect.iscoroutinefunction(member) else ""
            yield f"- `{prefix}{name}{_signature(member)}`: {_text(member, one_line=True)}"


def _own_fields(cls: Any) -> Iterator[str]:
    own = cls.__annotations__
    for field in fields(cls):
        if field.name in own:
            default = "" if field.default is MISSING else f" = `{field.default!r}`"
            yield f"- `{field.name}`{default}"


def _text(thing: Any, *, one_line: bool = False) -> str:
    text = inspect.getdoc(thing) or ""
    text = re.sub(r"``([^`]*)``", r"`\1`", text)
    return " ".join(text.split()) if one_line else text


def _signature(thing: Any) -> str:
    if inspect.isclass(thing) and (is_dataclass(thing) or issubclass(thing, tuple) or not _own_init(thing)):
        return ""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in signature.parameters.values()
        if p.name not in ("self", "connection")
    ]
    shown = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    return shown if len(shown) < 100 else "(...)"


def _own_init(cls: type) -> bool:
    return "__init__" in vars(cls)
