"""The package's shape: imports point down, SQL has one home, jobs change through the verbs, files stay small.

A module that LAYERS does not name fails the test: where it belongs is decided when it is written.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import django_pgqueue

PACKAGE = Path(django_pgqueue.__file__).parent
ROOT = PACKAGE.parent
TESTS = Path(__file__).parent

LAYERS = {
    # 0: plain Python; knows nothing of tables
    **dict.fromkeys(
        ("states", "exceptions", "retries", "conf", "storable", "errors_as_text", "records", "events"), 0
    ),
    **dict.fromkeys(("fields", "compat", "signatures", "guarded", "histograms", "retention", "selecting"), 0),
    "running": 0,
    # 1: what is said to the database, to the settings and to the callers
    **dict.fromkeys(("sql", "querying", "checks", "tasks", "task_options", "announcements", "routers"), 1),
    **dict.fromkeys(("noting", "logs"), 1),
    # 2: the verbs, the questions, and the queue's own connections
    **dict.fromkeys(("managers", "holding", "readings", "connections"), 2),
    **dict.fromkeys(("rollups", "depths", "pauses", "registry"), 2),
    **dict.fromkeys(("bulk", "listing", "repairing", "steps"), 2),
    **dict.fromkeys(("models", "operating", "durable", "waiting"), 3),
    # 4: from calls to rows and back
    **dict.fromkeys(("results", "resolving", "enqueueing"), 4),
    **dict.fromkeys(("execution", "leases", "maintenance", "wakeups", "backend", "importing"), 5),
    **dict.fromkeys(("redaction", "watching", "doctor", "carrying"), 5),
    **dict.fromkeys(("context", "stepping"), 5),
    "metrics": 6,
    "prometheus": 7,
    "worker": 6,
    **dict.fromkeys(("admin", "apps", "management", "testing", "pytest_plugin", ""), 7),
    "templatetags": 7,
}
"""Modules and sub-packages; "" is the package itself, whose names resolve on first use."""

SAYS_SQL = {"sql", "importing", "doctor"}
"""The statements of the queue, those about the table that jobs are taken over from, and advice to people."""
ASKS_SQL = {
    *("managers", "holding", "readings", "rollups", "depths", "pauses", "registry"),
    *("bulk", "listing", "repairing", "steps"),
    *("connections", "waiting", "wakeups", "worker.sleepers", "worker.engine"),
    *("enqueueing", "testing.enqueued", "testing.workers"),
    *("doctor.findings", "doctor.server", "doctor.tables", "doctor.jobs"),
}
"""Modules that may use ``sql``: the verbs and readings; those that set, listen, sleep and notify; the others
need a constant or an end of sessions. None of these but the verbs changes a job."""

VERBS = {"managers", "holding", "repairing"}
"""The modules with the verbs: nothing else may use a statement that changes a job."""

SMALL_STATEMENTS = {
    ("connections", "SET ROLE {}"),
    ("connections", "SELECT pg_backend_pid()"),
    ("worker.sleepers", "SELECT 1"),
}

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 40


@cache
def modules() -> list[str]:
    """Return the dotted names of all modules below the package, without its migrations."""
    paths = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))
    names = (".".join(part for part in path.parts if part != "__init__") for path in paths)
    return sorted(name for name in names if not name.startswith("migrations"))


def path_of(module: str) -> Path:
    base = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


@cache
def imports_of(module: str) -> set[str]:
    """Return the modules of this package that a module imports when it runs, wherever in it."""
    package = module if path_of(module).name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    for node in _run(tree_of(path_of(module))):
        if isinstance(node, ast.Import):
            found |= {_inside(alias.name) for alias in node.names if _is_ours(alias.name)}
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            if base is not None:
                names = {f"{base}.{alias.name}".lstrip(".") for alias in node.names}
                found |= {name if name in modules() else base for name in names}
    return found - {module}


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes but those beneath ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from (below for branch in node.orelse for below in (branch, *_run(branch)))
        else:
            yield node
            yield from _run(node)


def _base(node: ast.ImportFrom, package: str) -> str | None:
    if node.level == 0:
        return _inside(node.module or "") if _is_ours(node.module or "") else None
    parts = [part for part in package.split(".") if part]
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _is_ours(name: str) -> bool:
    return name.split(".")[0] == PACKAGE.name


def _inside(name: str) -> str:
    return name.partition(".")[2]


def layer_of(module: str) -> int:
    return LAYERS[module if module in LAYERS else module.split(".")[0]]


# --- layers


def test_the_layer_of_every_module_is_stated() -> None:
    unstated = {name for name in modules() if name not in LAYERS and name.split(".")[0] not in LAYERS}
    assert unstated == set(), "say in LAYERS where it belongs"


def test_every_stated_module_exists() -> None:
    assert {name for name in LAYERS if not path_of(name).exists()} == set()


def test_imports_point_down() -> None:
    upward = {
        f"{module} (layer {layer_of(module)}) imports {name} ({layer_of(name)})"
        for module in modules()
        for name in imports_of(module)
        if layer_of(name) > layer_of(module)
    }
    assert upward == set()


def test_no_two_modules_import_each_other() -> None:
    edges = {module: imports_of(module) for module in modules()}
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> None:
        assert module not in path, " -> ".join([*path, module])
        if module not in done:
            for name in edges[module]:
                walk(name, [*path, module])
            done.add(module)

    for module in edges:
        walk(module, [])


def test_importing_the_package_needs_no_settings() -> None:
    """``from django_pgqueue import task`` heads modules that are imported before anything is set up."""
    runtime = [node for node in tree_of(path_of("")).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {node.module for node in runtime if isinstance(node, ast.ImportFrom)} <= {"importlib", "typing"}


# --- one home for SQL, one way to change a job

STATEMENT = re.compile(
    r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|TRUNCATE|LISTEN|NOTIFY|LOCK|SET|CREATE|ALTER)"
    r"\s+[A-Za-z0-9{*(]"
)
CHANGING = {"save", "create", "delete", "bulk_create", "bulk_update", "get_or_create", "update_or_create"}


def _texts(module: str) -> Iterator[str]:
    """Yield the string literals of a module that are not docstrings."""
    tree = tree_of(path_of(module))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


def test_sql_is_written_in_sql_only() -> None:
    written = {(module, text) for module in modules() if not _says_sql(module) for text in _texts(module)}
    assert {pair for pair in written if STATEMENT.match(pair[1])} - SMALL_STATEMENTS == set()


def _says_sql(module: str) -> bool:
    return module.partition(".")[0] in SAYS_SQL


def test_only_those_that_need_it_use_sql() -> None:
    assert {module for module in modules() if "sql" in imports_of(module)} <= ASKS_SQL


def test_the_rooms_of_sql_are_known_to_sql_only() -> None:
    used = {
        (module, name)
        for module in modules()
        for name in imports_of(module)
        if name.startswith("sql.") and not module.startswith("sql")
    }
    assert used == set(), "use the names of the package"


def test_every_statement_is_a_name_of_the_package() -> None:
    from django_pgqueue import sql  # noqa: PLC0415 - the others are read, not imported

    rooms = [
        importlib.import_module(f"django_pgqueue.{name}") for name in modules() if name.startswith("sql.")
    ]
    statements = {
        name: text
        for room in rooms
        for name, text in vars(room).items()
        if isinstance(text, str) and not name.startswith("_") and STATEMENT.match(text)
    }
    parts = {"FENCED", "WRITE_ATTEMPT", "ANSWER"}
    assert {name: text for name, text in vars(sql).items() if name in statements} == {
        name: text for name, text in statements.items() if name not in parts
    }


def test_statements_that_change_jobs_are_used_by_the_verbs_only() -> None:
    from django_pgqueue import sql  # noqa: PLC0415 - the others are read, not imported

    tables = "|".join((sql.JOB, sql.STATE, sql.ATTEMPT))
    changes = re.compile(rf"(INSERT INTO|UPDATE|DELETE FROM) ({tables})\b")
    changing = {name for name, text in vars(sql).items() if isinstance(text, str) and changes.search(text)}
    changing.remove("EXPLAIN_CLAIM")  # which plans and does not execute
    changing -= {"MAKE_ENQUEUE_FUNCTION", "MAKE_ENQUEUE_FUNCTION_1"}  # for the migrations: this one calls it
    changing.add("ENQUEUE_ONE")
    assert len(changing) > 10
    used = {
        (module, node.attr)
        for module in modules()
        for node in ast.walk(tree_of(path_of(module)))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sql"
    }
    assert {module for module, name in used if name in changing} == VERBS
    public = {name for name in changing if not name.startswith("_")}
    assert public - {name for _, name in used} == set(), "statements that nobody uses"


def test_no_row_is_changed_past_the_verbs() -> None:
    calls = {
        (module, ast.unparse(node.func))
        for module in modules()
        for node in ast.walk(tree_of(path_of(module)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    changing = {
        (module, call)
        for module, call in calls
        if call.rpartition(".")[2] in CHANGING or (call.endswith(".update") and ".objects" in call)
    }
    assert {pair for pair in changing if not pair[1].startswith("LogEntry.objects.")} == set()


# --- sizes


def test_files_stay_small() -> None:
    lines = {module: len(path_of(module).read_text().splitlines()) for module in modules()}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_functions_stay_small() -> None:
    lines = {
        (module, node.name): node.end_lineno - node.lineno + 1
        for module in modules()
        for node in ast.walk(tree_of(path_of(module)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: count for name, count in lines.items() if count > MOST_LINES_OF_A_FUNCTION} == {}


def test_every_module_says_what_it_is() -> None:
    silent = {
        m for m in modules() if path_of(m).read_text().strip() and not ast.get_docstring(tree_of(path_of(m)))
    }
    assert silent == set()


# --- the tests themselves

MAY_SLEEP = ("waiting.py", "tasks.py")


def test_no_test_sleeps() -> None:
    """Tests wait for a fact with wait_until; only tasks, which are test data, take time."""
    sleeping = {
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if not path.name.endswith(MAY_SLEEP)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "sleep")
    }
    assert sleeping == set()


def test_no_file_names_a_machine() -> None:
    machine = re.compile(r"(?<![\w.])/(?:" + "|".join(("work", "root", r"home/\w+", r"Users/\w+")) + r")/\w")
    folders = [PACKAGE, TESTS, *(ROOT / name for name in ("devtools", "docs", "example_project", ".ci"))]
    files = [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in TEXT or folder.name == ".ci"
    ]
    naming = {
        str(path.relative_to(ROOT)) for path in files if path.is_file() and machine.search(path.read_text())
    }
    assert naming == set()


TEXT = {".py", ".md", ".html", ".css", ".js", ".toml", ".txt", ".typ", ".sh", ".yml"}
