"""The docs as pages: they open from disk, load nothing else, and are found."""

from typing import Any

import pytest

from tests.docs.pages import ROOT
from tests.reports.conftest import axe, chromium

__all__ = ["axe", "chromium"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SITE = ROOT / "site"
LOOKED_AT = (
    "index.html",
    "tutorial.html",
    "how-to/gate-ci.html",
    "concepts/intervals.html",
    "reference/matchers.html",
    "reference/python/karat.scale.html",
)
# What a stranger types, and where the answer stands.
SEARCHES = {
    "gate ci": "how-to/gate-ci.html",
    "what span counts": "concepts/matchers.html",
    "plug in a matcher": "how-to/extend.html",
    "differs from trec_eval": "concepts/why-numbers-differ.html",
    "start without labels": "no-gold.html",
    "fields of Evaluation": "reference/python/karat.html",
}


@pytest.fixture
def browser(chromium: Any) -> Any:
    if not (SITE / "index.html").exists():
        pytest.skip("needs the site, which make site builds")
    return chromium


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("page", LOOKED_AT)
def test_a_page_opens_from_disk_and_anybody_can_read_it(
    browser: Any, axe: str, page: str, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 800}
    tab = browser.new_page(viewport=size, color_scheme=scheme)
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto((SITE / page).as_uri())
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.evaluate(axe)
    found = tab.evaluate("async () => (await axe.run()).violations")
    assert [(v["id"], v["nodes"][0]["html"]) for v in found] == []
    tab.close()


@pytest.mark.parametrize("words", SEARCHES)
def test_a_stranger_finds_the_page(browser: Any, words: str) -> None:
    tab = browser.new_page()
    tab.goto((SITE / "index.html").as_uri())
    tab.keyboard.press("/")
    tab.keyboard.type(words)
    typed = words.replace(" ", "+")
    results = tab.locator(f"[role=listbox] a[href*='?h={typed}']")
    results.first.wait_for()
    shown = [result.get_attribute("href") for result in results.all()]
    assert any(SEARCHES[words] in address for address in shown[:3]), shown
    tab.close()
