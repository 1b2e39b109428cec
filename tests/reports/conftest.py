"""A real browser: Debian's Chromium, driven by Playwright."""

import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

AXE = "4.10.3"
ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    "--disable-background-networking",
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser, for the tests of one module."""
    if CHROMIUM is None:
        pytest.skip("needs chromium, which is not installed")
    sync = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        browser.close()


class Visit:
    """A page that was opened from disk, and what it did while it was open."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(accept_downloads=True, **options)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self._session = self.context.new_cdp_session(self.page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.goto(path.as_uri())
        if self.page.locator("#table").count():
            # The page unpacks its data before it draws the table.
            self.page.locator("#table thead th").first.wait_for()
        self.address = path.as_uri()

    def seconds(self) -> float:
        """How long the page has worked: of its own thread, however busy the machine."""
        told = self._session.send("Performance.getMetrics")["metrics"]
        return next(float(m["value"]) for m in told if m["name"] == "TaskDuration")

    def _dismiss(self, box: Any) -> None:
        self.said.append("dialog")
        box.dismiss()

    def quiet(self) -> bool:
        """Whether nothing ran, complained or asked for anything but the page itself."""
        hit = self.page.locator("html").get_attribute("data-hit")
        return hit is None and not self.said and {*self.asked} == {self.address}


@pytest.fixture
def visit(chromium: Any) -> Iterator[Any]:
    """Opens a file in the browser."""
    opened: list[Visit] = []

    def go(path: Path, **options: Any) -> Visit:
        opened.append(Visit(chromium, path, **options))
        return opened[-1]

    yield go
    for one in opened:
        one.context.close()


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core, fetched once into a folder that is not committed."""
    folder = ROOT / ".karat" / "axe"
    packed = folder / f"axe-core-{AXE}.tgz"
    if not packed.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", f"axe-core@{AXE}", "--silent"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("needs npm, and axe-core from its registry")
    with tarfile.open(packed) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()
