"""Numbers that NumPy made are numbers, wherever one is asked for."""

import json
from typing import Any

import numpy as np
import pytest

from karat import evaluate
from karat.extend import FormatError, Fuzzy, ParameterError, Policies, make_metric
from karat.matching.contains import Chunk
from karat.metrics import METRICS

RUN = {"q1": ["b", "a"]}
GOLD = {"q1": ["a"]}


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint16])
def test_any_integer_may_be_the_cutoff(kind: Any) -> None:
    options: dict[str, Any] = {"gold": GOLD, "metrics": ["recall@k"]}
    assert evaluate(RUN, k=kind(1), **options).means == {"recall@k": 0.0}
    assert evaluate(RUN, k=kind(2), **options).means == {"recall@k": 1.0}


@pytest.mark.parametrize("k", [True, np.True_, np.float64(1), np.int64(0), "1"])
def test_what_is_no_positive_integer_is_no_cutoff(k: Any) -> None:
    with pytest.raises(ParameterError, match="k must be an integer >= 1"):
        evaluate(RUN, gold=GOLD, metrics=["recall@k"], k=k)
    with pytest.raises(ParameterError, match="k must be an integer >= 1"):
        make_metric("recall", k=k)


@pytest.mark.parametrize(
    ("kind", "parameter", "spelling"),
    [
        (METRICS["recall"], {"k": np.int64(5)}, "recall@5"),
        (METRICS["recall"], {"threshold": np.int64(2)}, "recall(threshold=2)"),
        (METRICS["rbp"], {"p": np.float64(0.5)}, "rbp(p=0.5)"),
        (METRICS["rbp"], {"p": np.float32(0.5)}, "rbp(p=0.5)"),
        (METRICS["err"], {"max_grade": np.int64(3)}, "err(max_grade=3)"),
        (Fuzzy, {"threshold": np.float64(0.5)}, "fuzzy(threshold=0.5)"),
        (Chunk, {"least": np.int32(3)}, "chunk(least=3)"),
    ],
)
def test_a_spelling_never_shows_where_a_number_came_from(
    kind: Any, parameter: dict[str, Any], spelling: str
) -> None:
    made = kind(**parameter)
    assert str(made) == spelling
    values = [value for _, value in made.spelling.params]
    assert json.loads(json.dumps(values)) == values


def test_policies_take_them_too() -> None:
    given = Policies(depth=np.int64(3), threshold=np.float32(2))  # type: ignore[arg-type]
    assert given == Policies(depth=3, threshold=2)
    assert json.dumps(given.changes()) == '{"threshold": 2.0, "depth": 3}'
    with pytest.raises(ParameterError, match="depth must be an integer >= 1"):
        Policies(depth=True)


def test_samples_may_hold_them() -> None:
    span = {"document": "s", "start": np.int64(0), "end": np.int32(10)}
    retrieved = {"id": "c", "source": "s", "start": np.int64(0), "end": np.int64(10)}
    sample = {"retrieved": [retrieved], "spans": [span]}
    assert evaluate([sample], metrics=["coverage"]).means == {"coverage": 1.0}
    with pytest.raises(FormatError, match="start and end must be integers"):
        evaluate([{**sample, "spans": [{**span, "start": False}]}])
    scored = {"retrieved": {"a": np.float32(0.5), "b": np.float32(0.7)}}
    found = evaluate([{**scored, "relevant": {"a": np.int64(2)}}], metrics=["rr"])
    assert found.means == {"rr": 0.5}
    texts = {"retrieved": [{"text": "It opened in 1912."}], "answers": [np.int64(1912)]}
    assert evaluate([texts], metrics=["containment@1"]).means["containment@1"] == 1.0
