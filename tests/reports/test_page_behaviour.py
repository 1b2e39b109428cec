"""What a reader does with a report in a real browser: links, filters, keys, labels."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import karat
from karat import Leaderboard
from tests.reports.conftest import Visit

pytestmark = pytest.mark.browser
Go = Callable[..., Visit]

CORPUS = {
    f"d{n}": f"Document {n} tells of {'rye' if n % 2 else 'oats'}." for n in range(9)
}
CORPUS["lost"] = "Nobody retrieves what is said of buckwheat here."
QUERIES = {
    "q1": "What is rye?",
    "q2": "What are oats?",
    "q3": "Where is the buckwheat?",
    "q4": "Which field lies fallow?",
}
GOLD = {"q1": {"d1": 2}, "q2": {"d2": 1}, "q3": {"lost": 3, "d3": 1}, "q4": {"d4": 1}}
OLD = {
    "q1": ["d1", "d5", "d7"],
    "q2": ["d0", "d2"],
    "q3": ["d3", "d0"],
    "q4": ["d0", "d1", "d4"],
}
NEW = {
    "q1": ["d5", "d1", "d7"],
    "q2": ["d2", "d0"],
    "q3": ["d3", "d0"],
    "q4": ["d1", "d0", "d5"],
}
METRICS = ["ndcg@3", "recall@3", "rr", "hit@1", "precision@3", "ap"]


def scored(run: dict[str, list[str]], name: str, **options: Any) -> karat.Evaluation:
    asked = {
        q: {"id": q, "text": t, "tags": [q[-1], "all"]} for q, t in QUERIES.items()
    }
    return karat.evaluate(
        run,
        gold=options.pop("gold", GOLD),
        metrics=METRICS,
        corpus=CORPUS,
        queries=[*asked.values()],
        keep=5,
        name=name,
        match="id",
        **options,
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of two runs: q4 and q1 got worse, q2 better, q3 is the same."""
    old, new = scored(OLD, "old"), scored(NEW, "new")
    path = tmp_path_factory.mktemp("page") / "r.html"
    path.write_text(karat.compare(old, new).to_html(old, new), "utf-8")
    return path


def shown(tab: Visit) -> list[str]:
    return [*tab.page.locator("#table tbody th").all_text_contents()]


def opened(tab: Visit, query: str) -> None:
    tab.page.locator("#drawer[open] .bar + p bdi", has_text=query).first.wait_for()


def has_hash(tab: Visit, expected: str) -> None:
    """Wait for an address, which goes back only after the key that asks for it."""
    same = "expected => decodeURIComponent(location.hash) === expected"
    tab.page.wait_for_function(same, arg=expected, timeout=10_000)


def test_what_is_shown_has_an_address(visit: Go, page: Path) -> None:
    tab = visit(page)
    assert shown(tab) == ["q4", "q1", "q3", "q2"]
    tab.page.locator("#show").select_option("worse")
    assert shown(tab) == ["q4", "q1"]
    tab.page.locator("#metric").select_option("rr")
    tab.page.locator("button.open", has_text="q1").click()
    opened(tab, "q1")
    has_hash(tab, "#q=q1&metric=rr&show=worse")
    tab.page.keyboard.press("Escape")
    has_hash(tab, "#metric=rr&show=worse")
    tab.page.reload()
    tab.page.locator("#table tbody tr").first.wait_for()
    assert shown(tab) == ["q1", "q4"]
    assert tab.page.locator("#metric").input_value() == "rr"
    # Back: the open query, the table, the other metric, all queries.
    tab.page.go_back()
    opened(tab, "q1")
    tab.page.go_back()
    tab.page.locator("#drawer:not([open])").wait_for(state="attached")
    tab.page.go_back()
    assert tab.page.locator("#metric").input_value() == "ndcg@3"
    tab.page.go_back()
    assert shown(tab) == ["q4", "q1", "q3", "q2"]
    assert not tab.said


def test_a_link_opens_a_query_and_a_wrong_one_nothing(visit: Go, page: Path) -> None:
    tab = visit(page)
    tab.page.goto(f"{page.as_uri()}#q=q3&sort=-query&metric=none&show=<b>")
    tab.page.reload()
    opened(tab, "q3")
    assert shown(tab) == ["q4", "q3", "q2", "q1"]
    tab.page.goto(f"{page.as_uri()}#q=q99")
    tab.page.locator("#drawer:not([open])").wait_for(state="attached")
    assert shown(tab) == ["q4", "q1", "q3", "q2"]
    tab.page.locator("nav a", has_text="Rules").click()
    has_hash(tab, "#q=q99")
    assert tab.page.locator("#method-heading").is_visible()
    assert not tab.said


@pytest.mark.parametrize(
    ("show", "wanted"),
    [
        ("better", ["q2"]),
        ("worse", ["q4", "q1"]),
        ("same", ["q3"]),
        ("zero", ["q4"]),
        ("undecided", []),
    ],
)
def test_queries_are_filtered(
    visit: Go, page: Path, show: str, wanted: list[str]
) -> None:
    tab = visit(page)
    tab.page.locator("#show").select_option(show)
    assert shown(tab) == wanted
    if not wanted:
        assert tab.page.locator("#where").text_content() == "no query fits"
        tab.page.locator("#clear").click()
        assert len(shown(tab)) == 4


def test_metrics_that_disagree_leave_a_query_undecided(
    visit: Go, tmp_path: Path
) -> None:
    # One more is found, and the first stands lower.
    gold = {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}}
    old, new = (
        karat.evaluate(run, gold=gold, metrics=["rr", "recall@3"], name=name)
        for name, run in (
            ("old", {"q1": ["a", "x", "y"], "q2": ["a"]}),
            ("new", {"q1": ["x", "a", "b"], "q2": ["a"]}),
        )
    )
    Leaderboard({"old": old, "new": new}).save(tmp_path / "r.html")
    tab = visit(tmp_path / "r.html")
    tab.page.locator("#show").select_option("undecided")
    assert shown(tab) == ["q1"]


def test_texts_and_documents_are_searched(visit: Go, page: Path) -> None:
    tab = visit(page)
    find = tab.page.locator("#find")
    find.fill("retrieves what is said")
    tab.page.locator("#where", has_text="1 to 1 of 1").wait_for()
    assert shown(tab) == ["q3"]
    has_hash(tab, "#find=retrieves+what+is+said")
    find.fill("d7")
    tab.page.locator("#where", has_text=re.compile("of 1$")).wait_for()
    assert shown(tab) == ["q1"]
    find.fill("nowhere at all")
    tab.page.locator("#where", has_text="no query fits").wait_for()
    tab.page.locator("#clear").click()
    assert len(shown(tab)) == 4
    assert tab.quiet()


def test_what_should_be_found_is_shown_though_nobody_found_it(
    visit: Go, page: Path
) -> None:
    tab = visit(page)
    tab.page.locator("button.open", has_text="q3").click()
    opened(tab, "q3")
    text = str(tab.page.locator(".gold").first.text_content())
    assert CORPUS["lost"] in text
    assert "old not found" in text
    assert "old rank 1" in text
    # A rank below the cutoff is a miss.
    tab.page.locator("#close").click()
    tab.page.locator("#metric").select_option("hit@1")
    tab.page.locator("button.open", has_text="q2").click()
    opened(tab, "q2")
    missed = tab.page.locator(".gold .missed").all_text_contents()
    assert missed == ["old rank 2, below 1"]


def test_keys_lead_through_the_queries(visit: Go, page: Path) -> None:
    tab = visit(page)
    focused = "document.activeElement.textContent"
    tab.page.keyboard.press("j")
    assert tab.page.evaluate(focused) == "q4"
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("k")
    assert tab.page.evaluate(focused) == "q1"
    tab.page.keyboard.press("Enter")
    opened(tab, "q1")
    tab.page.keyboard.press("k")
    opened(tab, "q4")
    # The next query that got worse; then there is none.
    tab.page.keyboard.press("n")
    opened(tab, "q1")
    tab.page.keyboard.press("n")
    tab.page.keyboard.press("?")
    tab.page.locator("#help[open]").wait_for()
    assert "next query that got worse" in str(tab.page.locator("#help").text_content())
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("fallow j")
    assert tab.page.locator("#find").input_value() == "fallow j"
    assert tab.page.evaluate("document.activeElement.id") == "find"
    assert tab.quiet()


def test_misses_tags_and_causes_lead_to_queries(visit: Go, tmp_path: Path) -> None:
    asked = [{"id": q, "text": t, "tags": [f"tag {q}"]} for q, t in QUERIES.items()]
    found = karat.diagnose(
        NEW, gold=GOLD, corpus=CORPUS, queries=asked, k=2, match="id"
    )
    (tmp_path / "d.html").write_text(found.to_html(), "utf-8")
    tab = visit(tmp_path / "d.html")
    links = tab.page.locator('a[href^="#q="]')
    assert links.count() == len(found.misses) > 1
    for place, query in enumerate(miss.query for miss in found.misses):
        assert str(links.nth(place).text_content()).startswith(query)
    links.first.click()
    opened(tab, found.misses[0].query)
    note = tab.page.locator(".diagnosis").first.text_content()
    assert found.misses[0].reason in str(note)
    tab.page.go_back()
    tab.page.locator("#drawer:not([open])").wait_for(state="attached")
    cause = found.misses[0].cause
    tab.page.locator('a[href^="#cause="]', has_text=cause).first.click()
    tab.page.locator("#clear").wait_for()
    wanted = {miss.query for miss in found.misses if miss.cause == cause}
    assert {*shown(tab)} == wanted
    assert tab.page.locator("#queries-heading").is_visible()
    tab.page.locator("#slices a", has_text="tag q1").click()
    tab.page.locator("#where", has_text="1 to 1 of 1").wait_for()
    assert shown(tab) == ["q1"]
    # From an open query its tag leads to its like.
    tab.page.locator("button.open").click()
    tab.page.locator("#drawer a.chip", has_text="tag q1").click()
    tab.page.locator("#drawer:not([open])").wait_for(state="attached")
    has_hash(tab, "#tag=tag+q1")
    assert not tab.said


def test_a_dot_opens_its_query(visit: Go, page: Path) -> None:
    tab = visit(page, viewport={"width": 1280, "height": 900})
    tab.page.locator('[data-q="q2"]').click()
    opened(tab, "q2")
    has_hash(tab, "#q=q2")


def test_of_many_runs_the_table_shows_two(visit: Go, tmp_path: Path) -> None:
    runs = {f"run {n}": scored(NEW if n % 2 else OLD, f"run {n}") for n in range(6)}
    Leaderboard(runs).save(tmp_path / "r.html")
    tab = visit(tmp_path / "r.html")
    heads = tab.page.locator("#table thead th").all_text_contents()
    assert [name for name in heads if name.startswith("run")] == ["run 0", "run 1"]
    tab.page.locator("#run").select_option("run 4")
    heads = tab.page.locator("#table thead th").all_text_contents()
    assert [name for name in heads if name.startswith("run")] == ["run 0", "run 4"]
    tab.page.locator("#show").select_option("same")
    assert len(shown(tab)) == 4


def test_a_name_comes_before_the_first_label(visit: Go, page: Path) -> None:
    tab = visit(page)
    tab.page.goto(f"{page.as_uri()}#q=q4")
    tab.page.reload()
    opened(tab, "q4")
    tab.page.locator("#labelling").click()
    # As the gold grades: from 0 to 3.
    grades = tab.page.locator(".pool > li").first.locator(".grade")
    assert grades.all_text_contents() == ["0", "1", "2", "3", "can't tell"]
    tab.page.keyboard.press("2")
    assert tab.page.locator("#label-count").text_content() == ""
    assert "Write your name" in str(tab.page.locator("[role=alert]").text_content())
    assert tab.page.evaluate("document.activeElement.id") == "who"
    tab.page.keyboard.type("Ann")
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.press("2")
    assert tab.page.locator("#label-count").text_content() == "1 label"
    # Who can't tell is asked what makes it hard, and goes on from there.
    tab.page.keyboard.press("?")
    tab.page.keyboard.type("out of date?")
    tab.page.keyboard.press("Enter")
    stored = tab.page.evaluate("Object.values(localStorage)[0]")
    given = [label for _, label in json.loads(stored)["labels"]]
    assert [label["grade"] for label in given] == [2, "can't tell"]
    assert given[1]["why"] == "out of date?"
    assert tab.quiet()


def test_the_next_unjudged_document_may_be_of_another_query(
    visit: Go, page: Path
) -> None:
    tab = visit(page)
    tab.page.locator("button.open", has_text="q3").click()
    opened(tab, "q3")
    tab.page.locator("#labelling").click()
    tab.page.locator("#who").fill("Ann")
    focused = "document.activeElement.querySelector('bdi')?.textContent"
    tab.page.locator("#unjudged").click()
    tab.page.wait_for_function(f"{focused} === 'd0'")
    tab.page.keyboard.press("1")
    tab.page.keyboard.press("u")
    opened(tab, "q2")
    tab.page.wait_for_function(f"{focused} === 'd0'")
    tab.page.keyboard.press("u")
    tab.page.locator("#unjudged-note", has_text="Nothing unjudged follows").wait_for()


def test_scores_follow_a_label_at_once(visit: Go, page: Path) -> None:
    tab = visit(page)
    tab.page.locator("button.open", has_text="q4").click()
    opened(tab, "q4")
    tab.page.locator("#labelling").click()
    tab.page.locator("#who").fill("Ann")
    for document, grade in (("d0", 3), ("d5", 1), ("d4", 0), ("d4", 2)):
        card = tab.page.locator(".pool > li", has_text=re.compile(f"^{document}"))
        card.get_by_role("button", name=f"grade {grade}", exact=True).click()
    rows = tab.page.locator("#drawer-scores tbody tr").all_inner_texts()
    told = [row.split("\t")[1:] for row in rows if row.startswith("with your labels")]
    gold = {**GOLD, "q4": {"d0": 3, "d5": 1, "d4": 2}}
    for said, run in zip(told, (OLD, NEW), strict=True):
        result = scored(run, "again", gold=gold)
        assert said == [f"{result[metric]['q4']:.4f}" for metric in METRICS]
    # Taken back, all is as before.
    for document, grade in (("d0", 3), ("d5", 1), ("d4", 2)):
        card = tab.page.locator(".pool > li", has_text=re.compile(f"^{document}"))
        card.get_by_role("button", name=f"grade {grade}", exact=True).click()
    assert "with your labels" not in str(
        tab.page.locator("#drawer-scores").text_content()
    )


def test_the_table_is_saved_as_csv(visit: Go, tmp_path: Path) -> None:
    run = {"=1+1": ["a"], 'q "2", x': ["b", "a"]}
    gold = {query: {"a": 1} for query in run}
    karat.evaluate(run, gold=gold, metrics=["rr"]).save(tmp_path / "r.html")
    tab = visit(tmp_path / "r.html")
    with tab.page.expect_download() as download:
        tab.page.locator("#csv").click()
    download.value.save_as(tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_bytes().decode()
    assert [*csv.reader(io.StringIO(text, newline=""))] == [
        ["query", "rr", "first rank"],
        ['q "2", x', "0.5", "2"],
        ["'=1+1", "1", "1"],
    ]


def test_the_first_column_stays_on_a_narrow_screen(visit: Go, page: Path) -> None:
    tab = visit(page, viewport={"width": 390, "height": 800})
    wide = tab.page.locator("#queries .scroll")
    assert wide.evaluate("e => e.scrollWidth > e.clientWidth")
    # A shadow says that there is more to the right.
    assert "linear-gradient" in wide.evaluate("e => getComputedStyle(e).background")
    left = "e => e.getBoundingClientRect().left"
    first = tab.page.locator("#table tbody th").first
    before = first.evaluate(left)
    wide.evaluate("e => { e.scrollLeft = e.scrollWidth }")
    assert first.evaluate(left) == before
    change = tab.page.locator("#table tbody td").last
    assert change.evaluate("e => e.getBoundingClientRect().right") <= 390


def test_paper_begins_with_the_result(visit: Go, page: Path) -> None:
    tab = visit(page, viewport={"width": 780, "height": 1100})
    tab.page.emulate_media(media="print")
    assert not tab.page.locator("nav").is_visible()
    assert not tab.page.locator("#tools").is_visible()
    for name in ("#verdict", "#comparison"):
        top = tab.page.locator(name).evaluate("e => e.getBoundingClientRect().top")
        assert 0 <= top < 900
    assert tab.page.pdf().startswith(b"%PDF")
