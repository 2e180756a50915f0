"""Fixtures of the browser tests: one shop and one browser for all, a new visitor and an empty queue for each.

Modules that need Selenium are imported in the fixtures: a plain run collects these tests but runs none.
"""

# ruff: noqa: PLC0415 - see above

import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from .chromium import Browser
    from .pages import Admin, Storefront
    from .scene import Scene
    from .shop import Shop

EXPECTED: tuple[str, ...] = ()
"""Parts of console errors that are not ours, each with the reason why it is left."""


@pytest.fixture(scope="session")
def programs() -> tuple[str, str]:
    """The browser and its driver; without them the tests fail, and say at once what to install."""
    try:
        from . import chromium

        return chromium.programs()
    except ModuleNotFoundError as error:
        missing = f"{error}. `python3 dev.py browser` makes an environment that has it."
    except chromium.Missing as error:
        missing = str(error)
    pytest.fail(missing, pytrace=False)


@pytest.fixture(scope="session")
def tidy_end() -> Iterator[None]:
    """Let SIGTERM end the session as Ctrl-C does, so that everything that was started is ended."""

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def shop(
    programs: tuple[str, str], tidy_end: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["Shop"]:
    """The shop with its worker."""
    from .shop import open_shop

    with open_shop(tmp_path_factory.mktemp("shop")) as shop:
        yield shop


@pytest.fixture(scope="session")
def chromium(programs: tuple[str, str], shop: "Shop") -> Iterator["Browser"]:
    """The browser of the session."""
    from .chromium import started

    with started(*programs, shop.address) as browser:
        yield browser


@pytest.fixture
def browser(
    shop: "Shop",
    chromium: "Browser",
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator["Browser"]:
    """A new visitor; in the end the console must be without errors."""
    shop.queue.clear()
    chromium.forget()
    failed_before = request.session.testsfailed
    yield chromium
    if request.session.testsfailed > failed_before:
        picture = chromium.picture(tmp_path_factory.getbasetemp() / "failed" / f"{request.node.name}.png")
        sys.stderr.write(f"the page when the test failed: {picture}\n")
    heard = [error for error in chromium.heard() if not any(part in error for part in EXPECTED)]
    assert not heard, "errors in the console:\n" + "\n".join(heard)


@pytest.fixture
def storefront(browser: "Browser") -> "Storefront":
    """The shop as a customer meets it."""
    from .pages import Storefront

    return Storefront(browser)


@pytest.fixture
def admin(browser: "Browser", shop: "Shop") -> "Admin":
    """The admin as its users meet it; nobody is logged in yet."""
    from .pages import Admin

    return Admin(browser, shop.sessions)


@pytest.fixture
def scene(browser: "Browser", shop: "Shop") -> "Scene":
    """Jobs in every state that lasts."""
    from .scene import build

    return build(shop)
