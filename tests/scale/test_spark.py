"""Spark says what one pass says, whatever its partitions."""

import os
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

import karat
import karat.scale
from karat.extend import FormatError
from karat.reading import tables as distributed
from tests.scale.parts import GOLD, rows, table, told, whole

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]
METRICS = ["ndcg@5", "recall@3", "rr", "ap", "bpref", "judged@5"]


def frame(spark: Any, found: Any) -> Any:
    """A table of Spark."""
    kinds = "query string, document string, score double"
    return spark.createDataFrame(found, kinds)


def labels(spark: Any) -> Any:
    found = [(q, d, float(g)) for q, row in GOLD.items() for d, g in row.items()]
    return spark.createDataFrame(found, "query string, document string, grade double")


@pytest.mark.parametrize(
    ("parts", "by"), [(1, None), (4, None), (3, "query"), (4, "document")]
)
def test_any_partitioning_gives_the_bytes_of_one_pass(
    spark: Any, parts: int, by: str | None
) -> None:
    run = frame(spark, rows(1))
    run = run.repartition(parts, by) if by else run.coalesce(parts)
    result = karat.evaluate(run, gold=GOLD, metrics=METRICS)
    assert told(result) == whole(rows(1), METRICS)
    assert result.provenance["engine"] == "spark"
    assert result.provenance["rows"] == len(rows(1))


def test_gold_may_be_a_table_too(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run, gold = frame(spark, rows(2)), labels(spark)
    result = karat.evaluate(run, gold=gold, metrics=METRICS)
    alone = karat.evaluate(table(rows(2)), gold=GOLD, metrics=METRICS)
    assert result.means == alone.means
    monkeypatch.setattr(distributed, "MOST_LABELS", 10)
    with pytest.raises(FormatError, match=r"180 labels is more than .*scale\.score"):
        karat.evaluate(run, gold=gold, metrics=METRICS)


def test_several_systems_are_one_leaderboard(spark: Any) -> None:
    found = [(s, *row) for n, s in enumerate(("bm25", "dense")) for row in rows(n)]
    kinds = "system string, query string, document string, score double"
    board = karat.leaderboard(
        spark.createDataFrame(found, kinds), gold=GOLD, by="system", metrics=METRICS
    )
    for number, name in enumerate(("bm25", "dense")):
        alone = karat.evaluate(table(rows(number)), gold=GOLD, metrics=METRICS)
        assert {m: board[name].means[m] for m in METRICS} == alone.means


def test_a_task_that_dies_is_retried_and_changes_nothing(
    spark: Any, tmp_path: Path
) -> None:
    flag = tmp_path / "died"

    def die_once(batches: Any) -> Any:
        for batch in batches:
            if not flag.exists():
                flag.touch()
                os._exit(1)
            yield batch

    run = frame(spark, rows(3)).coalesce(2)
    fragile = run.mapInArrow(die_once, run.schema)
    flag.touch()
    head = karat.read_run(fragile)
    flag.unlink()
    result = karat.evaluate(head, gold=GOLD, metrics=METRICS)
    assert flag.exists()
    expected = whole(rows(3), METRICS)
    expected["evaluation"]["provenance"] = ANY
    assert told(result) == expected


def test_gold_that_stays_in_spark_gives_the_same_scores(
    spark: Any, tmp_path: Path
) -> None:
    found = [(s, *row) for n, s in enumerate(("bm25", "dense")) for row in rows(n)]
    kinds = "system string, query string, document string, score double"
    run = spark.createDataFrame(found, kinds)
    into = [f"{tmp_path}/scores-{buckets}" for buckets in (2, 7)]
    one, other = (
        karat.scale.score(
            run, labels(spark), into=path, metrics=METRICS, by="system", buckets=buckets
        )
        for path, buckets in zip(into, (2, 7), strict=True)
    )
    for number, name in enumerate(("bm25", "dense")):
        alone = karat.evaluate(table(rows(number)), gold=GOLD, metrics=METRICS)
        assert one[name].metrics == other[name].metrics
        assert one[name].means == pytest.approx(alone.means, abs=1e-12, nan_ok=True)
        assert one[name].missing == int(alone.missing.sum())
        for metric in METRICS:
            assert one[name][metric].n == alone[metric].n
            assert one[name][metric].undefined == alone[metric].undefined
        written = spark.read.parquet(into[0]).where(f"system = '{name}'").collect()
        scores = {row["query"]: row["rr"] for row in written}
        assert scores == dict(zip(alone.queries, alone["rr"].scores, strict=True))


def test_texts_are_matched_where_they_are(spark: Any, tmp_path: Path) -> None:
    texts = [("q1", "a", "Rye is a grain.", 2.0), ("q1", "b", "Ovens are hot.", 1.0)]
    kinds = "query_id string, doc_id string, text string, score double"
    run = spark.createDataFrame(texts, kinds)
    wanted = [("q1", "Ovens are hot.")]
    gold = spark.createDataFrame(wanted, "query_id string, passages string")
    into = f"{tmp_path}/scores"
    found = karat.scale.score(run, gold, into=into, metrics=["rr"], match="exact")
    assert found["run"].means == {"rr": 0.5}


def test_bad_rows_name_their_partition(spark: Any) -> None:
    wrong = frame(spark, [*rows(4), ("q3", "d1", float("nan"))]).coalesce(1)
    with pytest.raises(FormatError, match=r"partition 0: .*'score', row \d+: must be"):
        karat.evaluate(wrong, gold=GOLD)
    bare = frame(spark, rows(4)).drop("score")
    with pytest.raises(FormatError, match="no order: it needs a column such as score"):
        karat.evaluate(bare, gold=GOLD)
    with pytest.raises(FormatError, match="no column 'sytem' to split by"):
        karat.leaderboard(frame(spark, rows(4)), gold=GOLD, by="sytem")
