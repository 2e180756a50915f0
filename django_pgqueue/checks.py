"""System checks: every wrong setting is named with an id and a hint before anything runs.

django_pgqueue.E001  unknown option            django_pgqueue.E005  database is not PostgreSQL
django_pgqueue.E002  option of a wrong value   django_pgqueue.E006  alias not in DATABASES
django_pgqueue.E003  options that clash        django_pgqueue.E007  rangefilter not installed
django_pgqueue.E004  bad queue name            django_pgqueue.E008  models routed to another database
django_pgqueue.W001  enqueueing joins no transaction of the default database
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import DEFAULT_DB_ALIAS, connections, router
from django.utils.module_loading import import_string

from .conf import MAX_QUEUE_NAME, Options
from .routers import APP, queue_databases
from .storable import check_json


def check_admin(**kwargs: Any) -> list[CheckMessage]:
    """Check that what the admin pages need is installed."""
    if apps.is_installed("django.contrib.admin") and not apps.is_installed("rangefilter"):
        return [
            Error(
                'The admin of django_pgqueue needs "rangefilter" in INSTALLED_APPS.',
                hint='Add "rangefilter" (django-admin-rangefilter) to INSTALLED_APPS.',
                id="django_pgqueue.E007",
            )
        ]
    return []


def check_alias(alias: str, params: Mapping[str, Any]) -> list[CheckMessage]:
    """Return what is wrong with one alias of TASKS."""
    options, problems = Options.parse(params.get("OPTIONS") or {})
    messages: list[CheckMessage] = [
        Error(f"TASKS[{alias!r}]: {p.message}", hint=p.hint, id=f"django_pgqueue.E00{p.number}")
        for p in problems
    ]
    messages += _check_queue_names(alias, params.get("QUEUES", ["default"]))
    messages += _check_database(alias, options.database)
    messages += _check_redact(alias, options.redact)
    return messages


def load_hook(path: str) -> Callable[..., Any]:
    """Return the function at a dotted path; raises TypeError for what cannot be called.

    Raises ImportError where there is none, and whatever its module raises.
    """
    hook: Any = import_string(path)
    if not callable(hook):
        raise TypeError(f"{path} is {hook!r}, which cannot be called")
    return cast("Callable[..., Any]", hook)


def _check_redact(alias: str, path: str | None) -> Iterable[CheckMessage]:
    if path is None:
        return
    try:
        load_hook(path)
    except Exception as error:  # noqa: BLE001 - whatever its module raises
        yield Error(
            f"TASKS[{alias!r}]: redact names {path!r}, which cannot be loaded: {error}",
            hint="Name a function(value, *, name, task_path) that returns what may be shown. Until then all "
            "arguments and texts are hidden.",
            id="django_pgqueue.E002",
        )


def _check_queue_names(alias: str, queues: Any) -> Iterable[CheckMessage]:
    hint = "For example ['default', 'emails']; [] accepts any queue."
    wrong = queues_problem(queues)
    if wrong:
        yield Error(f"TASKS[{alias!r}]: {wrong}", hint=hint, id="django_pgqueue.E004")
        return
    for name in queues:
        problem = queue_name_problem(name)
        if problem:
            yield Error(f"TASKS[{alias!r}]: {problem}", hint=hint, id="django_pgqueue.E004")


def queues_problem(queues: Any) -> str | None:
    """Return what is wrong with a value of QUEUES as a whole, or None; its names are checked one by one."""
    if isinstance(queues, str):
        return f"QUEUES is {queues!r} and must be a list of names: [{queues!r}]."
    if not isinstance(queues, (list, tuple, set, frozenset)):
        return f"QUEUES is {queues!r} and must be a list of names."
    return None


def queue_name_problem(name: Any) -> str | None:
    """Return what is wrong with a queue's name, or None."""
    if not isinstance(name, str) or not name.strip():
        return f"the queue name {name!r} is not a non-empty string."
    if len(name) > MAX_QUEUE_NAME:
        return f"the queue name {name[:40]!r}… has {len(name)} characters; {MAX_QUEUE_NAME} are allowed."
    if "," in name or name != name.strip():
        return f"the queue name {name!r} has a comma or outer spaces, which --queues could not name."
    try:
        check_json(name, "the queue name")
    except ValueError as error:
        return f"{error}."
    return None


def _check_database(alias: str, database: str) -> Iterable[CheckMessage]:
    if database not in settings.DATABASES:
        yield Error(
            f"TASKS[{alias!r}]: database {database!r} is not in DATABASES.",
            hint=f"Choose one of {', '.join(sorted(settings.DATABASES))}.",
            id="django_pgqueue.E006",
        )
        return
    vendor = connections[database].vendor
    if vendor != "postgresql":
        yield Error(
            f"TASKS[{alias!r}]: the database {database!r} is {vendor}; django_pgqueue needs PostgreSQL.",
            hint="Point OPTIONS['database'] at a PostgreSQL alias.",
            id="django_pgqueue.E005",
        )
        return
    yield from _check_routing(alias, database)


def _check_routing(alias: str, database: str) -> Iterable[CheckMessage]:
    hint = "Add 'django_pgqueue.routers.QueueRouter' to DATABASE_ROUTERS."
    routed = router.db_for_write(apps.get_model(APP, "Job"))
    if routed not in queue_databases():
        yield Error(
            f"TASKS[{alias!r}]: database is {database!r}, but the models are routed to {routed!r}.",
            hint=hint,
            id="django_pgqueue.E008",
        )
    elif not router.allow_migrate(database, APP):
        yield Error(
            f"TASKS[{alias!r}]: database is {database!r}, but a router keeps the tables out of it.",
            hint=hint,
            id="django_pgqueue.E008",
        )
    elif database != DEFAULT_DB_ALIAS:
        yield Warning(
            f"TASKS[{alias!r}]: the queue lives on {database!r}: a job is not part of a transaction on "
            f"{DEFAULT_DB_ALIAS!r}, and stays when that one is rolled back.",
            hint="Enqueue in transaction.on_commit(), or silence this warning when you know.",
            id="django_pgqueue.W001",
        )
