"""Corpora give texts by document id, whatever they are written in."""

import gzip
from pathlib import Path

import pytest

from karat.errors import FormatError
from karat.reading.meaning.corpus import read_corpus

LINES = (
    '{"_id": "a", "title": "Rye", "text": "A grain."}\n\n{"_id": 2, "text": "Oats."}\n'
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("corpus.jsonl", LINES),
        ("corpus.txt", LINES),
        ("corpus.json", '{"a": "Rye\\nA grain.", "2": "Oats."}'),
        (
            "list.json",
            (
                '[{"id": "a", "contents": "Rye\\nA grain."},'
                ' {"docno": "2", "content": "Oats."}]'
            ),
        ),
        ("corpus.csv", 'id,title,text\na,Rye,A grain.\n2,,"Oats."\n'),
        ("corpus.tsv", "doc_id\ttitle\tpassage\na\tRye\tA grain.\n2\t\tOats.\n"),
        ("pairs.csv", 'a,"Rye\nA grain."\n2,Oats.\n'),
    ],
)
def test_every_shape_gives_the_same_texts(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert read_corpus(path) == {"a": "Rye\nA grain.", "2": "Oats."}
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_corpus(packed) == read_corpus(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "holds no documents"),
        ('{"id": "a"}', "1: a document has no text; fields found: id"),
        ('{"id": "a", "text": "x"}\n{"text": "y"}', "2: a document has no id"),
        ('{"id": "a", "text": "x"}\n3', "2: a document must be an object"),
        ('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}', "2: 'a' has two texts"),
        ('{"id": "a", "text": ', "1"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(FormatError) as caught:
        read_corpus(path)
    assert str(caught.value).startswith(str(path))
    assert sentence in str(caught.value)


def test_two_columns_without_names_are_an_id_and_a_text(tmp_path: Path) -> None:
    path = tmp_path / "collection.tsv"
    path.write_text('0\t"Rye" is a grain.\n1\tOats, too.\n', "utf-8")
    assert read_corpus(path) == {"0": '"Rye" is a grain.', "1": "Oats, too."}
    path.write_text("0\tRye.\n1\n", "utf-8")
    with pytest.raises(FormatError, match=r"collection.tsv:2: a document has no text"):
        read_corpus(path)
