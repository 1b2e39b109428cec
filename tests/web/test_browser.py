"""The workbench in a real browser: labels, keys, narrow screens, hostile texts."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import karat
from tests.reports.conftest import axe, chromium
from tests.reports.payloads import payloads
from tests.web.conftest import Served, Window, running

__all__ = ["axe", "chromium"]
pytestmark = pytest.mark.browser

PAGES = (
    *("/", "/p/help", "/p/help/runs/1", "/p/help/compare?run=1&run=2"),
    *("/p/help/q/q1", "/p/help/label", "/p/help/gold", "/settings"),
)


@pytest.fixture
def windows(
    serve: Callable[[], Served], chromium: Any
) -> Iterator[Callable[..., Window]]:
    """Opens browsers on a server of its own, each with somebody's token."""
    served = serve()
    opened: list[Window] = []
    with running(served.path) as home:

        def window(who: str = "admin", **options: Any) -> Window:
            opened.append(Window(chromium, home, served.tokens[who], **options))
            return opened[-1]

        yield window
        for one in opened:
            one.context.close()


def test_a_label_changes_the_numbers_and_can_be_taken_back(
    windows: Callable[..., Window],
) -> None:
    tab = windows("label")
    tab.go("/p/help/q/q1?runs=1,2")
    before = tab.said_in("#scores", "ndcg@10")
    card = tab.page.locator("#run-2-2")
    card.locator("[name=why]").fill("it says so")
    card.locator("[data-grade='3']").click()
    said = tab.said_in("#message", "changed")
    assert re.search(r"ndcg@10 of 2 runs changed, new 0\.\d{4} -> 0\.\d{4}", said)
    after = tab.said_in("#scores", "ndcg@10")
    assert after != before
    gold = {"q1": {"a": 1, "b": 3}}
    fresh = karat.evaluate({"q1": ["a", "b", "c"]}, gold, metrics=["ndcg@10"])
    assert f"{fresh.means['ndcg@10']:.4f}" in after
    assert "it says so" in tab.page.locator("#labels").inner_text()
    pressed = card.locator("[aria-pressed=true]").inner_text()
    assert pressed == "3"
    tab.page.locator("#message button").click()
    tab.said_in("#message", "Taken back")
    assert tab.said_in("#scores", "ndcg@10") == before
    assert tab.quiet()


def test_keys_are_enough(windows: Callable[..., Window]) -> None:
    tab = windows("label")
    tab.go("/p/help/q/q1?runs=2")
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        if tab.page.evaluate("document.activeElement.id") == "run-2-1":
            break
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("2")
    tab.said_in("#message", "changed")
    assert tab.page.evaluate("document.activeElement.id") == "run-2-3"
    tab.page.keyboard.press("?")
    tab.page.locator("#labels", has_text="can't tell").wait_for()
    tab.page.keyboard.press("ArrowUp")
    tab.page.keyboard.press("0")
    tab.page.locator("#run-2-2 [aria-pressed=true]", has_text="0").wait_for()
    tab.said_in("#message", "changed")
    tab.page.keyboard.press("u")
    tab.page.locator("#run-2-2 [aria-pressed=true]", has_text="2").wait_for()
    assert tab.quiet()


def test_the_queue_is_worked_through_by_keys(windows: Callable[..., Window]) -> None:
    tab = windows("label")
    tab.go("/p/help/label")
    assert "old" not in tab.page.locator("#next").inner_text()
    assert tab.page.evaluate("document.activeElement.id") == "next-0"
    for left in (3, 2, 1, 0):
        tab.page.keyboard.press("1")
        tab.page.locator("#next", has_text=f"{left} document").wait_for()
    assert "Nothing is left to label" in tab.page.locator("#next").inner_text()
    tab.page.keyboard.press("u")
    tab.said_in("#message", "Taken back")
    tab.page.keyboard.press("u")
    tab.said_in("#message", "Nothing to take back")
    assert tab.quiet()


def test_the_first_document_is_one_key_away(windows: Callable[..., Window]) -> None:
    tab = windows("label")
    tab.go("/p/help/q/q1?runs=2")
    tab.page.keyboard.press("ArrowDown")
    assert tab.page.evaluate("document.activeElement.id") == "run-2-1"
    tab.page.keyboard.press("3")
    tab.said_in("#message", "changed")
    assert tab.quiet()


def test_two_people_disagree_and_settle(windows: Callable[..., Window]) -> None:
    ann, bo = windows("label"), windows("bo")
    for tab, grade in ((ann, "3"), (bo, "0")):
        tab.go("/p/help/q/q1?runs=1")
        tab.page.locator(f"#run-1-1 [data-grade='{grade}']").click()
        tab.said_in("#message", "changed")
    for tab in (ann, bo):
        tab.go("/p/help/label")
        shown = tab.said_in("#disputed", "People disagree on 1 document")
        assert "label 3" in shown
        assert "bo 0" in shown
    bo.page.locator("#disputed-0 [data-grade='3']").click()
    bo.said_in("#message", "changed")
    assert bo.page.locator("#disputed").count() == 0
    ann.go("/p/help/gold")
    assert "bo, label" in ann.page.locator("#agreement").inner_text()
    assert ann.quiet()
    assert bo.quiet()


def test_readers_have_no_buttons_and_pages_need_no_script(
    windows: Callable[..., Window],
) -> None:
    tab = windows("read", java_script_enabled=False)
    tab.go("/p/help/q/q1")
    assert tab.page.locator("[data-grade]").count() == 0
    assert "text of b" in tab.page.locator("#rankings").inner_text()
    tab.go("/p/help?metric=rr@10")
    for box in tab.page.locator("[type=checkbox]").all():
        box.check()
    tab.page.get_by_role("button", name="Compare").click()
    assert "new compared with old" in tab.page.locator("h1").inner_text()
    owner = windows("admin", java_script_enabled=False)
    owner.go("/settings")
    owner.page.locator("[name=name]").fill("cy")
    owner.page.get_by_role("button", name="Make a token").click()
    assert len(owner.page.locator("code").inner_text()) == 32
    owner.page.get_by_role("button", name="remove cy").click()
    assert owner.page.get_by_text("cy").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nobody_is_locked_out(
    windows: Callable[..., Window], axe: str, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 800}
    tab = windows("admin", viewport=size, color_scheme=scheme, bypass_csp=True)
    for address in PAGES:
        tab.go(address)
        tab.page.evaluate(axe)
        found: Any = tab.page.evaluate("async () => (await axe.run()).violations")
        serious = [
            (address, one["id"], one["nodes"][0]["html"][:200])
            for one in found
            if one["impact"] in {"serious", "critical"}
        ]
        assert not serious, json.dumps(serious, indent=1)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out(windows: Callable[..., Window], width: int) -> None:
    tab = windows("admin", viewport={"width": width, "height": 800})
    for address in PAGES:
        tab.go(address)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.quiet()


def test_hostile_texts_are_shown_and_do_nothing(chromium: Any, tmp_path: Path) -> None:
    texts = [text for text in payloads(60) if text.strip()]
    samples = [
        {
            "id": text,
            "query": text,
            "tags": [text],
            "retrieved": [{"id": text, "text": text}, {"id": "a", "text": text * 2}],
            "relevant": ["a"],
        }
        for text in dict.fromkeys(texts)
    ]
    path, hostile = tmp_path / "store.db", texts[0]
    runs = [
        karat.evaluate(samples, metrics=["rr@10"], keep=5, name=name)
        for name in texts[:2]
    ]
    with karat.history.open(path) as store:
        for n, run in enumerate(runs):
            store.push(run, project=hostile, commit=f"{n}{hostile}", branch=texts[1])
        for n, text in enumerate(texts):
            label = {"query": text, "document": text, "grade": 1, "why": text}
            store.label([{**label, "who": f"x{text}"}], project=hostile)
            store.tokens.add(f"{n}{text}", "read")
        token = store.tokens.add("owner", "admin")
    with running(path) as home:
        tab = Window(chromium, home, token)
        project = str(tab.page.locator("th a").first.get_attribute("href"))
        for address in (
            *("/", "/settings", project, f"{project}/label", f"{project}/gold"),
            *(f"{project}/compare?run=1&run=2", f"{project}/runs/1"),
        ):
            tab.go(address)
            assert tab.quiet(), (address, tab.said)
        queries = [
            str(link.get_attribute("href"))
            for link in tab.page.locator("#queries th a").all()
        ]
        assert len(queries) == len(samples)
        for address in queries:
            tab.go(address)
            tab.page.locator(".document").first.wait_for()
            assert tab.quiet(), (address, tab.said)
        tab.page.locator("[data-grade='2']").first.click()
        tab.said_in("#message", "chang")
        assert tab.quiet(), tab.said
        tab.context.close()
