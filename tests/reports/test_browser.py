"""The report in a real browser: nothing in it runs, and everything in it works."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import karat
from karat import Leaderboard
from karat.data.judgements import Verdict
from tests.reports.conftest import Visit
from tests.reports.payloads import payloads
from tests.reports.test_page import evaluated

pytestmark = pytest.mark.browser
Go = Callable[..., Visit]
WORDS = ("grain", "rye", "oats", "wheat", "barn", "field", "winter", "seed", "straw")


def words(number: int, length: int) -> str:
    """About so many characters, others for each number."""
    text: list[str] = []
    while sum(map(len, text)) + len(text) < length:
        number = (number * 1103515245 + 12345) % 2**31
        text.append(f"{WORDS[number % len(WORDS)]}{number % 997}")
    return " ".join(text)[:length]


def large(queries: int, documents: int, length: int) -> Leaderboard:
    samples = [
        {
            "id": f"q{q}",
            "query": words(q, 60),
            "tags": [f"tag {q % 7}"],
            "retrieved": [
                {"id": f"d{q}-{d}", "text": words(q * 1000 + d, length)}
                for d in range(documents)
            ],
            "relevant": {f"d{q}-{q % documents}": 1},
        }
        for q in range(queries)
    ]
    result = karat.evaluate(
        samples, metrics=["recall@5", "ndcg@10"], keep=documents, match="id"
    )
    return Leaderboard({"run": result})


def hostile() -> Leaderboard:
    """A report with a payload in every text field of every query."""
    texts = payloads()
    samples = [
        {
            "id": f"{n} {text}",
            "query": text,
            "tags": [text],
            "retrieved": [{"id": text, "text": text}, {"id": "b", "text": text * 2}],
            "passages": [text + " and words that nobody has retrieved at all"],
        }
        for n, text in enumerate(texts)
    ]
    result = karat.evaluate(samples, metrics=["recall@5"], match="normalized", keep=5)
    (name,) = result.matches
    verdicts = {
        n: (Verdict("c", text, (1,), reason=text), Verdict("d", text, failure=text))
        for n, text in enumerate(texts)
    }
    judged = {name: replace(result.matches[name], verdicts=verdicts)}
    runs = {
        f"{n}{text}": replace(
            result, run=f"{n}{text}", gold=text, matches=judged, facts=result.facts
        )
        for n, text in enumerate(texts[30:500:250])
    }
    return Leaderboard(runs, notes=texts)


# Goes through all queries as the button does, and reads what each drawer shows: id,
# question, name and text of the first document, and its name where labels are given.
WALK = """async () => {
  const all = [];
  const text = (where) => document.querySelector(where).textContent;
  for (;;) {
    const id = text(".bar + p bdi");
    const shown = [text("#drawer-title")];
    shown.push(text(".ranking bdi"), text(".ranking .document-text"));
    document.getElementById("labelling").click();
    shown.push(text(".pool bdi"));
    document.getElementById("labelling").click();
    all.push([id, ...shown]);
    const next = document.getElementById("next");
    if (next.disabled) return all;
    next.click();
    while (text(".bar + p bdi") === id) await new Promise((go) => setTimeout(go, 1));
  }
}"""


@pytest.mark.slow
@pytest.mark.parametrize("policy", [True, False])
def test_no_text_in_any_field_runs_or_asks_for_anything(
    visit: Go, tmp_path: Path, *, policy: bool
) -> None:
    board = hostile()
    texts = payloads()
    board.save(tmp_path / "r.html")
    size = {"width": 1280, "height": 900}
    tab = visit(tmp_path / "r.html", viewport=size, bypass_csp=not policy)
    shown: list[str] = []
    for _ in range(5):
        shown += tab.page.locator("#table tbody th").all_text_contents()
        if tab.page.locator("#forth").is_enabled():
            tab.page.locator("#forth").click()
    assert shown == [f"{n} {text}" for n, text in enumerate(texts)]
    while tab.page.locator("#back").is_enabled():
        tab.page.locator("#back").click()
    tab.page.locator("button.open").first.click()
    tab.page.locator("#drawer[open]").wait_for()
    seen = tab.page.evaluate(WALK)
    assert seen == [[f"{n} {text}", *[text] * 4] for n, text in enumerate(texts)]
    tab.page.keyboard.press("Escape")
    assert tab.quiet(), (tab.said[:3], tab.asked[:3])


def test_the_table_sorts_filters_and_searches(visit: Go, tmp_path: Path) -> None:
    large(300, 6, 80).save(tmp_path / "r.html")
    tab = visit(tmp_path / "r.html")
    where, ids = tab.page.locator("#where"), tab.page.locator("#table tbody th")
    assert where.text_content() == "1 to 100 of 300"
    tab.page.locator("#find").fill("Q29")
    # Ids and questions are there at once; texts follow, and none of them says more.
    tab.page.locator("#where", has_text=re.compile("of 11$")).wait_for()
    assert where.text_content() == "1 to 11 of 11"
    tab.page.locator("#find").fill("")
    tab.page.locator("#tag").select_option(label="tag 3")
    assert where.text_content() == "1 to 43 of 43"
    tab.page.locator("#tag").select_option("")
    tab.page.locator("#show").select_option("part")
    low = int(str(where.text_content()).split()[-1])
    assert 0 < low < 300
    tab.page.locator("#show").select_option("")
    tab.page.locator("button.sort", has_text="ndcg@10").click()
    assert tab.page.locator("#table tbody td.number").nth(1).text_content() == "0.3562"
    assert tab.page.locator("[aria-sort=ascending]").count() == 1
    tab.page.locator("button.sort", has_text="ndcg@10").click()
    assert ids.first.text_content() == "q0"
    assert tab.quiet()


def test_the_drawer_marks_evidence_and_compares_runs(visit: Go, tmp_path: Path) -> None:
    board = Leaderboard({"one": evaluated(), "two": evaluated()})
    board.save(tmp_path / "r.html")
    tab = visit(tmp_path / "r.html")
    tab.page.locator("#table tbody tr").first.click()
    tab.page.locator("#drawer[open]").wait_for()
    marks = tab.page.locator("#drawer mark")
    assert marks.all_text_contents() == ["Refunds take five days"] * 2
    assert tab.page.locator(".side > div").count() == 2
    assert "rank 2" in str(tab.page.locator(".gold").first.text_content())
    tab.page.keyboard.press("ArrowRight")
    tab.page.locator("#drawer-title", has_text="Who pays?").wait_for()
    assert "not found" in str(tab.page.locator(".gold").first.text_content())
    tab.page.keyboard.press("Escape")
    assert tab.page.locator("#drawer[open]").count() == 0
    assert tab.quiet()


def test_labels_given_in_the_page_arrive_in_the_gold(visit: Go, tmp_path: Path) -> None:
    run = {"q1": ["a", "b", "c"], "q2": ["c", "d"]}
    gold = {"q1": {"a": 1}, "q2": {"x": 3}}
    karat.evaluate(run, gold=gold, keep=5, metrics=["recall@5"]).save(
        tmp_path / "r.html"
    )
    tab = visit(tmp_path / "r.html")
    tab.page.locator("button.open", has_text="q1").click()
    tab.page.locator("#labelling").click()
    tab.page.locator("#who").fill("Ann Lee")
    tab.page.locator(".pool > li").first.focus()
    for key in ("3", "0", "2"):
        tab.page.keyboard.press(key)
    tab.page.locator(".pool .why").first.fill("says it in so many words")
    tab.page.locator(".pool > li").first.focus()
    # The worst query stands first.
    tab.page.keyboard.press("ArrowLeft")
    tab.page.locator("#drawer-title", has_text="q2").wait_for()
    tab.page.locator(".pool button.grade", has_text="1").first.click()
    tab.page.locator(".pool button.grade", has_text="1").first.click()
    tab.page.locator(".pool button.grade", has_text="1").nth(1).click()
    tab.page.locator("#shuffle").check()
    assert tab.page.locator(".pool > li").count() == 2
    tab.page.locator("#close").click()
    assert tab.page.locator("#label-count").text_content() == "4 labels"
    with tab.page.expect_download() as download:
        tab.page.locator("#download").click()
    download.value.save_as(tmp_path / "labels.jsonl")
    lines = (tmp_path / "labels.jsonl").read_text("utf-8").splitlines()
    given = [json.loads(line) for line in lines]
    assert [label["who"] for label in given] == ["Ann Lee"] * 4
    assert given[0]["why"] == "says it in so many words"
    done = karat.apply_labels(tmp_path / "labels.jsonl", gold)
    assert done.gold.documents == {
        "q1": {"a": 3, "b": 0, "c": 2},
        "q2": {"x": 3, "d": 1},
    }
    assert (done.added, len(done.changed), done.outdated) == (3, 1, ())
    sources = {who for row in done.gold.sources.values() for who in row.values()}
    assert all(re.fullmatch(r"human:Ann_Lee@\d{4}-\d\d-\d\d", who) for who in sources)
    # They stay in the browser, also when the page is opened anew; it writes them down
    # in its own time.
    tab.page.wait_for_timeout(1000)
    tab.page.reload()
    tab.page.locator("#label-count", has_text="4 labels").wait_for()
    assert not tab.said


@pytest.mark.slow
def test_a_large_report_is_built_and_shown_soon(visit: Go, tmp_path: Path) -> None:
    board = large(1000, 20, 500)
    start = time.process_time()
    page = board.to_html()
    assert time.process_time() - start < 3
    assert len(page.encode()) < 8_000_000
    (tmp_path / "r.html").write_text(page, "utf-8")
    tab = visit(tmp_path / "r.html")
    painted = "performance.getEntriesByName('first-contentful-paint').length"
    assert tab.page.evaluate(painted) == 1
    assert tab.seconds() < 1
    tab.page.locator("button.open").nth(50).click()
    tab.page.locator(".document-text").first.wait_for()
    assert tab.quiet()


@pytest.mark.slow
def test_ten_thousand_queries_are_a_table_soon(visit: Go, tmp_path: Path) -> None:
    large(10_000, 5, 60).save(tmp_path / "r.html")
    tab = visit(tmp_path / "r.html")
    tab.page.locator("button.sort", has_text="ndcg@10").click()
    tab.page.locator("[aria-sort=ascending]", has_text="ndcg@10").wait_for()
    assert tab.seconds() < 2
    assert tab.page.locator("#where").text_content() == "1 to 100 of 10000"


def serious(tab: Visit) -> list[tuple[str, str]]:
    """What shuts somebody out, and where; the page has axe."""
    found: Any = tab.page.evaluate("async () => (await axe.run()).violations")
    return [
        (one["id"], one["nodes"][0]["html"][:200])
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nobody_is_locked_out(
    visit: Go, tmp_path: Path, axe: str, scheme: str, width: int
) -> None:
    board = Leaderboard({"one": evaluated(), "two": evaluated(depth=1)})
    compared = karat.compare(board["one"], board["two"], force=True)
    page = compared.to_html(*board.values())
    (tmp_path / "r.html").write_text(page, "utf-8")
    size = {"width": width, "height": 800}
    options = {"color_scheme": scheme, "viewport": size, "bypass_csp": True}
    tab = visit(tmp_path / "r.html", **options)
    tab.page.evaluate(axe)
    for state in ("page", "drawer", "labelling"):
        if state == "drawer":
            tab.page.locator("button.open").first.click()
            tab.page.locator("#drawer[open]").wait_for()
        if state == "labelling":
            tab.page.locator("#labelling").click()
        assert serious(tab) == []
    # Nothing sticks out of a narrow screen.
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width


def test_documents_are_labelled_blind_without_any_gold(
    visit: Go, tmp_path: Path
) -> None:
    same = {"probability": 0.5, "pool": "p", "drawn": "pairs", "k": 5, "runs": "r"}
    rows = [
        json.dumps({"query": query, "document": name, **same})
        for query, name in (("q1", "a"), ("q1", "b"), ("q2", "c"), ("q1", "d"))
    ]
    (tmp_path / "todo.jsonl").write_text("\n".join(rows))
    command = [sys.executable, "-m", "karat", "label", "new", "todo.jsonl"]
    subprocess.run([*command, "-o", "l.html"], cwd=tmp_path, check=True)
    tab = visit(tmp_path / "l.html")
    assert tab.page.locator("#table thead th").count() == 1
    tab.page.locator("button.open").first.click()
    tab.page.locator(".pool > li").first.wait_for()
    assert tab.page.locator("#labelling, #shuffle, .gold").count() == 0
    tab.page.locator("#who").fill("Ann")
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.press("3")
    tab.page.keyboard.press("0")
    tab.page.locator("#next").click()
    tab.page.keyboard.press("1")
    tab.page.keyboard.press("ArrowRight")
    tab.page.locator(".pool > li", has_text="d").wait_for()
    tab.page.keyboard.press("2")
    tab.page.locator("#close").click()
    with tab.page.expect_download() as download:
        tab.page.locator("#download").click()
    download.value.save_as(tmp_path / "labels.jsonl")
    gold = karat.apply_labels(tmp_path / "labels.jsonl").gold
    assert gold.documents == {"q1": {"a": 3, "b": 0, "d": 2}, "q2": {"c": 1}}
    assert tab.quiet()


CHECK = (sys.executable, "-m", "karat", "label")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """A page of four questions to check, three of which were drawn."""
    rows = [
        {
            "id": name,
            "query": f"What is <b>{name}</b>?",
            "reference": f"It is {name}.",
            "relevant": {f"d-{name}": 3},
            "claims": [f"{name} is."],
            "spans": [
                {"doc": f"d-{name}", "start": 0, "end": 10, "text": f"{name} is here."}
            ],
            "metadata": {"prompts": "1", "checks": {"leak": "no words in a row"}}
            | ({} if name == "d" else {"checked": ""}),
        }
        for name in "abcd"
    ]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "questions.jsonl").write_text(lines)
    page = [*CHECK, "questions.jsonl", "-o", "check.html"]
    subprocess.run(page, cwd=tmp_path, check=True)
    return tmp_path / "check.html"


@pytest.fixture
def check(visit: Go, questions: Path) -> Visit:
    """That page in a browser."""
    return visit(questions)


def asks(tab: Visit, query: str) -> None:
    """Wait until the question of a query is open."""
    tab.page.locator("#drawer-title", has_text=f"<b>{query}</b>").wait_for()


def test_questions_are_kept_fixed_and_dropped_by_keys(
    check: Visit, tmp_path: Path
) -> None:
    page, keyboard = check.page, check.page.keyboard
    order = page.locator("button.open").all_text_contents()
    assert ({*order[:3]}, order[3]) == ({*"abc"}, "d")
    keyboard.press("j")
    keyboard.press("Enter")
    asks(check, order[0])
    text = str(page.locator("#drawer").text_content())
    for said in (f"It is {order[0]}.", f"{order[0]} is here.", "no words in a row"):
        assert said in text
    # A name comes before the first decision.
    keyboard.press("k")
    page.locator("[role=alert]", has_text="every decision is signed").wait_for()
    keyboard.type("Ann")
    keyboard.press("Enter")
    keyboard.press("k")
    asks(check, order[1])
    keyboard.press("f")
    page.locator("textarea").first.wait_for()
    keyboard.press("Control+A")
    keyboard.type("Why keep it, or drop it?")
    keyboard.press("Tab")
    keyboard.press("Control+End")
    keyboard.type(" Indeed.")
    keyboard.press("Tab")
    keyboard.type("vague")
    keyboard.press("Enter")
    asks(check, order[2])
    keyboard.press("d")
    keyboard.type("known")
    keyboard.press("Enter")
    asks(check, "d")
    keyboard.press("Escape")
    assert page.locator("#label-count").text_content() == "3 decisions"
    page.locator("#download").focus()
    with page.expect_download() as download:
        keyboard.press("Enter")
    assert download.value.suggested_filename == "decisions.jsonl"
    download.value.save_as(tmp_path / "decisions.jsonl")
    decided = (tmp_path / "decisions.jsonl").read_text().splitlines()
    facts = [json.loads(line) for line in decided]
    assert [(one["query"], one["decision"], one.get("why")) for one in facts] == [
        (order[0], "keep", None),
        (order[1], "fix", "vague"),
        (order[2], "drop", "known"),
    ]
    applied = [*CHECK, "apply", "questions.jsonl", "decisions.jsonl"]
    subprocess.run([*applied, "-o", "kept.jsonl"], cwd=tmp_path, check=True)
    kept = map(json.loads, (tmp_path / "kept.jsonl").read_text().splitlines())
    left = {row["id"]: (row["query"], row["reference"]) for row in kept}
    assert left[order[1]] == ("Why keep it, or drop it?", f"It is {order[1]}. Indeed.")
    assert [*left] == sorted({*"abcd"} - {order[2]})
    assert check.quiet()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_nobody_is_locked_out_of_questions(
    visit: Go, questions: Path, axe: str, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 800}
    tab = visit(questions, color_scheme=scheme, viewport=size, bypass_csp=True)
    tab.page.evaluate(axe)
    assert serious(tab) == []
    tab.page.locator("button.open").first.click()
    tab.page.locator("#who").fill("Ann")
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.press("f")
    tab.page.locator("textarea").first.wait_for()
    assert serious(tab) == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width


def test_decisions_stay_and_are_taken_back(check: Visit) -> None:
    page, keyboard = check.page, check.page.keyboard
    page.locator("button.open").last.click()
    asks(check, "d")
    page.locator("#who").fill("Ann")
    keyboard.press("Enter")
    keyboard.press("f")
    page.locator("textarea").first.fill("Who is d?")
    keyboard.press("Escape")
    page.locator("button.open").last.click()
    page.locator("textarea").first.wait_for()
    assert page.locator("textarea").first.input_value() == "Who is d?"
    page.locator(".pool > li").focus()
    keyboard.press("f")
    assert page.locator("textarea").count() == 0
    assert page.locator("#label-count").text_content() == ""
    # Back to a question that waits for a decision, past one that has one.
    keyboard.press("ArrowLeft")
    page.locator("#drawer-title", has_text="<b>d</b>").wait_for(state="detached")
    keyboard.press("k")
    asks(check, "d")
    assert page.locator("#label-count").text_content() == "1 decision"
    assert not check.said


def test_runs_stand_side_by_side_without_any_gold(visit: Go, tmp_path: Path) -> None:
    for name, first in (("a", ["Rye.", "Oats."]), ("b", ["Wheat.", "Rye."])):
        samples = [
            {"id": "q1", "question": "Same?", "retrieved_contexts": ["Barn."]},
            {"id": "q2", "question": "Which grain?", "retrieved_contexts": first},
        ]
        lines = "".join(f"{json.dumps(sample)}\n" for sample in samples)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    command = [sys.executable, "-m", "karat", "agree", "a.jsonl", "b.jsonl"]
    subprocess.run([*command, "-o", "agree.html"], cwd=tmp_path, check=True)
    tab = visit(tmp_path / "agree.html")
    heads = tab.page.locator("#table thead th")
    assert heads.all_text_contents() == ["query", "question", "rbo ↑"]
    tab.page.locator("button.open").first.click()
    tab.page.locator("#drawer-title", has_text="Which grain?").wait_for()
    sides = tab.page.locator(".side > div").all_text_contents()
    assert [side.find("Rye.") > side.find("Oats.") for side in sides] == [False, True]
    assert tab.page.locator(".side .chip").count() == 0
    tab.page.locator("#labelling").click()
    assert tab.page.locator(".pool > li").count() == 3
    assert tab.quiet()
