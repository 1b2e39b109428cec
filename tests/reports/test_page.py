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
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def blocks_of(page: str) -> list[Any]:
    found = re.findall(r'class="block">(.*?)</script>', page)
    return [json.loads(gzip.decompress(base64.b64decode(text))) for text in found]


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
    assert [[data["tags"][n] for n in row] for row in data["tagged"]] == [
        ["refunds"],
        [],
    ]
    assert data["scores"] == [[[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]]
    assert data["first"] == [[2, 0]]
    (block,) = blocks_of(page)
    assert ["b", SAMPLES[0]["retrieved"][1]["text"]] in block["documents"]  # type: ignore[index]
    first = block["rows"][0]
    assert first["gold"][0][2] == "Refunds take five days"
    assert first["systems"][0]["first"] == [2]


def test_evidence_names_the_characters_that_count() -> None:
    (block,) = blocks_of(evaluated().to_html())
    found = block["rows"][0]["systems"][0]["evidence"]
    text = SAMPLES[0]["retrieved"][1]["text"]  # type: ignore[index]
    rank, _, ranges, share, _ = found[0]
    assert (rank, share) == (2, 1.0)
    assert "".join(text[a:b] for a, b in ranges) == "Refunds take five days"


def test_a_page_without_texts_holds_none() -> None:
    page = evaluated().without_texts().to_html()
    inside = json.dumps(blocks_of(page)) + page
    for words in ("refunds take", "Ships on", "The sender pays", "Who pays"):
        assert words.lower() not in inside.lower()
    assert data_of(page)["queries"] == ["q1", "q2"]


def test_several_runs_share_the_texts_of_a_query() -> None:
    board = karat.leaderboard(
        {"one": SAMPLES, "two": SAMPLES}, metrics=["recall@5"], keep=5
    )
    (block,) = blocks_of(board.to_html())
    assert len(block["documents"]) == 3
    assert [len(row["systems"]) for row in block["rows"]] == [2, 2]


def test_what_would_be_too_large_is_cut_and_told() -> None:
    digits = "".join(str(n * n) for n in range(1000))
    long = [{**SAMPLES[0], "retrieved": [{"id": "a", "text": digits}]}]
    result = karat.evaluate(long, metrics=["recall@1"], keep=1)
    details = Details(karat.leaderboard({"run": result}))
    blocks, told = details.blocks(budget=2000)
    assert told == "Texts are cut to 2000 characters, to keep the page below 0 MB."
    assert json.loads(gzip.decompress(base64.b64decode(blocks[0])))["documents"] == [
        ["a", digits[:2000] + "\N{HORIZONTAL ELLIPSIS}"]
    ]
    _, told = details.blocks(budget=10)
    assert told.startswith("Texts are left out")


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
    # What was saved knows its texts, but not what the gold said.
    (block,) = blocks_of(again.to_html())
    assert block["rows"][0]["question"] == "How long do refunds take?"


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
    assert blocks_of(page)[0]["rows"][0]["notes"] == {name: ["split over chunks"]}
    assert "Judge</h2>" in page


def test_evidence_that_is_not_word_for_word_comes_from_the_matcher() -> None:
    gold = "The warranty covers the pump, the filter and the heater for two years."
    parts = [
        "THE WARRANTY COVERS the pump, the filter",
        "and the heater for two years.",
    ]
    sample = {"id": "q", "retrieved": parts, "passages": [gold]}
    result = karat.evaluate([sample], metrics=["recall@5"])
    (block,) = blocks_of(result.to_html())
    found = block["rows"][0]["systems"][0]["evidence"]
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
