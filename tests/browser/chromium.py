"""A headless Chromium: found, started, turned into a phone or to dark mode, and listened to."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from ..processes.nursery import die_with_parent
from ..waiting import wait_until

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVERS = ("chromedriver",)
MISSING = (
    "The browser tests need {0}, which is not in PATH. On Debian: apt-get install chromium chromium-driver. "
    "On Ubuntu, where these packages are snaps, install Google Chrome and its chromedriver."
)
DESKTOP = (1280, 860)
PHONE = (390, 844)
SWITCHES = (
    "--headless=new",
    "--lang=en-US",
    "--disable-dev-shm-usage",  # containers often have 64 MB of it
    "--disable-gpu",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    f"--window-size={DESKTOP[0]},{DESKTOP[1]}",
)


# In one go: asking for each element's state and text by itself takes a second on a page with many.
VISIBLE = """
const [selector, text] = arguments;
return [...document.querySelectorAll(selector)].filter((element) =>
    element.checkVisibility({ visibilityProperty: true }) && (!text || element.innerText.trim() === text));
"""


class Missing(Exception):
    """The browser or its driver is not installed; the message says what to install."""


class Browser:
    """What the page objects ask of the browser; ``address`` is where relative addresses begin."""

    def __init__(self, driver: webdriver.Chrome, address: str) -> None:
        self.driver = driver
        self.address = address

    # --- moving about

    def open(self, path: str) -> None:
        """Open a page of the site."""
        self.driver.get(self.address + path)

    @property
    def path(self) -> str:
        """The address of the page that is shown, without the site's."""
        return self.driver.current_url.removeprefix(self.address)

    def forget(self) -> None:
        """Be a new visitor at a desk, in daylight."""
        self.driver.get("about:blank")
        self.command("Network.clearBrowserCookies")
        self.command("Storage.clearDataForOrigin", origin=self.address, storageTypes="all")
        self.command("Emulation.clearDeviceMetricsOverride")
        self.command("Emulation.setScrollbarsHidden", hidden=False)
        self.command("Emulation.setEmulatedMedia", features=[])
        self.heard()

    # --- looking

    def find(self, selector: str, text: str = "") -> WebElement:
        """Return the one visible element with this selector, and this text if given."""
        found = self.all(selector, text)
        assert len(found) == 1, f"{len(found)} elements {selector!r} {text!r} on {self.path}:\n{self.text()}"
        return found[0]

    def all(self, selector: str, text: str = "") -> list[WebElement]:
        """Return the visible elements with this selector, and this text if given."""
        return self.script(VISIBLE, selector, text)

    def text(self, selector: str = "body") -> str:
        """Return what is written there, each run of white space as one space."""
        return " ".join(
            self.script("return document.querySelector(arguments[0])?.innerText", selector).split()
        )

    def see(self, text: str, selector: str = "body", timeout: float = 10.0) -> None:
        """Wait until this text stands there."""
        wait_until(
            lambda: text in self.text(selector), timeout, f"{text!r} is not on {self.path}: {self.text()}"
        )

    def see_after_reloads(self, text: str, selector: str = "body", timeout: float = 10.0) -> None:
        """Reload, as an impatient person does, until this text stands there."""

        def reloaded() -> bool:
            if text in self.text(selector):
                return True
            self.driver.refresh()
            return False

        wait_until(reloaded, timeout, f"{text!r} did not appear on {self.path}")

    def script(self, code: str, *arguments: Any) -> Any:
        """Run JavaScript in the page and return its result."""
        return self.driver.execute_script(code, *arguments)

    # --- doing

    def click(self, selector: str, text: str = "") -> None:
        """Click on an element that stays on this page."""
        self.find(selector, text).click()

    def choose(self, selector: str, label: str) -> None:
        """Choose from a drop-down list."""
        Select(self.find(selector)).select_by_visible_text(label)

    def follow(self, selector: str, text: str = "") -> None:
        """Click on an element that leads to another page, and wait for it to be there."""
        with self.new_page():
            self.click(selector, text)

    @contextmanager
    def new_page(self) -> Iterator[None]:
        """Wait until another document than the present one is complete."""
        self.script("document.documentElement.dataset.left = 'yes'")
        yield
        ready = "return document.readyState === 'complete' && !document.documentElement.dataset.left"
        wait_until(lambda: self.script(ready), message=f"no page came after {self.path}")

    def press(self, key: str) -> None:
        """Press a key by its name, TAB or ENTER, wherever the focus is."""
        webdriver.ActionChains(self.driver, duration=0).send_keys(getattr(Keys, key)).perform()

    def focused(self, what: str) -> str:
        """Return a property of the element that has the focus: its innerText, its className."""
        return self.script("return document.activeElement[arguments[0]]", what)

    # --- being something else

    def be_a_phone(self) -> None:
        """Have a narrow screen and a finger."""
        self._have_screen(*PHONE, deviceScaleFactor=2, mobile=True)

    def be_a_desktop(self, width: int, height: int) -> None:
        """Have a window whose page is of exactly this size, without scroll bars."""
        self.command("Emulation.setScrollbarsHidden", hidden=True)
        self._have_screen(width, height, deviceScaleFactor=1, mobile=False)

    def _have_screen(self, width: int, height: int, **options: Any) -> None:
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, **options)

    def be_dark(self, dark: bool = True) -> None:
        """Say that the person prefers dark colours, or light ones."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.command("Emulation.setEmulatedMedia", features=features)

    def command(self, name: str, /, **parameters: Any) -> Any:
        """Give a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    # --- afterwards

    def heard(self) -> list[str]:
        """Return the errors in the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def picture(self, path: Path) -> Path:
        """Save what is on the screen."""
        path.parent.mkdir(parents=True, exist_ok=True)
        assert self.driver.save_screenshot(str(path))
        return path


def programs() -> tuple[str, str]:
    """Return the paths of the browser and its driver. Raises Missing."""
    return _found(BROWSERS), _found(DRIVERS)


@contextmanager
def started(browser: str, chromedriver: str, address: str) -> Iterator[Browser]:
    """Start a browser for a site."""
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for switch in SWITCHES:
        options.add_argument(switch)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium refuses root otherwise
    service = webdriver.ChromeService(chromedriver, popen_kw={"preexec_fn": die_with_parent})
    driver = webdriver.Chrome(options, service)
    try:
        yield Browser(driver, address)
    finally:
        with suppress(ConnectionError):  # a SIGTERM to all of them has ended the driver before
            driver.quit()


def _found(names: tuple[str, ...]) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    raise Missing(MISSING.format(names[0]))
