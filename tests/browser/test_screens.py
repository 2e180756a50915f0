"""The pages on a phone, and in dark colours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .places import LIST, page_of

if TYPE_CHECKING:
    from .chromium import Browser
    from .pages import Admin
    from .scene import Scene

pytestmark = pytest.mark.browser
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
PAPER = "return getComputedStyle(document.body).backgroundColor"
OURS = "#content, .pgq-breadcrumbs"
"""What these pages show below the head of the admin: Django's parts of it are read, too."""


@pytest.fixture
def pages(scene: Scene) -> dict[str, str]:
    """The addresses of the pages, by name."""
    jobs = {name: page_of(job_id) for name, job_id in scene.jobs.items()}
    return {"list": LIST, "list of dead jobs": f"{LIST}?status=dead", **jobs}


def test_a_phone_scrolls_the_pages_in_one_direction_only(admin: Admin, pages: dict[str, str]) -> None:
    browser = admin.browser
    browser.be_a_phone()
    admin.enter()
    assert {name: overflow(browser, path) for name, path in pages.items()} == {name: [] for name in pages}


def test_a_thumb_reaches_the_buttons_on_a_phone(admin: Admin, scene: Scene) -> None:
    browser = admin.browser
    browser.be_a_phone()
    admin.enter(to=page_of(scene.jobs["scheduled"]))
    for button in browser.all(".pgq-buttons button"):
        assert button.rect["x"] >= 0
        assert button.rect["x"] + button.rect["width"] <= 390
        assert button.rect["height"] >= 24  # WCAG 2.2, target size
    admin.press("Cancel")
    assert overflow(browser) == []
    admin.confirm()
    assert admin.state == "Cancelled"

    browser.open(LIST)
    admin.select(scene.jobs["dead"])
    browser.click("a", "Go to the filters")
    admin.filter_by("Dead")
    assert set(admin.listed) >= {scene.jobs["dead"]}


def test_every_text_stands_out_from_its_background_in_light_and_dark_colours(
    admin: Admin, pages: dict[str, str]
) -> None:
    browser = admin.browser
    admin.enter()
    faint = {}
    for name, path in pages.items():
        browser.open(path)
        for dark in (False, True):
            browser.be_dark(dark)
            assert (browser.script(PAPER) != "rgb(255, 255, 255)") == dark
            faint[name, dark] = too_faint(browser)
    assert faint == {key: [] for key in faint}

    browser.script("document.querySelector('.pgq-story').style.color = 'dimgrey'")
    assert too_faint(browser), "the measure itself does not work"


def too_faint(browser: Browser) -> list[str]:
    """Return the texts with too little contrast."""
    found = browser.script(CONTRAST, OURS)
    assert found["read"] > 10
    return found["faint"]


def overflow(browser: Browser, path: str | None = None) -> list[str]:
    """Return the elements that make the page wider than the screen."""
    if path is not None:
        browser.open(path)
    return browser.script(
        """
        const width = document.documentElement.clientWidth;
        if (document.documentElement.scrollWidth <= width && window.innerWidth === 390) return [];
        return [...document.querySelectorAll("body *")]
            .filter((element) => element.getBoundingClientRect().right > width + 1)
            .map((element) => `${element.tagName}.${element.className}`);
        """
    )
