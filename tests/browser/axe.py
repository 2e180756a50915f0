"""axe-core on a page: the accessibility faults that it calls serious or critical.

The engine comes with a package for Selenium; on a Python that the package does not know, the tests skip.
"""

from importlib import resources

import pytest

from .chromium import Browser

GRAVE = ("serious", "critical")
RUN = """
const done = arguments[arguments.length - 1];
axe.run({include: [arguments[0]]}, {resultTypes: ["violations"]}).then(
    (found) => done({
        passes: found.passes.length,
        violations: found.violations.map(({id, impact, help, nodes}) =>
            ({id, impact, help, nodes: nodes.slice(0, 5).map((node) => node.html.slice(0, 200))})),
    }),
    (error) => done({error: String(error)}),
);
"""


def grave_faults(browser: Browser, within: str = "#content") -> list[str]:
    """Return the grave faults of the page that is shown, in words."""
    browser.script(_engine())
    found = browser.driver.execute_async_script(RUN, within)
    assert "error" not in found, found
    assert found["passes"] > 5, "axe-core has looked at nothing"
    return [
        f"{fault['id']} ({fault['impact']}): {fault['help']}: {fault['nodes']}"
        for fault in found["violations"]
        if fault["impact"] in GRAVE
    ]


def _engine() -> str:
    pytest.importorskip("axe_selenium_python", reason="axe-core's package needs Python 3.12")
    path = resources.files("axe_selenium_python") / "node_modules" / "axe-core" / "axe.min.js"
    return path.read_text()
