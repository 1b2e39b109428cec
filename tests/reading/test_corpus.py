"""Corpora give texts by document id, whatever they are written in."""

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import karat
from karat import read_corpus
from karat.extend import FormatError

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
        ("", "is empty: there is nothing to read"),
        ("[]", "1: a document must be"),
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
    with pytest.raises(FormatError, match=r"collection.tsv:2: has 1 cell, but there"):
        read_corpus(path)


TEXTS = {"a": "Rye\nA grain.", "2": "Oats."}
RECORDS: list[Any] = [
    {"passage_id": "a", "title": "Rye", "body": "A grain."},
    {"passage_id": 2, "title": None, "body": "Oats."},
]


def test_yaml_parquet_and_beir_are_corpora_too(tmp_path: Path) -> None:
    path = tmp_path / "corpus.yaml"
    path.write_text("- {_id: a, title: Rye, text: A grain.}\n- {_id: 2, text: Oats.}\n")
    assert read_corpus(path) == TEXTS
    pytest.importorskip("pyarrow")
    path = tmp_path / "corpus.parquet"
    pd.DataFrame({"uid": ["a", "2"], "text": [*TEXTS.values()]}).to_parquet(path)
    assert read_corpus(path) == TEXTS
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    with pytest.raises(FormatError, match="has no corpus"):
        read_corpus(folder)
    (folder / "corpus.jsonl").write_text(LINES)
    assert read_corpus(folder) == TEXTS


@pytest.mark.parametrize(
    "corpus",
    [
        TEXTS,
        RECORDS,
        (record for record in RECORDS),
        {"documents": RECORDS},
        {"a": {"text": TEXTS["a"]}, "2": {"contents": "Oats."}},
        pd.DataFrame({"node_id": ["a", "2"], "chunk": [*TEXTS.values()]}),
        [SimpleNamespace(id=k, page_content=v) for k, v in TEXTS.items()],
        [
            SimpleNamespace(page_content=v, metadata={"doc_id": k})
            for k, v in TEXTS.items()
        ],
    ],
)
def test_python_objects_are_corpora(corpus: Any) -> None:
    read = karat.read_corpus(corpus)
    assert isinstance(read, karat.Corpus)
    assert read == TEXTS


def test_fields_of_a_corpus_can_be_named() -> None:
    records = [{"key": {"nr": "a"}, "words": "Oats.", "text": "no"}]
    mapping = {"document": "key.nr", "text": "words"}
    assert karat.read_corpus(records, mapping=mapping) == {"a": "Oats."}
    with pytest.raises(FormatError, match="document 1: a document has no wrds; fields"):
        karat.read_corpus(records, mapping=mapping | {"text": "wrds"})


def test_cells_may_be_long_and_texts_empty(tmp_path: Path) -> None:
    path = tmp_path / "corpus.csv"
    path.write_text(f"docId,text\na,{'x' * 200_000}\nb,\n", "utf-8")
    assert {k: len(v) for k, v in read_corpus(path).items()} == {"a": 200_000, "b": 0}


def test_only_the_texts_that_are_wanted_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(LINES)
    assert read_corpus(path, ids={"2", "9"}) == {"2": "Oats."}
    assert repr(read_corpus(path)) == "Corpus of 2 documents from corpus.jsonl"


def test_what_is_no_corpus_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 d1 1 1 t\n")
    with pytest.raises(FormatError, match="the format trec_run, which holds no texts"):
        read_corpus(path)
