"""Files taken for something else: a run as gold, a table as TREC, a link to nothing."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import karat
from karat import Dataset
from karat.extend import FormatError, Policies
from karat.reading.readers import read, read_by, validate

Save = Callable[[str, str | bytes], str]
Table = dict[str, list[Any]]

RANKED: Table = {"query_id": ["q", "q"], "doc_id": ["a", "x"], "rank": [1, 2]}
KINDS = ["csv", "tsv", "jsonl", "parquet", "pandas", "polars", "arrow"]


def as_kind(kind: str, table: Table, save: Save) -> Any:
    frame = pd.DataFrame(table)
    if kind in {"csv", "tsv"}:
        sep = "," if kind == "csv" else "\t"
        return save(f"table.{kind}", frame.to_csv(index=False, sep=sep))
    if kind == "jsonl":
        lines = (json.dumps(row) + "\n" for row in frame.to_dict("records"))
        return save("table.jsonl", "".join(lines))
    if kind == "parquet":
        path = save("table.parquet", b"")
        parquet.write_table(pa.table(table), path)
        return path
    makers = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
    return makers[kind](table)


def ranking(loaded: Dataset) -> list[str | None]:
    assert loaded.run is not None
    ((_, documents),) = loaded.run.rankings(Policies())
    return [document.id for document in documents]


@pytest.mark.parametrize("kind", KINDS)
def test_a_ranked_table_is_never_gold(kind: str, save: Save) -> None:
    for table in (RANKED, RANKED | {"score": [0.9, 0.1]}):
        with pytest.raises(FormatError, match=r"ranks documents \(rank\) and has no"):
            read(as_kind(kind, table, save), "gold")
    graded = read(as_kind(kind, RANKED | {"grade": [2, 0]}, save), "gold")
    assert graded.gold is not None
    assert graded.gold.documents == {"q": {"a": 2.0, "x": 0.0}}


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_one_rank_stay_in_order_in_every_format(
    kind: str, save: Save
) -> None:
    table: Table = {"query_id": ["q"] * 3, "doc_id": ["b", "c", "a"], "rank": [2, 2, 0]}
    loaded = read(as_kind(kind, table, save), "run")
    assert ranking(loaded) == ["a", "b", "c"]
    result = karat.evaluate(loaded, gold={"q": {"b": 1}}, metrics=["rr"])
    assert result.means == {"rr": 1 / 3}
    assert {notice.kind for notice in result.warnings} == {"gaps", "ties"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [-1.0, 1.5])
def test_a_rank_is_a_whole_number_in_every_format(
    kind: str, rank: float, save: Save
) -> None:
    source = as_kind(kind, RANKED | {"rank": [1.0, rank]}, save)
    with pytest.raises(FormatError, match="must be a whole number >= 0"):
        karat.evaluate(source, gold={"q": ["a"]})


@pytest.mark.parametrize("kind", KINDS)
def test_the_document_with_two_grades_is_named(kind: str, save: Save) -> None:
    table: Table = {
        "query_id": ["q", "r", "q", "q"],
        "doc_id": ["a", "b", "c", "a"],
        "grade": [1, 1, 1, 2],
    }
    with pytest.raises(FormatError, match=r"query 'q': document 'a' (has|occurs) tw"):
        read(as_kind(kind, table, save), "gold")


def test_two_columns_of_one_name_are_refused() -> None:
    frame = pd.DataFrame([["q", "a", "b"]], columns=["query_id", "doc_id", "doc_id"])
    with pytest.raises(FormatError, match="two columns are called 'doc_id'"):
        read(frame, "run")


def test_a_table_whose_ids_have_spaces_is_no_trec_file(save: Save) -> None:
    text = "query\tdoc_id\tgrade\nrefund window\tshipping\t1\nlost card\tcards\t0\n"
    loaded = read(save("gold.tsv", text), role="gold")
    assert loaded.gold is not None
    assert loaded.gold.documents == {
        "refund window": {"shipping": 1.0},
        "lost card": {"cards": 0.0},
    }


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.run", "q Q0 d 1 high t\n", r"a\.run:1: query 'q': the score must be a fin"),
        ("a.run.gz", "q Q0 d\n", r"a\.run\.gz:1: query 'q': expected 6 columns"),
        ("a.qrels", "q 0 d\n", r"a\.qrels:1: query 'q': expected 4 columns, found 3"),
        ("a.json", "3", r"a\.json: must hold a list or an object, but holds int 3"),
    ],
)
def test_what_looks_like_nothing_is_read_as_its_name_says(
    name: str, text: str, problem: str, save: Save
) -> None:
    path, ids = save(name, text), {"q": ["d"]}
    run, gold = (ids, path) if name == "a.qrels" else (path, ids)
    with pytest.raises(FormatError, match=problem):
        karat.evaluate(run, gold=gold)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.run", "q Q0 d 1 2 t\rq Q0 e 2 1 t\r"),
        ("a.csv", "query_id,doc_id,score\rq,d,2\rq,e,1\r"),
    ],
)
def test_line_ends_of_old_macs_are_named(name: str, text: str, save: Save) -> None:
    with pytest.raises(FormatError, match=r":1: .*a carriage return within the .*Unix"):
        karat.evaluate(save(name, text), gold={"q": ["e"]})
    windows = save(name, text.replace("\r", "\r\n"))
    assert karat.evaluate(windows, gold={"q": ["e"]}, metrics="rr").means == {"rr": 0.5}


def test_paths_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    for empty in (lambda: read(""), lambda: karat.evaluate("", gold={"q": ["a"]})):
        with pytest.raises(FormatError, match="the path is empty"):
            empty()
    link = tmp_path / "latest.run"
    link.symlink_to(tmp_path / "gone.run")
    with pytest.raises(FormatError, match=r"it is a link to '.*gone\.run', which is n"):
        read(link)


def test_closed_standard_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(FormatError, match="-: standard input is closed"):
        read("-")


def test_a_data_set_is_no_run(save: Save, tmp_path: Path) -> None:
    save("set/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\ta\t1\n")
    save("set/queries.jsonl", '{"_id": "q", "text": {"en": "Why?"}}\n')
    with pytest.raises(FormatError, match=r"BEIR data set, .* but a run was asked for"):
        read(tmp_path / "set", role="run")
    assert read(tmp_path / "set", role="gold").queries["q"].text is None


def test_an_empty_field_is_told_from_one_that_is_not_there(save: Save) -> None:
    lines = '{"id": "q", "retrieved": null, "relevant": ["a"]}\n'
    with pytest.raises(FormatError, match="'retrieved' is empty in every sample"):
        read(save("a.jsonl", lines), role="samples")
    table = "system,query_id,doc_id,score\nA,q,a,1\n,q,b,1\n"
    with pytest.raises(FormatError, match=r"a\.csv:3: 'system' is empty"):
        read_by(save("a.csv", table), "system")


def test_one_problem_is_told_once(save: Save) -> None:
    for line in ('{"id": null, "retrieved": ["a"]}', '{"id": "q", "retrieved": [{}]}'):
        (problem,) = validate(save("a.jsonl", line), "run").problems
        assert problem.line == 1


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd here")
def test_a_pipe_is_checked_as_far_as_it_was_read() -> None:
    read, write = os.pipe()
    os.write(write, b"q Q0 a 1 nan t\nq Q0 b 2 x t\n")
    os.close(write)
    checked = validate(f"/dev/fd/{read}")
    os.close(read)
    (problem,) = checked.problems
    assert problem.problem == "the score must be a finite number, got 'nan'"
