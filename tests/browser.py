"""A real headless Chromium for the tests of pages: `chromium_or_skip()`.

Driven by Selenium through the installed `chromedriver`; nothing is downloaded. Where the browser or Selenium is missing the
test is skipped with the reason, or fails if `TENFERRO_REQUIRE_BROWSER=1`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # containers run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    # whatever the page might ask for, nothing leaves this machine
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


class Browser:
    """A driver with what a test of a static page asks for."""

    def __init__(self, driver: WebDriver) -> None:
        self.driver = driver

    def open(self, page: Path) -> None:
        """Open a file from disk; what was logged before is forgotten."""
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)  # type: ignore[no-untyped-call]
        self.driver.get(page.resolve().as_uri())

    def script(self, body: str, *arguments: Any) -> Any:
        """Result of a JavaScript function body, `return` included by the caller."""
        return self.driver.execute_script(body, *arguments)

    def texts(self, selector: str) -> list[str]:
        """Text of every element that matches, shown or not."""
        found: list[str] = self.script(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector
        )
        return found

    def size(self, width: int, height: int) -> None:
        """Lay the page out for a screen of this size, below the smallest window too."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """`light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def console_errors(self) -> list[str]:
        """What the console has said above a warning since the last call, policy violations included."""
        return [e["message"] for e in self.driver.get_log("browser") if e["level"] == "SEVERE"]  # type: ignore[no-untyped-call]

    def requests(self) -> list[str]:
        """Every address asked for since the last call, `data:` left out."""
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]  # type: ignore[no-untyped-call]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith("data:")]


@contextmanager
def chromium_or_skip() -> Iterator[Browser]:
    """A Chromium for the length of a `with`; wrap it in a fixture of module scope.

    Skips, or fails under `TENFERRO_REQUIRE_BROWSER=1`, where Chromium, chromedriver or Selenium is missing. `CHROMIUM` and
    `CHROMEDRIVER` name other files than those on the path.
    """
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    chromedriver = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
    if not chromium:
        _missing("chromium is not installed")
    if not chromedriver:
        _missing("chromedriver is not installed")
    if not importlib.util.find_spec("selenium"):
        _missing("selenium is not installed")

    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = str(chromium)
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=ChromeService(executable_path=chromedriver))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


def _missing(what: str) -> None:
    if os.environ.get("TENFERRO_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{what}, and TENFERRO_REQUIRE_BROWSER=1 asks for it")
    pytest.skip(what)
