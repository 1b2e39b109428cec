"""A DataFrame of any library is a run, gold, or samples."""

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import karat
from karat import Dataset
from karat.extend import (
    FormatError,
    MissingExtraError,
    Policies,
    Source,
    UnknownNameError,
)
from karat.reading import tables
from karat.reading.meaning.answers import is_frame

COLUMNS: dict[str, list[Any]] = {
    "query_id": ["q1", "q1", "q2"],
    "docid": ["a", "b", "a"],
    "score": [0.5, 0.9, 0.1],
}


class OnlyArrow:
    """A library nobody has heard of, which speaks Arrow."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


LIBRARIES = {
    "pandas": pd.DataFrame,
    "pandas, indexed": lambda columns: pd.DataFrame(columns).set_index("query_id"),
    "pandas, categories": lambda columns: pd.DataFrame(columns).astype(
        {"query_id": "category", "docid": "category"}
    ),
    "polars": pl.DataFrame,
    "polars, lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "pyarrow": pa.table,
    "pyarrow, one batch": pa.RecordBatch.from_pydict,
    "anybody": lambda columns: OnlyArrow(pa.table(columns)),
}


def load_frame(frame: Any, role: Any = None, mapping: Any = None) -> Dataset:
    return tables.load_frame(frame, Source("frame", role, mapping or {}))


def rankings(loaded: Dataset) -> dict[str, list[str | None]]:
    assert loaded.run is not None
    return {q: [d.id for d in ds] for q, ds in loaded.run.rankings(Policies())}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_any_library_is_a_run(library: str) -> None:
    frame = LIBRARIES[library](COLUMNS)
    assert is_frame(frame)
    loaded = load_frame(frame, role="run")
    assert rankings(loaded) == {"q1": ["b", "a"], "q2": ["a"]}
    assert loaded.mapping == {"id": "query_id", "document": "docid", "score": "score"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_any_library_is_gold(library: str) -> None:
    columns = {"query_id": ["q1", "q2", "q1"], "corpus-id": ["a", "b", "c"]}
    names = {"corpus-id": "docid"} if library == "pandas, categories" else {}
    columns = {names.get(name, name): cells for name, cells in columns.items()}
    frame = LIBRARIES[library](columns | {"rel": [2, 0, 1]})
    loaded = load_frame(frame, role="gold")
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q1": {"a": 2.0, "c": 1.0}, "q2": {"b": 0.0}}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_any_library_is_queries_and_corpus(library: str) -> None:
    asked = {"query_id": ["q1", "q2"], "text": ["what is rye", "what horses eat"]}
    asked |= {"docid": ["x", "y"]} if "categories" in library else {}
    texts = {"docid": ["a", "b"], "text": ["Rye is a grain.", "Oats are for horses."]}
    texts |= {"query_id": ["x", "y"]} if library.startswith("pandas, ") else {}
    result = karat.evaluate(
        {"what is rye": ["a", "b"], "what horses eat": ["a", "b"]},
        gold={"q1": ["Rye is a grain."], "q2": ["Oats are for horses."]},
        queries=LIBRARIES[library](asked),
        corpus=LIBRARIES[library](texts),
        metrics=["rr"],
    )
    assert result.means == {"rr": 0.75}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "anybody"])
def test_a_frame_of_complete_samples_is_run_and_gold(library: str) -> None:
    frame = LIBRARIES[library](
        {
            "question": ["What is blue?", "What is red?"],
            "retrieved": [
                [{"id": "a", "text": "The sky."}, {"id": "b", "text": "A dog."}],
                [{"id": "c", "text": "A rose."}],
            ],
            "relevant_ids": [["a", "x"], ["c"]],
            "k": [2, None],
        }
    )
    loaded = load_frame(frame)
    assert loaded.gold is not None
    assert rankings(loaded) == {"0": ["a", "b"], "1": ["c"]}
    assert loaded.gold.documents == {"0": {"a": 1.0, "x": 1.0}, "1": {"c": 1.0}}
    assert loaded.queries["0"].text == "What is blue?"
    assert (loaded.queries["0"].k, loaded.queries["1"].k) == (2, None)


def test_mappings_in_cells_are_not_mixed_with_those_of_other_rows() -> None:
    samples = {"id": ["p", "q"], "retrieved": [{"a": 2.0}, {"b": 1.0}]}
    gold = {"expected": [{"a": 1}, {"b": 3}]}
    for frame in (pd.DataFrame(samples | gold), pa.table(samples | gold)):
        loaded = load_frame(frame)
        assert loaded.gold is not None
        assert rankings(loaded) == {"p": ["a"], "q": ["b"]}
        assert loaded.gold.documents == {"p": {"a": 1.0}, "q": {"b": 3.0}}


def test_arrays_of_numpy_in_cells_are_lists() -> None:
    frame = pd.DataFrame({"id": ["q"], "retrieved_ids": [np.array(["a", "b"])]})
    assert rankings(load_frame(frame, role="run")) == {"q": ["a", "b"]}


def test_numbers_as_ids_are_read_as_text_and_that_is_noted() -> None:
    frame = pd.DataFrame({"qid": [1, 1], "docno": [7, 8], "rank": [2, 1]})
    loaded = load_frame(frame, role="run")
    assert rankings(loaded) == {"1": ["8", "7"]}
    assert [(notice.kind, notice.count) for notice in loaded.notices] == [
        ("coerced", 2)
    ]


def test_ids_of_several_types_in_one_column_are_read_all_the_same() -> None:
    frame = pd.DataFrame({"qid": ["q", "q"], "docid": [7, "8"], "score": [2.0, 1.0]})
    loaded = load_frame(frame, role="run")
    assert rankings(loaded) == {"q": ["7", "8"]}
    assert [notice.kind for notice in loaded.notices] == ["coerced"]


def test_the_columns_can_be_told() -> None:
    frame = pl.DataFrame({"x": ["q", "q"], "y": ["a", "b"], "z": [1, 2]})
    told = {"id": "x", "document": "y", "score": "z"}
    assert rankings(load_frame(frame, role="run", mapping=told)) == {"q": ["b", "a"]}
    with pytest.raises(FormatError, match="no column 'w'; columns found: x, y, z"):
        load_frame(frame, role="run", mapping=told | {"score": "w"})
    with pytest.raises(UnknownNameError, match="did you mean 'score'"):
        load_frame(frame, role="run", mapping={"scores": "z"})


def test_a_frame_whose_columns_say_nothing_is_refused_with_their_names() -> None:
    with pytest.raises(FormatError, match="fields found: x, y"):
        load_frame(pl.DataFrame({"x": ["q"], "y": ["a"]}), role="run")
    with pytest.raises(FormatError, match="no column holds the query id"):
        load_frame(pl.DataFrame({"docid": ["q"], "score": [1]}), role="run")


def test_missing_grades_and_ids_are_named_by_column_and_row() -> None:
    frame = pd.DataFrame({"qid": ["q", "q"], "docid": ["a", None], "rel": [1, 2]})
    with pytest.raises(FormatError, match="column 'docid', row 2: the cell is empty"):
        load_frame(frame, role="gold")
    frame = pd.DataFrame({"qid": ["q", "q"], "docid": ["a", "b"], "rel": [1, np.nan]})
    with pytest.raises(FormatError, match="column 'rel', row 2"):
        load_frame(frame, role="gold")


def test_two_grades_for_one_document_are_refused() -> None:
    frame = pl.DataFrame(
        {"qid": ["q", "p", "q"], "docid": ["a", "a", "a"], "rel": [1, 2, 2]}
    )
    with pytest.raises(FormatError, match="query 'q': document 'a' has two grades"):
        load_frame(frame, role="gold")


def test_gold_may_be_true_or_false_or_bare() -> None:
    frame = pl.DataFrame({"qid": ["q", "q"], "docid": ["a", "b"], "rel": [True, False]})
    loaded = load_frame(frame, role="gold")
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q": {"a": 1.0, "b": 0.0}}
    loaded = load_frame(frame.drop("rel"), role="gold")
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q": {"a": 1.0, "b": 1.0}}


def test_two_columns_of_one_name_are_refused() -> None:
    columns = [["q"], ["a"], ["b"], [1.0]]
    table = pa.table(columns, names=["qid", "docid", "docid", "score"])
    with pytest.raises(FormatError, match="two columns are called 'docid'"):
        load_frame(table, role="run")


def test_pandas_frames_are_read_without_pyarrow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = pd.DataFrame(COLUMNS, dtype=object)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert rankings(load_frame(frame, role="run")) == {"q1": ["b", "a"], "q2": ["a"]}
    with pytest.raises(MissingExtraError, match="reading a DataFrame needs pyarrow"):
        load_frame(OnlyArrow(None), role="run")


@pytest.mark.parametrize("thing", [{"q": ["a"]}, [["a"]], "run.parquet", None, 3])
def test_what_is_no_frame_is_not_taken_for_one(thing: Any) -> None:
    assert not is_frame(thing)


def test_asking_what_is_a_frame_imports_no_library() -> None:
    code = (
        "import sys; from karat.reading.meaning.answers import is_frame; is_frame({});"
        "print({'pandas', 'polars', 'pyarrow'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
