"""One run in many Parquet files: folders, globs, partitions, and other file systems."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import karat
from karat.extend import DataError, FormatError
from karat.reading import arrow as arrow_source
from karat.reading.columns import run
from karat.reading.trec import TrecRun
from tests.scale.parts import GOLD, cut, rows, table, told, whole

METRICS = ["ndcg@5", "rr"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run in five files, under folders that name a column."""
    for number, part in enumerate(cut(rows(1), 5, 1, scatter=False)):
        place = tmp_path / "runs" / f"shard={number}"
        place.mkdir(parents=True)
        parquet.write_table(table(part), place / "part.parquet", row_group_size=20)
    (tmp_path / "runs" / "_SUCCESS.parquet").write_bytes(b"")
    return tmp_path / "runs"


def scored(path: object, **options: Any) -> dict[str, Any]:
    result = karat.evaluate(path, gold=GOLD, metrics=METRICS, name="run", **options)
    found = told(result)
    found["evaluation"]["provenance"]["run"] = "run"
    return found


def test_folders_globs_and_addresses_are_one_run(folder: Path) -> None:
    expected = whole(rows(1), METRICS)
    assert scored(folder) == expected
    assert scored(f"{folder}/*/*.parquet") == expected
    assert scored(f"{folder}/shard=*") == expected
    assert scored(f"file://{folder}") == expected
    assert scored(f"file://{folder}/*/part.parquet") == expected
    assert karat.read_run(f"{folder}/*/*.parquet").name == "runs"


def test_any_cut_into_files_and_batches_says_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_source, "_ROWS", 7)
    assert scored(folder) == whole(rows(1), METRICS)
    parts = cut(rows(1), 5, 1, scatter=True)
    for file, part in zip(sorted(folder.glob("*/part.parquet")), parts, strict=True):
        parquet.write_table(table(part), file)
    assert scored(folder) == whole(rows(1), METRICS)


def test_scattered_rows_beyond_memory_say_how_to_sort_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"{q} Q0 d{d} 0 {d} t" for d in range(9) for q in ("q1", "q2")]
    file = tmp_path / "run.trec"
    file.write_text("\n".join(lines), "utf-8")
    monkeypatch.setattr(run, "most_bytes", lambda: 100)
    gold = {"q1": {"d3": 1}, "q2": {"d4": 1}}
    # One part needs nothing else; it is all there.
    assert karat.evaluate(file, gold=gold, metrics=["rr"]).means["rr"] == (
        (1 / 6 + 1 / 5) / 2
    )
    with pytest.raises(DataError, match=f"sort -s -k1,1 {file}"):
        karat.evaluate(TrecRun(file, block=64), gold=gold)


def test_what_goes_wrong_names_the_file(folder: Path) -> None:
    wrong = table(rows(2)).set_column(
        2, "score", pa.array([float("nan")] * len(rows(2)))
    )
    parquet.write_table(wrong, folder / "shard=3" / "part.parquet")
    with pytest.raises(FormatError, match=r"shard=3/part.*'score', row 1: must be"):
        scored(folder)


def test_folders_that_name_a_column_are_one(tmp_path: Path) -> None:
    for name in ("bm25", "dense%20v2"):
        (tmp_path / f"system={name}").mkdir()
        parquet.write_table(table(rows(3)), tmp_path / f"system={name}" / "0.parquet")
    board = karat.leaderboard(
        dict(karat.read_run(tmp_path, by="system")), gold=GOLD, metrics=METRICS
    )
    assert [*board] == ["bm25", "dense v2"]
    assert board["bm25"].means == board["dense v2"].means
    (notice,) = [
        n
        for n in karat.evaluate(tmp_path, gold=GOLD, metrics=METRICS).warnings
        if n.kind == "systems"
    ]
    assert notice.count == 2


def test_other_file_systems_are_reached_through_fsspec(folder: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for file in folder.glob("*/part.parquet"):
        memory.pipe(f"/bucket/{file.relative_to(folder)}", file.read_bytes())
    expected = whole(rows(1), METRICS)
    assert scored("memory://bucket") == expected
    assert scored("memory://bucket/*/part.parquet") == expected
    with pytest.raises(FormatError, match="no such file or folder"):
        scored("memory://nowhere/part.parquet")
    with pytest.raises(FormatError, match=r"no \.parquet files"):
        scored("memory://bucket/*.csv")
    with pytest.raises(FormatError, match="nosuch:// needs a file system"):
        scored("nosuch://bucket/part.parquet")


def test_a_file_with_another_schema_is_named(folder: Path) -> None:
    other = folder / "shard=2" / "part.parquet"
    parquet.write_table(table(rows(1)).drop_columns("score"), other)
    with pytest.raises(FormatError, match=r"shard=2/part\.parquet: has no column 's"):
        scored(folder)
    texts = pa.array(["high"] * len(rows(1)))
    parquet.write_table(table(rows(1)).set_column(2, "score", texts), other)
    with pytest.raises(FormatError, match=r"shard=2/.*'score': must hold numbers"):
        scored(folder)


def test_a_file_that_may_not_be_read_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = arrow_source._Part.open

    def forbid(part: Any, coded: Any = ()) -> Any:
        if "shard=1" in part.name:
            raise PermissionError(13, "Permission denied")
        return plain(part, coded)

    monkeypatch.setattr(arrow_source._Part, "open", forbid)
    with pytest.raises(FormatError, match=r"shard=1/part.*cannot be read: .*Perm"):
        scored(folder)
