"""The same data gives the same scores and notices, in whatever form it comes."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st

import karat
from tests.reading.forms import (
    data_set,
    forms,
    outcome,
    ranked_rows,
    row_forms,
)

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_every_form_gives_the_same_scores_and_notices(seed: int) -> None:
    run, gold = data_set(Random(seed))
    with TemporaryDirectory() as folder:
        inputs = dict(forms(run, gold, Path(folder)))
        wanted = outcome(inputs["dict"])
        for name, data in inputs.items():
            assert outcome(data) == wanted, name


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_ranks_with_gaps_are_kept_in_every_form(seed: int) -> None:
    rows, ranks = ranked_rows(Random(seed))
    gold = {query: {f"d{len(own) - 1}": 1} for query, own in ranks.items()}
    last = {query: own[-1] for query, own in ranks.items()}
    gaps = sum(own != [*range(1, len(own) + 1)] for own in ranks.values())
    with TemporaryDirectory() as folder:
        inputs = dict(row_forms(rows, Path(folder)))
        wanted = outcome((rows, gold), metrics="rr")
        for name, data in inputs.items():
            result = karat.evaluate(data, gold, metrics="rr")
            found = dict(zip(result.queries, result["rr"].scores, strict=True))
            assert found == {query: 1 / rank for query, rank in last.items()}, name
            assert sum(n.count for n in result.warnings if n.kind == "gaps") == gaps
            assert outcome((data, gold), metrics="rr") == wanted, name


@pytest.mark.parametrize("duplicates", ["first", "collapse"])
def test_gaps_are_kept_beside_repeated_documents(duplicates: str) -> None:
    """The documents behind a repeated one move up by one where it collapses."""
    given = {1: "a", 4: "a", 5: "b", 9: "c"}
    rows = [{"query": "q", "document": d, "rank": n} for n, d in given.items()]
    gold = {"q": {"b": 1, "c": 1}}
    ranks = [5, 9] if duplicates == "first" else [4, 8]
    wanted = {f"recall@{k}": sum(n <= k for n in ranks) / 2 for k in (3, 4, 5, 8, 9)}
    with TemporaryDirectory() as folder:
        for name, data in row_forms(rows, Path(folder)):
            result = karat.evaluate(data, gold, metrics=wanted, duplicates=duplicates)
            assert result.means == wanted, name


def test_gaps_are_kept_where_texts_are_matched() -> None:
    texts = {"a": "rye is a grain", "b": "oats grow tall", "c": "barley is sold"}
    ranks = zip(texts, (1, 5, 9), strict=True)
    rows = [{"query": "q", "document": d, "rank": n} for d, n in ranks]
    whole = [{**row, "text": texts[str(row["document"])]} for row in rows]
    gold = {"q": [texts["b"]]}
    for options in ({"run": rows, "corpus": texts}, {"run": whole}):
        result = karat.evaluate(gold=gold, match="chunk", metrics="rr", **options)
        assert result.means == {"rr": 0.2}
    with TemporaryDirectory() as folder:
        for name, data in row_forms(whole, Path(folder)):
            result = karat.evaluate(data, gold, match="chunk", metrics="rr")
            assert result.means == {"rr": 0.2}, name
            result = karat.evaluate(data, gold, metrics="complete@4,complete@5")
            assert result.means == {"complete@4": 0, "complete@5": 1}, name


def test_gaps_are_kept_by_sessions() -> None:
    rows = [
        {"query": "q", "document": d, "rank": n}
        for d, n in {"s_1": 2, "t_4": 7}.items()
    ]
    result = karat.evaluate(
        rows, {"q": ["t_9"]}, match="id(level=session)", metrics="rr"
    )
    assert result.means == {"rr": 1 / 7}
