"""`auto`: the matcher that fits what gold and run hold, and says so."""

from collections.abc import Set as AbstractSet

import pytest

import karat
from karat import Gold
from karat.data.memory_runs import RankedRun
from karat.extend import DataError, UsageError
from karat.matching import MATCHERS, choose
from tests.matching.text_runs import run_of

DOCUMENT = {"id": "d1", "text": "Paris is the capital of France."}
FOR_PASSAGES = "span" if "span" in MATCHERS else "chunk"


def chosen(**fields: object) -> str:
    sample = {"id": "q", "retrieved": [DOCUMENT], **fields}
    return karat.evaluate([sample], metrics=["recall"]).matchers["recall"]


def test_ids_that_occur_in_the_run_are_matched() -> None:
    assert chosen(relevant=["d1"]) == "id"
    assert chosen(relevant=["d1"], passages=["Paris"], answers=["Paris"]) == "id"


def test_texts_are_matched_where_no_gold_id_occurs() -> None:
    strange = {"relevant": ["other-7"]}
    assert chosen(**strange, passages=["Paris is the capital"]) == FOR_PASSAGES
    with pytest.raises(DataError, match="no gold id occurs anywhere"):
        chosen(**strange, answers=["Paris"])


def test_texts_are_matched_where_there_are_no_ids() -> None:
    assert chosen(passages=["Paris is the capital"]) == FOR_PASSAGES
    assert chosen(passages=["Paris is the capital"], answers=["x"]) == FOR_PASSAGES
    assert chosen(answers=["Paris"], reference="It is Paris.") == "contains"


def test_strange_ids_alone_are_refused_not_scored() -> None:
    with pytest.raises(DataError, match="no gold id occurs anywhere"):
        chosen(relevant=["other-7"])


def test_a_reference_answer_alone_names_the_command_that_would_do() -> None:
    with pytest.raises(UsageError, match="need a judge") as caught:
        chosen(reference="The capital is Paris.")
    command = "karat evaluate FILE -m context_recall@5 --model NAME"
    assert str(caught.value).endswith(command)
    with pytest.raises(UsageError, match="need a judge"):
        chosen(claims=["Paris is a capital."])


def test_gold_without_labels_is_an_error() -> None:
    with pytest.raises(DataError, match="holds no labels"):
        choose(Gold(order=("q",)), run_of(q=["x"]))


def test_gold_of_ids_alone_is_matched_without_looking_at_the_run() -> None:
    class Unseen(RankedRun):
        def holds_any(self, documents: AbstractSet[str]) -> bool:
            raise AssertionError(documents)

    assert str(choose(Gold({"q": {"a": 1.0}}), Unseen({"q": ["a"]}))) == "id"


def test_the_choice_is_printed() -> None:
    sample = {"id": "q", "retrieved": [DOCUMENT], "answers": ["Paris"]}
    result = karat.evaluate([sample], metrics=["hit@5"])
    assert result.matchers == {"hit@5": "contains"}
    assert "contains" in str(result)


def test_nothing_is_chosen_where_every_metric_brings_its_matcher() -> None:
    sample = {"id": "q", "retrieved": [DOCUMENT], "reference": "It is Paris."}
    result = karat.evaluate([sample], metrics=["containment@5", "recall[chunk]"])
    assert [column.undefined for column in result.columns.values()] == [1, 1]
    with pytest.raises(UsageError, match="need a judge"):
        karat.evaluate([sample], metrics=["containment@5", "recall"])
