"""A real browser for tests: Debian's chromium with its driver, or whatever `RPOSST_CHROMEDRIVER` names."""

import base64
import functools
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from plotly.offline import get_plotlyjs
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--process-per-site",  # what is compiled of a script is kept by a process
    "--disable-features=SpareRendererForSitePerProcess",  # a process for every tab, which is not used
)
LIBRARY_LINE = 5000  # below all that pages have above it
HOW_TO_INSTALL = "install a browser, on Debian by `apt-get install chromium chromium-driver`"


class Browser:
    """A page in a browser, and what it logged.

    If it has an `address`, all pages are opened there. A browser keeps what it has compiled of a script by the script's
    text, address and line, and Plotly takes seconds to compile.
    """

    def __init__(self, driver: Chrome, address: Path | None = None) -> None:
        self.driver = driver
        self._address = address
        self._tab = driver.current_window_handle  # for pages to which something is done
        self._looked_at: dict[tuple[Path, int, bool], str] = {}  # the tabs of pages to which nothing was done

    def open(self, page: Path, *, width: int = 1400, dark: bool = False, height: int = 900) -> None:
        """Open a file and wait until its scripts have run."""
        self._show(self._tab)
        self._load(page, width, height, dark)

    def look_at(self, page: Path, *, width: int = 1400, dark: bool = False, anew: bool = False) -> None:
        """Open a file for a test that only looks and points; if another did so before, it is still open.

        What a page has logged since it was opened can be known only if it is opened `anew`.
        """
        kept = self._looked_at.get((page, width, dark))
        if kept is None:
            self.driver.switch_to.new_window("tab")
            kept = self._looked_at[page, width, dark] = self.driver.current_window_handle
            anew = True
        self._show(kept)
        if anew:
            self._load(page, width, 900, dark)

    def _show(self, tab: str) -> None:
        self.driver.switch_to.window(tab)
        self.driver.execute_cdp_cmd("Page.bringToFront", {})  # a hidden page is not drawn, and does not answer a mouse

    def _load(self, page: Path, width: int, height: int, dark: bool) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.address = self._place(page).absolute().as_uri()
        self.driver.get("about:blank")
        self.driver.get_log("performance")  # what was before is not of this page
        self.driver.get_log("browser")
        self.driver.get(self.address)
        WebDriverWait(self.driver, 30, poll_frequency=0.05).until(lambda _: self.drawn_milliseconds() is not None)

    def _place(self, page: Path) -> Path:
        """Where the page is opened; Plotly has the same line in all pages at one address."""
        if self._address is None:
            return page
        text = page.read_bytes()
        start = text.index(_start_of_plotly())
        lines = LIBRARY_LINE - text.count(b"\n", 0, start)
        self._address.write_bytes(text[:start] + b"\n" * lines + text[start:])
        return self._address

    def drawn_milliseconds(self) -> int | None:
        """When the page had drawn everything, since it was opened."""
        value = self.run("return document.documentElement.dataset.drawn ?? null")
        return None if value is None else int(value)

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector: str) -> list[WebElement]:
        found: list[WebElement] = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return found

    def number(self, selector: str) -> float:
        """The number behind what an element shows."""
        value = self.run("return document.querySelector(arguments[0]).dataset.value", selector)
        return float(value)

    def complaints(self) -> list[str]:
        """Everything in the console that is a warning or worse."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]

    def requests(self) -> list[str]:
        """The addresses of all that was asked for, but for data within the page."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        addresses = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [address for address in addresses if not address.startswith(("data:", "blob:"))]

    def screenshot(self, path: Path) -> None:
        """What can be seen of the page."""
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {})
        path.write_bytes(base64.b64decode(shot["data"]))

    def print(self) -> bytes:
        """The page as a PDF file."""
        return base64.b64decode(self.driver.print_page())


@functools.cache
def _start_of_plotly() -> bytes:
    return f"<script>{get_plotlyjs()[:100]}".encode()


def missing_browser() -> str | None:
    """How to get a browser, if there is none."""
    return None if _driver_path() else HOW_TO_INSTALL


def _driver_path() -> str | None:
    return os.environ.get("RPOSST_CHROMEDRIVER") or shutil.which("chromedriver")


@contextmanager
def open_browser(profile: Path, address: Path | None = None) -> Iterator[Browser]:
    """A browser that knows nothing and leaves nothing behind."""
    options = ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(_driver_path()))
    try:
        yield Browser(driver, address)
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests. Without one they are skipped, with the reason, unless `RPOSST_BROWSER` asks for it."""
    reason = missing_browser()
    if reason is not None:
        if os.environ.get("RPOSST_BROWSER") == "required":
            pytest.fail(f"{reason}; RPOSST_BROWSER says that it is required")
        pytest.skip(reason)
    address = tmp_path_factory.mktemp("address") / "page.html"
    with open_browser(tmp_path_factory.mktemp("profile"), address) as started:
        yield started
