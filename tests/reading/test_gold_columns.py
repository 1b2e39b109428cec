"""Gold of many labels stays in columns, and nothing can tell."""

import pickle  # noqa: TID251  what a worker process is sent
import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import karat
from karat.data.gold import ColumnLabels
from karat.extend import FormatError
from karat.reading import tables

METRICS = ["ndcg@5", "recall", "rr", "ap", "judged@5", "bpref"]


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MANY", 50)


def rows(seed: int, kind: type = str) -> list[tuple[Any, Any, float]]:
    """Labels of 40 queries in random order, some judged non-relevant."""
    draw = random.Random(seed)
    pairs = {(draw.randrange(40), draw.randrange(200)) for _ in range(300)}
    found = [(kind(q), kind(d), float(draw.randrange(3))) for q, d in sorted(pairs)]
    draw.shuffle(found)
    return found


def table(found: list[tuple[Any, Any, float]], code: str = "") -> pa.Table:
    query, document, grade = zip(*found, strict=True)
    columns = {"query": pa.array(query), "document": pa.array(document)}
    if code:
        columns[code] = columns[code].dictionary_encode()
    return pa.table({**columns, "grade": pa.array(grade)})


def nested(found: list[tuple[Any, Any, float]]) -> dict[str, dict[str, float]]:
    labels: dict[str, dict[str, float]] = {}
    for query, document, grade in found:
        labels.setdefault(str(query), {})[str(document)] = grade
    return labels


def run_table(kind: type = str) -> pa.Table:
    draw = random.Random(5)
    found = [
        (kind(q), kind(d), draw.random())
        for q in range(2, 45)
        for d in draw.sample(range(200), 30)
    ]
    query, document, score = zip(*found, strict=True)
    return pa.table({"query": query, "document": document, "score": score})


@pytest.mark.parametrize("gold_kind", [str, int])
@pytest.mark.parametrize("run_kind", [str, int])
@pytest.mark.parametrize("code", ["", "query", "document"])
def test_columns_score_as_mappings_do(
    gold_kind: type, run_kind: type, code: str
) -> None:
    found = rows(1, gold_kind)
    gold = karat.read_gold(table(found, code))
    assert isinstance(gold.documents, ColumnLabels)
    coerced = {"coerced"} if gold_kind is int else set()
    assert {notice.kind for notice in gold.notices} == coerced
    gold = replace(gold, notices=())
    run = run_table(run_kind)
    theirs = karat.evaluate(run, gold=nested(found), metrics=METRICS)
    ours = karat.evaluate(run, gold=gold, metrics=METRICS)
    assert ours.to_json() == theirs.to_json()
    assert ours.warnings == theirs.warnings


def test_other_kinds_of_run_read_them_too() -> None:
    gold = karat.read_gold(table(rows(2)))
    run = {f"{q}": {f"{d}": 1 / (d + 1) for d in range(0, 200, 3)} for q in range(40)}
    theirs = karat.evaluate(run, gold=nested(rows(2)), metrics=METRICS)
    assert karat.evaluate(run, gold=gold, metrics=METRICS) == theirs
    assert dict(gold.documents) == nested(rows(2))


def test_they_pickle_and_so_does_the_result() -> None:
    gold = karat.read_gold(table(rows(3)))
    again = pickle.loads(pickle.dumps(gold))
    assert dict(again.documents) == dict(gold.documents)
    result = karat.evaluate(run_table(), gold=again)
    assert pickle.loads(pickle.dumps(result)) == result
    assert all(result.digests)


def test_a_document_with_two_grades_is_refused() -> None:
    found = [*rows(4), ("q", "twice", 1.0), ("other", "twice", 1.0), ("q", "twice", 2)]
    with pytest.raises(FormatError, match="'twice' has two grades") as caught:
        karat.read_gold(table(found))
    assert caught.value.query == "q"
