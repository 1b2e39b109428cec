"""The HTML report as text: what it holds, what it refuses to run, what it cuts."""

import base64
import gzip
import json
import re
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.data.tables import Table
from karat.reports.details import Details
from karat.reports.markup import page_of
from karat.reports.page import as_html

SAMPLES = [
    {
        "id": "q1",
        "query": "How long do refunds take?",
        "tags": ["refunds"],
        "retrieved": [
            {"id": "a", "text": "Ships on Monday."},
            {"id": "b", "text": "Refunds take five days after the return arrives."},
        ],
        "passages": ["Refunds take five days"],
    },
    {
        "id": "q2",
        "query": "Who pays?",
        "retrieved": [{"id": "c", "text": "Nobody knows \U0001f600 who pays."}],
        "passages": ["The sender pays for the way back"],
    },
]


# Nobody retrieves these, and no gold names them.
SELDOM = {f"d{n}" for n in range(24, 29)}


class Page(HTMLParser):
    """The scripts of a page by their type, its tags, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[str] = []
        self.inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        assert not [name for name, _ in attrs if name in {"style", "src"}]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        self.inside.append(data)
        if self.scripts and self.get_starttag_text() is not None:
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)


def data_of(page: str) -> Any:
    (found,) = unpacked(page, 'id="data"')
    return found


def unpacked(page: str, which: str) -> list[Any]:
    found = re.findall(rf"{which}>(.*?)</script>", page)
    return [json.loads(gzip.decompress(base64.b64decode(text))) for text in found]


def rows_of(page: str) -> list[Any]:
    return [row for block in unpacked(page, 'class="block"') for row in block]


def texts_of(page: str) -> list[Any]:
    return [text for block in unpacked(page, 'class="texts"') for text in block]


def evaluated(**options: Any) -> karat.Evaluation:
    return karat.evaluate(
        SAMPLES, metrics=["recall@1", "recall@5", "rr"], name="dense", **options
    )


def test_the_policy_allows_the_script_and_the_style_of_the_page_alone() -> None:
    page = evaluated().to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert policy is not None
    assert style is not None
    assert script is not None
    digests = [
        base64.b64encode(sha256(text[1].encode()).digest()).decode()
        for text in (script, style)
    ]
    assert policy[1] == (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src "
        f"'sha256-{digests[1]}'; base-uri 'none'; form-action 'none'"
    )
    assert "innerHTML" not in script[1]
    assert page.count("<style>") == 1
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_the_table_holds_every_query_and_the_blocks_their_texts() -> None:
    page = evaluated().to_html()
    data = data_of(page)
    assert data["queries"] == ["q1", "q2"]
    assert data["questions"] == ["How long do refunds take?", "Who pays?"]
    assert data["facets"]["tag"] == {"names": ["refunds"], "rows": [[0], []]}
    assert data["scores"] == [[[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]]
    assert data["first"] == [[2, 0]]
    first, texts = rows_of(page)[0], texts_of(page)
    ranked = [texts[n] for n in first["systems"][0]["ranking"]]
    assert ranked == [[d["id"], d["text"]] for d in SAMPLES[0]["retrieved"]]  # type: ignore[index]
    assert texts[first["gold"][0][2]][1] == "Refunds take five days"
    assert first["systems"][0]["found"] == [[2, 0]]


def test_evidence_names_the_characters_that_count() -> None:
    found = rows_of(evaluated().to_html())[0]["systems"][0]["evidence"]
    text = SAMPLES[0]["retrieved"][1]["text"]  # type: ignore[index]
    rank, _, ranges, share, _ = found[0]
    assert (rank, share) == (2, 1.0)
    assert "".join(text[a:b] for a, b in ranges) == "Refunds take five days"


def test_a_page_without_texts_holds_none() -> None:
    page = evaluated().without_texts().to_html()
    inside = json.dumps([data_of(page), rows_of(page), texts_of(page)]) + page
    for words in ("refunds take", "Ships on", "The sender pays", "Who pays"):
        assert words.lower() not in inside.lower()
    assert data_of(page)["queries"] == ["q1", "q2"]


def test_several_runs_share_the_texts_of_a_query() -> None:
    board = karat.leaderboard(
        {"one": SAMPLES, "two": SAMPLES}, metrics=["recall@5"], keep=5
    )
    page = board.to_html()
    retrieved = [text for text in texts_of(page) if text[0] is not None]
    assert len(retrieved) == 3
    assert [len(row["systems"]) for row in rows_of(page)] == [2, 2]


def test_a_text_is_in_the_page_once_however_often_it_was_retrieved() -> None:
    corpus = {f"d{n}": f"The text of document {n}." for n in range(30)}
    run = {f"q{n}": [*corpus][n % 5 : n % 5 + 20] for n in range(500)}
    gold = {query: {"d29": 1, "d3": 2} for query in run}
    result = karat.evaluate(run, gold=gold, corpus=corpus, keep=20, match="id")
    page = result.to_html()
    assert sorted(texts_of(page)) == sorted(
        [name, text] for name, text in corpus.items() if name not in SELDOM
    )
    # What should have been found says what it says, though nobody retrieved it.
    (_, grade, number), _ = rows_of(page)[0]["gold"]
    assert grade == 1
    assert texts_of(page)[number] == ["d29", corpus["d29"]]
    assert "document 29" not in result.without_texts().to_html()


def test_missed_documents_are_told_by_a_loaded_evaluation_too(tmp_path: Path) -> None:
    corpus = {"a": "Alpha.", "b": "Beta."}
    result = karat.evaluate(
        {"q": ["a"]},
        gold={"q": {"b": 1}},
        corpus=corpus,
        keep=5,
        match="id",
        force=True,
    )
    result.save(tmp_path / "r.json")
    page = karat.load(tmp_path / "r.json").to_html()
    assert ["b", "Beta."] in texts_of(page)


def test_the_grades_to_label_by_are_those_of_the_gold() -> None:
    def grades(gold: dict[str, dict[str, float]]) -> Any:
        return data_of(karat.evaluate({"q": ["a"]}, gold=gold).to_html())["grades"]

    assert grades({"q": {"a": 1}}) == [0, 1]
    assert grades({"q": {"a": 1, "b": 4}}) == [0, 1, 2, 3, 4]
    assert grades({"q": {"a": 0.5, "b": 1, "c": 2}}) == [0, 0.5, 1, 2]


def test_sections_come_in_the_order_in_which_one_asks() -> None:
    before, after = evaluated(), evaluated(depth=1)
    page = karat.compare(before, after, force=True, by_tag=True).to_html(before, after)
    found = re.findall(r'<a href="#([^"=]*)">', page)
    assert found == [
        *("verdict", "comparison", "change", "queries", "slices", "charts"),
        *("labels", "method"),
    ]
    assert [f'id="{name}"' in page for name in found] == [True] * len(found)
    assert 'href="#tag=refunds"' in page


def test_every_candidate_has_its_verdict() -> None:
    good, bad = (
        {f"q{n}": ["a", "b"] if n % 2 == m else ["b", "a"] for n in range(60)}
        for m in (0, 2)
    )
    gold = {query: {"a": 1} for query in good}
    best = {query: ["a", "b"] for query in good}
    runs = [
        karat.evaluate(run, gold=gold, metrics=["rr", "recall@1"], name=name)
        for name, run in (("half", good), ("none", bad), ("all", best))
    ]
    page = karat.compare(*runs).to_html(*runs)
    pills = re.findall(r'<strong class="(\w+)">([^<]*)</strong>( \w+)', page)
    assert pills == [
        ("bad", "worse on 2 (rr, recall@1)", " none"),
        ("good", "better on 2 (rr, recall@1)", " all"),
    ]


def test_what_would_be_too_large_is_cut_and_told() -> None:
    digits = "".join(str(n * n) for n in range(1000))
    long = [{**SAMPLES[0], "retrieved": [{"id": "a", "text": digits}]}]
    result = karat.evaluate(long, metrics=["recall@1"], keep=1)
    details = Details(karat.leaderboard({"run": result}))
    packed = details.packed(budget=2000)
    assert packed.note.startswith("Texts are cut to 2000 characters, to keep the page")
    assert json.loads(gzip.decompress(base64.b64decode(packed.texts[0])))[0] == [
        *("a", digits[:2000] + "\N{HORIZONTAL ELLIPSIS}")
    ]
    assert details.packed(budget=10).note.startswith("Texts are left out")


def test_a_comparison_has_its_verdict_and_moves() -> None:
    before, after = evaluated(), evaluated(depth=1)
    compared = karat.compare(before, after, force=True)
    assert compared.candidates == ("dense (2)",)
    page = compared.to_html(before, after)
    assert "ranks of relevant items, before and after" in page
    assert compared.differences[0].verdict in page
    alone = compared.to_html()
    assert "queries that changed most" in alone or "dense" in alone
    assert 'id="data"' not in alone


def test_the_same_results_make_the_same_page() -> None:
    assert evaluated().to_html() == evaluated().to_html()


def test_the_day_of_a_page_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert "on 1970-01-02" in evaluated().to_html()


def test_a_page_is_saved_by_its_ending(tmp_path: Path) -> None:
    result = evaluated()
    result.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text("utf-8") == result.to_html()
    result.save(tmp_path / "r.json")
    again = karat.load(tmp_path / "r.json")
    assert again == result
    # What was saved knows its texts, and what the gold said.
    assert rows_of(again.to_html()) == rows_of(result.to_html())
    assert texts_of(again.to_html()) == texts_of(result.to_html())


def test_hostile_tables_are_text() -> None:
    bad = "<img src=x onerror=alert(1)>"
    page = page_of(bad, [Table([bad], [[bad]], title=bad, notes=[bad])], lead=bad)
    assert "img" not in Page(page).tags
    assert bad in "".join(Page(page).inside)


def test_notes_and_more_tables_are_shown() -> None:
    result = evaluated()
    name = next(iter(result.traces[0].first_ranks))
    notes = {"q1": {name: ["split over chunks"]}}
    page = as_html(result, notes=notes, more={"Judge": [Table(["a"], [["b"]])]})
    assert rows_of(page)[0]["notes"] == {name: ["split over chunks"]}
    assert "Judge</h2>" in page


def test_evidence_that_is_not_word_for_word_comes_from_the_matcher() -> None:
    gold = "The warranty covers the pump, the filter and the heater for two years."
    parts = [
        "THE WARRANTY COVERS the pump, the filter",
        "and the heater for two years.",
    ]
    sample = {"id": "q", "retrieved": parts, "passages": [gold]}
    result = karat.evaluate([sample], metrics=["recall@5"])
    found = rows_of(result.to_html())[0]["systems"][0]["evidence"]
    assert [rank for rank, *_ in found] == [1, 2]
    for rank, _, ranges, _, _ in found:
        words = "".join(parts[rank - 1][a:b] for a, b in ranges)
        assert words.strip(" .") == parts[rank - 1].strip(" .")


def test_frames_and_rows_say_what_was_asked_and_retrieved() -> None:
    pytest.importorskip("pandas", reason="needs the extra frames")
    frame = evaluated().to_frame()
    assert frame["question"].tolist() == ["How long do refunds take?", "Who pays?"]
    assert frame["tags"].tolist() == [["refunds"], []]
    assert frame["documents"].tolist() == [["a", "b"], ["c"]]
    assert frame["texts"].tolist()[0][0] == "Ships on Monday."
    bare = evaluated().without_texts().per_query[0]
    assert {"question", "texts"} & {*bare} == set()
    # Ids alone are kept where they are asked for.
    rows = karat.evaluate({"q": ["a", "b"]}, gold={"q": ["a"]}, metrics="rr").per_query
    assert rows == [{"query": "q", "missing": False, "rr": 1.0}]
