"""The documentation says what the code does: names, defaults, flags, events and links are compared."""

import ast
import functools
import importlib
import json
import re
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands

import django_pgqueue
from devtools import docs, log_events
from devtools.environments import ROOT
from django_pgqueue import Backoff, checks, conf, exceptions, states, testing
from django_pgqueue.context import JobContext
from django_pgqueue.events import log
from django_pgqueue.tasks import PgQueueTask

from .pages import BLOCKS, PAGES, read, rows_of_tables, without_code
from .test_architecture import LAYERS

NOT_SAID = ("/root", "/work/", "/home/", "/tmp/", "localhost:")


# --- what is generated


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_generated_parts_are_up_to_date(page: Path) -> None:
    assert docs.regenerated(page.read_text()) == page.read_text(), "run: python -m devtools.docs"


def test_the_diagram_is_the_state_machine() -> None:
    arrows = re.findall(r"^    (\S+) --> (\S+) : (.+)$", read("concepts.md"), re.M)
    drawn = {(verb, source, target) for source, target, verbs in arrows for verb in verbs.split(", ")}
    assert drawn == {(t.verb, t.source or "[*]", t.target or "[*]") for t in states.TRANSITIONS}


def test_every_state_is_explained() -> None:
    explained = {row[0] for row in rows_of_tables(read("concepts.md"))}
    assert {f"`{word}`" for word in (*states.STATUSES, *states.OUTCOMES)} <= explained


# --- options, flags, checks


def option_rows() -> dict[str, list[str]]:
    return {
        row[0].strip("`"): row[1:] for row in rows_of_tables(read("settings.md")) if row[0].startswith("`")
    }


@pytest.mark.parametrize("option", fields(conf.Options), ids=lambda option: option.name)
def test_every_option_is_documented_with_its_default(option: Any) -> None:
    default = option.default if option.default is not MISSING else option.default_factory()
    written = option_rows()[option.name][0].strip("`")
    assert ast.literal_eval(written) == default


@pytest.mark.parametrize("option", fields(conf.Options), ids=lambda option: option.name)
def test_every_option_is_documented_with_its_rule_and_check(option: Any) -> None:
    (problem,) = conf.Options.parse({option.name: object()})[1]
    _, rule, ids = option_rows()[option.name]
    assert f"E00{problem.number}" in ids
    words = re.search(r"must be (.*), not <object", problem.message)
    assert words is None or words[1].removesuffix(".") in rule


def test_options_that_clash_are_documented_as_such() -> None:
    clashes = conf.timing_problems(
        conf.Options(lease=1, heartbeat=2, poll_interval=3, backoff_base=2, backoff_cap=1)
    )
    named = {
        name for name in option_rows() for problem in clashes if re.search(rf"\b{name}\b", problem.message)
    }
    assert {name for name, row in option_rows().items() if len(row) > 2 and "E003" in row[2]} == named


def test_every_flag_is_documented() -> None:
    assert docs.flag_table() in read("settings.md")
    assert len(docs.flags()) > 10


def test_flags_in_examples_exist() -> None:
    known = {flag.split()[0] for flag, _, _ in docs.flags()} | {"-v"}
    for block in BLOCKS:
        if block.language != "python":
            for line in re.findall(r"runworkers(.*)", block.text):
                assert set(re.findall(r"(?<!\S)\"?(--?[a-z][a-z-]*)", line)) <= known, f"{block}: {line}"


def test_commands_in_examples_exist() -> None:
    for block in BLOCKS:
        for command in re.findall(r"manage\.py (\w+)", block.text):
            assert command in get_commands(), f"{block}: {command}"


def test_every_check_is_explained() -> None:
    source = "".join(Path(module.__file__).read_text() for module in (checks, conf) if module.__file__)
    ids = set(re.findall(r"django_pgqueue\.([EW]\d{3})", source))
    ids |= {f"E00{number}" for number in re.findall(r"Problem\(\s*(\d)", source)}
    explained = {row[0] for row in rows_of_tables(read("troubleshooting.md"))}
    assert {f"`django_pgqueue.{name}`" for name in ids} == {
        cell for cell in explained if "django_pgqueue." in cell
    }


def test_the_timetable_of_retries_is_that_of_the_defaults() -> None:
    section = read("tasks.md").partition("<!-- timetable -->")[2].partition("\n\n")[0]
    rows = [row for row in rows_of_tables(section) if row[0][0].isdigit()]
    options = conf.Options()
    policy = Backoff(options.backoff_base, options.backoff_cap)
    for attempt, mean, latest in rows:
        waits = sum(policy.ceiling(failures) for failures in range(1, int(attempt.split(",")[0])))
        assert (mean, latest) == (as_said(waits / 2), as_said(waits)), attempt
    assert rows[-1][0] == f"{options.max_attempts}, the last"


def as_said(seconds: float) -> str:
    """Return a time as the table says it."""
    if seconds < 120:
        return f"{seconds:g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# --- log events


@functools.cache
def logged() -> dict[str, log_events.Event]:
    return log_events.events()


def documented_events() -> dict[str, list[str]]:
    section = read("operations.md").partition("## Log events")[2].partition("## Upgrades")[0]
    return {row[0].strip("`"): row[1:] for row in rows_of_tables(section) if row[0].startswith("`")}


def test_every_log_event_is_documented() -> None:
    assert documented_events().keys() == logged().keys()


@pytest.mark.parametrize("name", sorted(documented_events()))
def test_log_events_are_documented_as_they_are_logged(name: str) -> None:
    level, names, _ = documented_events()[name]
    event = logged()[name]
    assert set(names.split(", ")) - {""} == event.fields
    assert set(level.split(", ")) <= event.levels


# --- the API


@pytest.mark.parametrize(
    "name", sorted({f.name for f in fields(PgQueueTask)} - {"func", "run_after", "delay"})
)
def test_every_option_of_a_task_is_documented(name: str) -> None:
    assert f"| `{name}` |" in read("tasks.md")


@pytest.mark.parametrize("name", sorted(name for name in vars(JobContext) if not name.startswith("_")))
def test_every_attribute_of_the_context_is_documented(name: str) -> None:
    assert re.search(rf"^\| `{name}\b", read("tasks.md"), re.M)


def test_every_public_name_is_documented() -> None:
    text = "".join(page.read_text() for page in PAGES)
    names = {*django_pgqueue.__all__, *exceptions.__all__} - {"QueueError", "Call"}
    assert {name for name in names if f"`{name}" not in text and f"import {name}" not in text} <= {"task"}


@pytest.mark.parametrize("name", sorted(name for name in testing.__all__ if name.islower()))
def test_every_function_of_the_test_kit_is_documented(name: str) -> None:
    assert f"`{name}" in read("testing.md")


def test_the_storage_settings_of_the_migration_are_documented() -> None:
    migration = importlib.import_module("django_pgqueue.migrations.0001_initial")
    settings = dict(re.findall(r"(\w+) = ([\w.]+)", migration.STATE_STORAGE.sql))
    cells = {tuple(row[:2]) for row in rows_of_tables(read("operations.md"))}
    assert settings
    assert {(f"`{name}`", f"`{value}`") for name, value in settings.items()} <= cells


def test_the_layers_are_documented_as_they_are_enforced() -> None:
    rows = [row for row in rows_of_tables(read("contributing.md")) if row[0].isdigit()]
    written = {name: int(row[0]) for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    assert written == {name: layer for name, layer in LAYERS.items() if name}


# --- links


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", without_code(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in anchors(linked), f"{target}: no such heading"


def test_every_page_can_be_reached_from_the_index() -> None:
    linked = {(docs.DOCS / name).resolve() for name in re.findall(r"\]\(([^)#\s]+)", read("index.md"))}
    assert set(docs.DOCS.rglob("*.md")) - {docs.DOCS / "index.md"} <= linked


# --- the rest


def test_the_changelog_has_this_version() -> None:
    versions = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert versions[0] == django_pgqueue.__version__ == project["version"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_this_machine(page: Path) -> None:
    text = page.read_text()
    assert not [word for word in NOT_SAID if word in text]
    assert not re.search(r"\b[Ww]e\b", text), "the pages speak of things, not of us"


def test_a_log_line_looks_as_documented(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="django_pgqueue")
    log("rescued", job=7, reason='died of "signal" 9', seconds=1.5, nothing=None)
    (record,) = caplog.records
    assert record.getMessage() == "rescued job=7 reason=" + json.dumps('died of "signal" 9') + " seconds=1.5"
    assert (record.event, record.fields["job"]) == ("rescued", 7)
