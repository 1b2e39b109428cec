"""Field names told in Python: `mapping=` of `evaluate`, and what it prints."""

import pandas as pd
import pytest

import karat
from karat.errors import MissingFieldError
from karat.extend import FormatError, UsageError, read_metric

SAMPLES = [{"nr": "1", "found": ["a", "b"], "wanted": ["b"]}]
MAPPING = {"id": "nr", "retrieved": "found", "relevant": "wanted"}


def test_names_can_be_told_in_python() -> None:
    result = karat.evaluate(SAMPLES, metrics="rr", mapping=MAPPING)
    assert result.means == {"rr": 0.5}
    assert "fields read as: id=nr, retrieved=found, relevant=wanted" in str(result)
    assert result.provenance["fields"] == MAPPING


def test_a_name_is_about_the_input_that_has_it() -> None:
    run = pd.DataFrame({"nr": ["1", "1"], "doc": ["a", "b"], "sim": [2.0, 1.0]})
    gold = pd.DataFrame({"query_id": ["1"], "doc_id": ["b"], "grade": [1]})
    told = {"id": "nr", "score": "sim"}
    result = karat.evaluate(run, gold=gold, metrics="rr", mapping=told)
    assert result.means == {"rr": 0.5}
    assert "\nfields read as: id=nr, document=doc, score=sim\n" in str(result)
    assert "gold fields read as: id=query_id, document=doc_id" in str(result)
    with pytest.raises(MissingFieldError, match="nummer"):
        karat.evaluate(run, gold=gold, mapping={"id": "nummer", "score": "sim"})


def test_a_hint_names_the_argument_too() -> None:
    with pytest.raises(FormatError, match=r"\(mapping=\{'retrieved': 'retrievd'\} in"):
        karat.evaluate([{"id": "1", "retrievd": ["a"], "relevant": ["a"]}])


class Foreign:
    """Prints itself as measures of ir_measures do, and gives items as they do."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __getitem__(self, name: object) -> object:
        raise KeyError(name)


def test_metrics_come_in_many_forms() -> None:
    def asked(metrics: object) -> list[str]:
        run, gold = {"q": ["a"]}, {"q": ["a"]}
        return list(karat.evaluate(run, gold=gold, metrics=metrics))  # type: ignore[arg-type]

    assert asked("recall@5,rr") == ["recall@5", "rr"]
    assert asked(["P@5,10", "rr"]) == ["precision@5", "precision@10", "rr"]
    assert asked(Foreign("nDCG@10")) == ["ndcg@10"]
    assert asked([Foreign("RR(rel=2)@10"), read_metric("ap")]) == [
        "rr(threshold=2)@10",
        "ap",
    ]
    for nothing in (None, 5, [None], [Foreign("weather")]):
        with pytest.raises(UsageError, match="a metric must be a spelling such as"):
            asked(nothing)
