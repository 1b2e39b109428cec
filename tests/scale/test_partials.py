"""Any way to cut a run into parts, and any order of them, gives the same bytes."""

import pickle  # noqa: TID251  what engines do with partials
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import parquet

import karat
from karat.errors import DataError, MismatchError, UnknownNameError, UsageError
from karat.scale import Partial, merge, scan, torn
from tests.scale.parts import GOLD, METRIC_NAMES, cut, rows, table, told, whole

METRICS = ["ndcg@5", "recall@3", "rr", "ap", "bpref", "judged@5", "precision@5"]


def partials(
    parts: list[list[tuple[str, str, float]]], **options: Any
) -> list[Partial]:
    """Partials of all parts, and of their torn queries, as an engine returns them."""
    tables = [table(part) for part in parts]
    found = [scan(t, GOLD, part=n, **options) for n, t in enumerate(tables)]
    if again := torn(found, GOLD):
        found += [
            scan(t, GOLD, part=n, only=again, **options) for n, t in enumerate(tables)
        ]
    return [pickle.loads(pickle.dumps(partial)) for partial in found]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    parts=st.integers(1, 9),
    scatter=st.booleans(),
    duplicates=st.sampled_from(["first", "collapse", "keep"]),
)
def test_any_cut_and_any_order_give_the_bytes_of_one_pass(
    seed: int,
    parts: int,
    scatter: bool,  # noqa: FBT001
    duplicates: str,
) -> None:
    found = rows(seed)
    expected = whole(found, METRICS, duplicates=duplicates)
    some = partials(cut(found, parts, seed, scatter=scatter), duplicates=duplicates)
    random.Random(seed).shuffle(some)
    assert told(merge(some, GOLD, metrics=METRICS)) == expected


def test_every_metric_of_the_catalogue_is_the_same() -> None:
    names = []
    for name in METRIC_NAMES:
        try:
            result = karat.evaluate(table(rows(3)), gold=GOLD, metrics=[name])
        except karat.KaratError:
            continue  # it needs a judge, or another kind of gold
        names += [name] * ([*result.matches] == ["id"])
    assert len(names) > 40
    some = partials(cut(rows(3), 5, 3, scatter=True))
    assert told(merge(some, GOLD, metrics=names)) == whole(rows(3), names)


def test_rows_that_are_ranked_as_they_come_keep_the_order_of_their_parts() -> None:
    found = rows(5, repeats=False)
    bare = table(found).drop_columns("score")
    parts = [bare[at : at + 50] for at in range(0, len(found), 50)]
    some = [scan(t, GOLD, part=n) for n, t in enumerate(parts)]
    if again := torn(some, GOLD):
        some += [scan(t, GOLD, part=n, only=again) for n, t in enumerate(parts)]
    expected = karat.evaluate(bare, gold=GOLD, metrics=METRICS)
    assert told(merge(some[::-1], GOLD, metrics=METRICS)) == told(expected)


def test_batches_paths_and_empty_parts_are_parts(tmp_path: Path) -> None:
    found = rows(6)
    parquet.write_table(table(found[:200]), tmp_path / "part.parquet")
    rest = table(found[200:])
    some = [
        scan(tmp_path / "part.parquet", GOLD, part=0),
        scan(iter(rest.to_batches(max_chunksize=7)), GOLD, part=1),
        scan(table([]), GOLD, part=2),
        scan([], GOLD, part=3),
    ]
    result = merge(some, GOLD, metrics=["ndcg@5", "rr"])
    assert told(result) == whole(found)
    assert result.provenance["partitions"] == 4
    assert result.provenance["rows"] == len(found)


def test_a_partial_is_small() -> None:
    gold = {f"query-{q}": {f"d{q}": 1, f"d{q + 1}": 1} for q in range(5000)}
    found = [(q, f"d{d}", 1.0 / (d + 1)) for q in gold for d in range(40)]
    partial = scan(table(found), gold)
    assert len(pickle.dumps(partial)) < 75 * 5000


def test_a_partial_that_comes_twice_counts_once() -> None:
    some = partials([rows(7)[:100], rows(7)[100:]])
    twice = [*some, pickle.loads(pickle.dumps(some[0]))]
    assert told(merge(twice, GOLD, metrics=["rr"])) == whole(rows(7), ["rr"])


def test_a_part_that_was_scanned_twice_is_refused() -> None:
    found = [scan(table(rows(7)), GOLD, part=1) for _ in range(2)]
    with pytest.raises(UsageError, match="part 1 was scanned twice"):
        merge(found, GOLD)


def test_torn_queries_that_nobody_looked_at_again_are_refused() -> None:
    parts = cut(rows(8), 3, 8, scatter=True)
    found = [scan(table(part), GOLD, part=n) for n, part in enumerate(parts)]
    assert torn(found, GOLD)
    with pytest.raises(UsageError, match=r"only=torn\(partials, gold\)"):
        merge(found, GOLD)


def test_parts_that_do_not_belong_together_are_refused() -> None:
    found = scan(table(rows(9)), GOLD)
    with pytest.raises(UsageError, match="other gold"):
        merge([found], {"q1": {"d1": 1}})
    with pytest.raises(UsageError, match="scanned with different policies"):
        merge([found, scan(table([]), GOLD, duplicates="keep")], GOLD)
    with pytest.raises(UsageError, match="no partials"):
        merge([], GOLD)
    kept = scan(table(rows(9)), GOLD, duplicates="keep")
    with pytest.raises(UsageError, match="scanned with duplicates='keep'"):
        merge([kept], GOLD, duplicates="first")


def test_bad_rows_name_their_part() -> None:
    wrong = table(rows(1)).set_column(
        2, "score", pa.array([float("nan")] * len(rows(1)))
    )
    with pytest.raises(DataError, match=r"part 4.*'score', row 1: must be a finite"):
        scan(wrong, GOLD, part=4)
    batches = [
        *table(rows(1)).to_batches(),
        *table(rows(1)).drop_columns("score").to_batches(),
    ]
    with pytest.raises(DataError, match=r"part 2.*has no column 'score' from row"):
        scan(batches, GOLD, part=2)
    with pytest.raises(DataError, match="part 3"):
        scan(pa.table({"x": [1]}), GOLD, part=3)
    with pytest.raises(DataError, match=r"part 5.*retrieved more than once") as caught:
        scan(
            table([("q0", "d7", 1.0), *[("q1", "d7", 1.0)] * 2, ("q2", "d1", 1.0)]),
            GOLD,
            part=5,
            duplicates="error",
        )
    assert caught.value.query == "q1"


def test_a_run_without_any_gold_id_is_refused() -> None:
    found = scan(table([("q1", "other", 1.0)]), GOLD)
    with pytest.raises(MismatchError, match="no gold id occurs anywhere"):
        merge([found], GOLD)


def test_what_is_no_policy_is_named() -> None:
    rows = pa.table({"query": ["q"], "document": ["a"], "score": [1.0]})
    with pytest.raises(UnknownNameError, match="unknown policy 'order'"):
        scan(rows, {"q": ["a"]}, order="descending")
