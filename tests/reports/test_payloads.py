"""Hostile texts in files for people and in the terminal: shown, and harmless."""

import csv
import io
import re
import unicodedata

import pytest

import karat
from karat import Leaderboard
from karat.reports import REPORTS
from karat.reports.terminal import show_table, show_text
from tests.reports.payloads import payloads

TEXTS = payloads()


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    samples = [
        {
            "id": text,
            "query": text,
            "tags": [text],
            "retrieved": [{"id": text, "text": text}],
            "relevant": {"nothing": 1},
        }
        for text in TEXTS
    ]
    name = TEXTS[0]
    result = karat.evaluate(
        samples, metrics=["recall@5"], keep=3, name=name, match="id", force=True
    )
    return Leaderboard({name: result}, notes=TEXTS)


def test_there_are_500_different_ones() -> None:
    assert len({*TEXTS}) == len(TEXTS) == 500


def test_no_cell_is_a_formula_and_none_loses_a_letter(board: Leaderboard) -> None:
    rows = list(csv.DictReader(io.StringIO(REPORTS["csv"](board, ()), newline="")))
    for row, text in zip(rows, TEXTS, strict=True):
        for cell in row.values():
            assert not cell.startswith(tuple("=+-@\t\r\n\uff1d"))
        assert text in {row["question"], row["question"].removeprefix("'")}


def test_markdown_holds_no_markup_and_no_link(board: Leaderboard) -> None:
    tables = [board.summary(), *board.by_tag()]
    text = REPORTS["md"](board, tables)
    assert "queries that score lowest" in text
    assert not re.search(r"<|(?<!\\)\]\(|(?<!\\)`", text)
    assert {
        len(re.findall(r"(?<!\\)\|", li)) for li in text.splitlines() if li[:1] == "|"
    }
    assert not [c for c in text if unicodedata.category(c)[0] == "C" and c != "\n"]


def test_the_terminal_is_not_told_what_to_do(board: Leaderboard) -> None:
    stream = io.StringIO()
    for table in (board.summary(), *board.by_tag()):
        show_table(table, stream)
    shown = stream.getvalue()
    assert not [c for c in shown if unicodedata.category(c)[0] == "C" and c != "\n"]


def test_texts_keep_their_lines_and_show_what_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    stream = io.StringIO()
    text = "Policy\n\nRefunds take five days after it arrives.\x02\x1b[31m"
    show_text("rank 1: b", text, [(8, 30)], stream)
    assert stream.getvalue() == (
        "rank 1: b:\n  Policy\n  \n  «Refunds take five\n  days» after it\n"
        "  arrives.??[31m\n"
    )


def test_no_text_that_is_explained_tells_the_terminal_what_to_do() -> None:
    stream = io.StringIO()
    for text in TEXTS:
        show_text(text, text, [(0, 3)], stream)
    shown = stream.getvalue()
    assert not [c for c in shown if unicodedata.category(c)[0] == "C" and c != "\n"]


def test_an_explanation_holds_texts_and_names_gold_by_its_words() -> None:
    sample = {
        "id": "q1",
        "query": "How long?",
        "retrieved": ["Ships\nsoon.", "Refunds take five days after the return."],
        "passages": ["Refunds take five days", "Nobody found this passage yet"],
    }
    found = karat.explain([sample], "q1", metrics=["recall@5"], match="span")
    told = {one.title: one for one in found.texts}
    assert [*told] == [
        "gold, found at rank 2",
        "gold, not found",
        "rank 1",
        "rank 2, counts",
    ]
    marks = told["rank 2, counts"].marks
    text = told["rank 2, counts"].text
    assert [text[start:end] for start, end in marks] == ["Refunds take five days"]
    assert found.tables[-1].rows[0][0] == "Refunds take five days"
