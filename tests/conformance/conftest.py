"""Makes Django's tests importable, and applies the tables of inapplicable.py."""

import pytest

from . import names, sources
from .inapplicable import IN_COROUTINE, INAPPLICABLE

names.install(sources.folder())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what cannot apply. An entry of the tables without a test is a mistake."""
    tests = {_name(item): item for item in items}
    stale = (INAPPLICABLE.keys() | IN_COROUTINE) - tests.keys()
    if stale:
        raise pytest.UsageError(f"inapplicable.py names tests that do not exist: {', '.join(sorted(stale))}")
    for name, reason in INAPPLICABLE.items():
        tests[name].add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _blocking_calls_in_coroutines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if _name(request.node) in IN_COROUTINE:
        monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")


def _name(item: pytest.Item) -> str:
    return ".".join(item.nodeid.split("::")[1:])
