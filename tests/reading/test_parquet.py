"""Parquet and Arrow files, and folders of them."""

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import feather, parquet

from karat import Dataset, Gold, Run, read_gold
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.extend import (
    Document,
    FormatError,
    Item,
    MissingExtraError,
    Policies,
    Query,
    Source,
)
from karat.reading import arrow as arrow_arrays
from karat.reading.tables import PARQUET
from karat.reading.write import write

RUN = pa.table(
    {"qid": ["q1", "q1", "q2"], "docid": ["a", "b", "a"], "score": [0.5, 0.9, 0.1]}
)
FORMAT = PARQUET


def rankings(run: Run | None) -> dict[str, list[Document]]:
    assert run is not None
    return dict(run.rankings(Policies()))


def ids(run: Run | None) -> dict[str, list[str | None]]:
    return {query: [d.id for d in found] for query, found in rankings(run).items()}


def read(path: object, role: Any = None, **mapping: str) -> Dataset:
    return FORMAT.read(Source(str(path), role, mapping))


def written(table: Any, path: Path) -> Path:
    parquet.write_table(table, path)
    return path


def test_files_are_known_by_their_first_bytes(tmp_path: Path) -> None:
    file = written(RUN, tmp_path / "run")
    assert FORMAT.sniff(file.read_bytes(), "run")
    feather.write_feather(RUN, str(tmp_path / "feather"))
    assert FORMAT.sniff((tmp_path / "feather").read_bytes(), "feather")
    assert not FORMAT.sniff(b'{"q": 1}', "run.parquet")


def test_a_file_a_folder_and_its_compressed_bytes_hold_the_same(tmp_path: Path) -> None:
    expected = {"q1": ["b", "a"], "q2": ["a"]}
    file = written(RUN, tmp_path / "run.parquet")
    assert ids(read(file).run) == expected
    packed = tmp_path / "run.parquet.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert ids(read(packed).run) == expected
    pipe = Source("-", replay=io.BytesIO(file.read_bytes()))
    assert ids(FORMAT.read(pipe).run) == expected
    folder = tmp_path / "folder"
    (folder / "deeper").mkdir(parents=True)
    written(RUN.slice(0, 1), folder / "deeper" / "part-1.parquet")
    written(RUN.slice(1), folder / "part-2.parquet")
    (folder / "_metadata.parquet").write_bytes(b"not to be read")
    assert FORMAT.sniff_folder(folder)
    assert ids(read(folder).run) == expected


def test_arrow_files_are_read_with_and_without_compression(tmp_path: Path) -> None:
    for compression in ("uncompressed", "lz4"):
        file = tmp_path / f"{compression}.feather"
        feather.write_feather(RUN, str(file), compression=compression)
        assert ids(read(file).run) == {"q1": ["b", "a"], "q2": ["a"]}
    with pa.ipc.new_stream(str(tmp_path / "stream"), RUN.schema) as writer:
        writer.write_table(RUN)
    assert ids(read(tmp_path / "stream").run) == {"q1": ["b", "a"], "q2": ["a"]}


def test_files_of_a_folder_may_spell_ids_in_different_types(tmp_path: Path) -> None:
    texts = pa.table({"qid": ["1", "1"], "docid": ["7", "8"], "score": [4.0, 3.0]})
    numbers = pa.table({"qid": [1, 1], "docid": [9, 10], "score": [2.0, 1.0]})
    written(texts, tmp_path / "1.parquet")
    written(numbers, tmp_path / "2.parquet")
    assert ids(read(tmp_path).run) == {"1": ["7", "8", "9", "10"]}


def test_a_file_of_a_folder_that_lacks_a_column_is_named(tmp_path: Path) -> None:
    written(RUN, tmp_path / "1.parquet")
    written(RUN.drop_columns(["score"]), tmp_path / "2.parquet")
    with pytest.raises(FormatError, match=r"2.parquet: has no column 'score'"):
        read(tmp_path)


def test_one_row_per_query_with_lists_is_read_as_samples(tmp_path: Path) -> None:
    table = pa.table(
        {
            "question": ["What is blue?", "What is red?"],
            "retrieved_contexts": [["The sky.", "A dog."], ["A rose."]],
            "reference": ["The sky is blue.", "A rose is red."],
        }
    )
    loaded = read(written(table, tmp_path / "samples.parquet"))
    assert loaded.gold is not None
    assert loaded.gold.references == {"0": "The sky is blue.", "1": "A rose is red."}
    texts = [d.text for d in rankings(loaded.run)["0"]]
    assert texts == ["The sky.", "A dog."]


def test_a_document_column_of_lists_is_a_ranking_per_row(tmp_path: Path) -> None:
    table = pa.table({"qid": ["q1", "q2"], "docid": [["b", "a"], []]})
    file = written(table, tmp_path / "run.parquet")
    assert ids(read(file, "run").run) == {"q1": ["b", "a"], "q2": []}
    gold = read(file, "gold").gold
    assert gold is not None
    assert gold.documents == {"q1": {"b": 1.0, "a": 1.0}, "q2": {}}


def test_a_table_of_several_systems_is_split_by_a_column(tmp_path: Path) -> None:
    table = pa.table(
        {
            "system": ["bm25", "dense", "bm25", "dense"],
            "qid": ["q", "q", "q", "p"],
            "docid": ["a", "a", "b", "a"],
            "score": [1.0, 2.0, 3.0, 4.0],
        }
    )
    file = written(table, tmp_path / "runs.parquet")
    parts = FORMAT.read_by(Source(str(file), "run"), "system")
    assert {name: ids(part.run) for name, part in parts.items()} == {
        "bm25": {"q": ["b", "a"]},
        "dense": {"q": ["a"], "p": ["a"]},
    }
    with pytest.raises(FormatError, match="no column 'model' to split by; columns fou"):
        FORMAT.read_by(Source(str(file)), "model")


def test_autorag_gold_keeps_documents_and_texts_as_alternatives(
    tmp_path: Path,
) -> None:
    table = pa.table(
        {
            "qid": ["q"],
            "query": ["Why?"],
            "retrieval_gt": [[["a", "b"], ["c"]]],
            "retrieval_gt_contents": [[["A", "B"], ["C"]]],
            "generation_gt": [["Because.", "So."]],
        }
    )
    loaded = read(written(table, tmp_path / "qa.parquet"), "gold")
    gold = loaded.gold
    assert gold is not None
    assert gold.documents == {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
    assert [(item.text, item.group) for item in gold.passages["q"]] == [
        ("A", "item-1"),
        ("B", "item-1"),
        ("C", "item-2"),
    ]
    assert gold.references == {"q": "Because."}
    assert loaded.queries["q"].text == "Why?"
    assert loaded.mapping["relevant"] == "retrieval_gt"
    assert gold.groups == {"q": {"a": "item-1", "b": "item-1"}}
    assert not loaded.notices


def test_autorag_items_that_share_a_document_are_taken_apart_and_it_is_said(
    tmp_path: Path,
) -> None:
    table = pa.table({"qid": ["q"], "retrieval_gt": [[["a", "b"], ["a", "c"], ["d"]]]})
    loaded = read(written(table, tmp_path / "qa.parquet"), "gold")
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q": dict.fromkeys("abcd", 1.0)}
    assert not loaded.gold.groups
    (notice,) = loaded.notices
    assert str(notice) == (
        "2 gold items accept documents that others accept too; each was taken as an "
        "item"
    )


def test_lists_in_a_list_are_groups_in_any_form() -> None:
    record = {"id": "q", "relevant": [["a", "b"], ["c"]], "passages": [["A"], ["B"]]}
    gold = read_gold([record])
    assert gold.documents == {"q": dict.fromkeys("abc", 1.0)}
    assert gold.groups == {"q": {"a": "item-1", "b": "item-1"}}
    assert [item.group for item in gold.passages["q"]] == ["item-1", "item-2"]
    graded = read_gold([{"id": "q", "relevant": [["a", 2], ["b", 0]]}])
    assert graded.documents == {"q": {"a": 2.0, "b": 0.0}}
    assert not graded.groups


@pytest.mark.shared_data
def test_the_autorag_sample_is_read_as_gold(shared_data: Path) -> None:
    loaded = read(shared_data / "autorag_sample" / "qa.parquet", "gold")
    assert loaded.gold is not None
    corpus = parquet.ParquetFile(shared_data / "autorag_sample" / "corpus.parquet")
    known = {*corpus.read(columns=["doc_id"])["doc_id"].to_pylist()}
    assert len(loaded.gold.documents) == 20
    assert all({*ids} <= known for ids in loaded.gold.documents.values())
    assert {*loaded.gold.kinds()} == {"documents", "passages"}
    assert not loaded.notices


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"PAR1", "cannot be read"),
        (b"PAR1 but no more of it than that PAR1", "cannot be read"),
        (b"ARROW1 and then nothing", "cannot be read"),
    ],
)
def test_a_broken_file_is_named(content: bytes, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "run.parquet"
    file.write_bytes(content)
    with pytest.raises(FormatError, match=f"run.parquet: {problem}"):
        read(file, "run")


def test_a_file_broken_in_the_middle_is_named_when_it_is_read(tmp_path: Path) -> None:
    file = written(RUN, tmp_path / "run.parquet")
    content = bytearray(file.read_bytes())
    content[4:60] = bytes(56)
    file.write_bytes(content)
    with pytest.raises(FormatError, match=r"run\.parquet: cannot be read"):
        read(file, "run").run.queries()  # type: ignore[union-attr]


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="has columns, but no rows"):
        read(written(RUN.slice(0, 0), tmp_path / "run.parquet"))


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(RUN, tmp_path / "run.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert arrow_arrays.load_pyarrow.__name__ == "load_pyarrow"
    with pytest.raises(MissingExtraError, match=r"pip install 'karat\[parquet\]'"):
        read(file)


def test_scoring_a_file_does_not_wake_pandas(tmp_path: Path) -> None:
    file = written(RUN, tmp_path / "run.parquet")
    code = (
        "import sys; from karat.reading.tables import *;"
        "from karat.reading.format import Source;"
        "from karat.data.policies import Policies;"
        f"run = PARQUET.read(Source({str(file)!r}, 'run')).run;"
        "run.locate({'q1': {'a': 1.0}}, judged=True, policies=Policies());"
        "print({'pandas', 'pyarrow.compute'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


# A document called `text` or `id` would be taken for a field of one.
names = st.text(st.characters(codec="utf-8")).map("zz{}".format)
finite = st.floats(allow_nan=False, allow_infinity=False)


def through(value: Dataset, role: Any) -> Dataset:
    stream = io.BytesIO()
    write(value, stream, "parquet")
    return FORMAT.read(Source("-", role, replay=io.BytesIO(stream.getvalue())))


@given(st.dictionaries(names, st.dictionaries(names, finite), min_size=1))
@settings(max_examples=60, deadline=None)
def test_scores_come_back_as_they_were_written(scores: Any) -> None:
    loaded = through(Dataset(ScoredRun(scores)), "run")
    assert ids(loaded.run) == ids(ScoredRun(scores))


@given(st.dictionaries(names, st.lists(names), min_size=1))
@settings(max_examples=60, deadline=None)
def test_lists_come_back_as_they_were_written(lists: Any) -> None:
    assert ids(through(Dataset(RankedRun(lists)), "run").run) == lists


@given(st.dictionaries(names, st.dictionaries(names, finite), min_size=1))
@settings(max_examples=60, deadline=None)
def test_grades_come_back_as_they_were_written(grades: Any) -> None:
    loaded = through(Dataset(gold=Gold(grades)), "gold")
    assert loaded.gold is not None
    assert loaded.gold.documents == grades


def test_texts_and_tags_come_back_as_they_were_written() -> None:
    documents = (Document("a", "The sky.", 0.5), Document("b", "A dog.", 0.25))
    samples = Dataset(
        run=DocumentRun({"q": documents, "p": ()}),
        gold=Gold({"q": {"a": 2.0}}, {"q": (Item("x", "Sky", group="g"),)}),
        queries={"q": Query("q", "What?", k=3, tags=("easy",))},
    )
    loaded = through(samples, "samples")
    assert loaded.gold is not None
    assert rankings(loaded.run)["q"] == list(documents)
    assert loaded.gold.documents == {"q": {"a": 2.0}}
    assert loaded.gold.passages["q"][0].group == "g"
    assert (loaded.queries["q"].k, loaded.queries["q"].tags) == (3, ("easy",))
