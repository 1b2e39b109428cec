"""The layout of BEIR, as a folder and as single files."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

import karat
from karat.extend import FormatError
from karat.reading.readers import read

Save = Callable[[str, str | bytes], str]

QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\t7\t1\n"
QUERIES = (
    '{"_id": "q1", "text": "Why?", "metadata": {"source": "faq"}}\n'
    '{"_id": "q2", "text": "How?"}\n{"_id": "train", "text": "Not in the test."}\n'
)


@pytest.fixture
def folder(save: Save, tmp_path: Path) -> Path:
    save("set/corpus.jsonl", '{"_id": "d1", "title": "", "text": "Because."}\n')
    save("set/queries.jsonl", QUERIES)
    save("set/qrels/test.tsv", QRELS)
    save("set/qrels/train.tsv", QRELS.replace("q2", "train"))
    return tmp_path / "set"


def test_the_folder_is_gold_with_the_texts_of_its_queries(folder: Path) -> None:
    loaded = read(folder)
    assert loaded.format == "beir"
    assert loaded.gold is not None
    assert loaded.gold.name == "set"
    assert loaded.gold.documents == {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"7": 1.0}}
    assert {name: query.text for name, query in loaded.queries.items()} == {
        "q1": "Why?",
        "q2": "How?",
    }
    assert loaded.queries["q1"].metadata == {"source": "faq"}
    assert loaded.mapping == {
        "id": "query-id",
        "document": "corpus-id",
        "grade": "score",
    }


def test_a_split_is_read_by_naming_its_file(folder: Path) -> None:
    loaded = read(folder / "qrels" / "train.tsv")
    assert loaded.gold is not None
    assert loaded.gold.queries == ["q1", "train"]


def test_compressed_parts_are_found(folder: Path) -> None:
    for name in ("queries.jsonl", "qrels/test.tsv"):
        path = folder / name
        packed = path.with_name(path.name + ".gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    loaded = read(folder)
    assert loaded.gold is not None
    assert loaded.queries["q2"].text == "How?"


def test_several_splits_without_a_test_are_named(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "dev.tsv")
    with pytest.raises(FormatError, match="splits found: dev, train"):
        read(folder)


def test_a_broken_part_is_named_with_its_line(folder: Path) -> None:
    (folder / "queries.jsonl").write_text(QUERIES + "{oops\n")
    with pytest.raises(FormatError, match=r"queries\.jsonl:4: broken JSON"):
        read(folder)
    (folder / "qrels" / "test.tsv").write_text(QRELS + "q3\td1\tmany\n")
    with pytest.raises(FormatError, match=r"test\.tsv:5: query 'q3': score must be"):
        read(folder)


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is a folder that holds no data set"):
        read(tmp_path)


def test_queries_and_corpus_alone_are_neither_run_nor_gold(folder: Path) -> None:
    with pytest.raises(FormatError, match="no field holds gold"):
        read(folder / "queries.jsonl", role="gold")
    with pytest.raises(FormatError, match="no field holds retrieved documents"):
        read(folder / "corpus.jsonl")
    other = folder / "other.jsonl"
    other.write_text('{"doc_id": "d1", "text": "Because."}\n')
    with pytest.raises(FormatError, match="texts but no queries: a corpus"):
        read(other)


@pytest.mark.parametrize("qrels", ["qrels", "default"])
def test_a_folder_as_a_hub_lays_it_out(qrels: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    labels = [{"query-id": "q1", "corpus-id": "d2", "score": 1}]
    other = [{"query-id": "q9", "corpus-id": "d1", "score": 1}]
    parts = {
        f"{qrels}/test-00000-of-00001": labels,
        f"{qrels}/train-00000-of-00001": other,
        "queries/queries-00000-of-00001": [{"_id": "q1", "text": "what horses eat"}],
        "corpus/corpus-00000-of-00002": [{"_id": "d1", "text": "Rye is a grain."}],
        "corpus/corpus-00001-of-00002": [{"_id": "d2", "text": "Oats are for horses."}],
    }
    for name, rows in parts.items():
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    run = {"what horses eat": ["d1", "d2"]}
    assert karat.evaluate(run, gold=tmp_path, metrics=["rr"]).means == {"rr": 0.5}
    result = karat.evaluate(
        {"q1": ["d1", "d2"]},
        gold={"q1": ["Oats are for horses."]},
        queries=tmp_path,
        corpus=tmp_path,
        metrics=["rr"],
    )
    assert result.means == {"rr": 0.5}
