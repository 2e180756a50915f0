"""The page about testing is a project: its files are written to a folder, and pytest runs its tests there."""

import re
from pathlib import Path

import django
import pytest

from ..pages import blocks
from .runs import databases, run_pytest_django

pytestmark = pytest.mark.process

SETTINGS = """
INSTALLED_APPS = [*INSTALLED_APPS, "shop"]
"""


def files() -> dict[str, str]:
    """Return the page's examples by the name of their file."""
    page = [block for block in blocks() if block.page.name == "testing.md"]
    unmarked = [str(block) for block in page if block.kind not in ("file", "test", "settings")]
    assert not unmarked, "every example says what it is"
    named = {block.mark.partition(": ")[2]: block.text for block in page if block.kind == "file"}
    loose = {f"test_line_{block.line}.py": block.text for block in page if block.kind == "test"}
    return named | loose | {"shop/__init__.py": "", "shop/tests/__init__.py": ""}


def test_the_examples_pass(tmp_path: Path) -> None:
    for name, text in files().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if django.VERSION < (6, 0):
            text = text.replace("django.tasks", "django_tasks")
        path.write_text(text)
    done = run_pytest_django(tmp_path, SETTINGS)
    passed = re.search(r"=+ (\d+) passed in [^=]* =+$", done.stdout.rstrip())
    assert passed is not None, done.stdout
    assert int(passed[1]) == len(re.findall(r"^ *(?:async )?def test_", "".join(files().values()), re.M)) + 3
    assert databases() == set()
