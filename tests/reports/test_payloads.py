"""Hostile texts in files for people and in the terminal: shown, and harmless."""

import csv
import io
import re
import unicodedata

import pytest

import karat
from karat.reports import REPORTS
from karat.reports.terminal import show
from karat.results.leaderboard import Leaderboard
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
        show(table, stream)
    shown = stream.getvalue()
    assert not [c for c in shown if unicodedata.category(c)[0] == "C" and c != "\n"]
