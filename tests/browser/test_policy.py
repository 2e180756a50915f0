"""The pages under a strict Content Security Policy: ``policy.py`` adds it to every answer.

That no page of any test breaks it is checked after each test, with the rest of the console.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .places import LIST, page_of
from .policy import POLICY

if TYPE_CHECKING:
    from .pages import Admin
    from .scene import Scene

pytestmark = pytest.mark.browser


def test_the_pages_work_under_a_policy_without_inline_code(admin: Admin, scene: Scene) -> None:
    browser = admin.browser
    admin.enter(to=f"{LIST}?enqueued_at__range__gte_0=nonsense")
    browser.see("The filter by time of enqueueing cannot be read", ".errornote")
    for path in [*map(page_of, scene.jobs.values()), f"{LIST}{scene.jobs['dead']}/history/"]:
        browser.open(path)
        styles = "[...document.styleSheets].map(sheet => new URL(sheet.href).pathname)"
        assert "/static/django_pgqueue/admin.css" in browser.script(f"return {styles}") or "history" in path
    headers = browser.script("const answer = await fetch(''); return [...answer.headers]")
    assert dict(headers)["content-security-policy"] == POLICY


def test_what_breaks_the_policy_is_heard_in_the_console(admin: Admin) -> None:
    browser = admin.browser
    admin.enter()
    assert browser.heard() == []
    browser.script("document.body.append(Object.assign(document.createElement('script'), {text: '1'}))")
    (error,) = browser.heard()
    assert "Content Security Policy" in error
