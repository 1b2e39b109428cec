"""Conversations: turns rolled up to sessions, as LongMemEval scores them."""

import json
from typing import Any

import pytest

import karat
from karat import Gold
from karat.data.memory_runs import DocumentRun, RankedRun
from karat.extend import (
    DataError,
    Document,
    MismatchError,
    ParameterError,
    Policies,
    read_matcher,
)
from karat.matching.ids import roll_up, roll_up_labels, session_of
from tests.conftest import ROOT

CASES = json.loads((ROOT / "tests/golden/longmemeval.json").read_text("utf-8"))["cases"]
TURNS = ["a_1", "a_3", "x_1", "x_3", "b_2"]
GOLD = {"q": ["a_1", "a_3", "b_2"]}


def scores(
    metrics: list[str], turns: list[str] | None = None, **options: Any
) -> list[float]:
    run = {"q": TURNS if turns is None else turns}
    options.setdefault("gold", GOLD)
    return list(karat.evaluate(run, metrics=metrics, **options).means.values())


def test_a_session_is_found_at_the_rank_of_its_first_turn() -> None:
    metrics = [f"recall[id(level=session)]@{k}" for k in (1, 2, 4, 5)]
    assert scores(metrics) == [0.5, 0.5, 0.5, 1.0]
    assert scores(["recall@1", "recall@2", "recall@5"]) == [1 / 3, 2 / 3, 1.0]


def test_any_all_and_the_share_stand_side_by_side() -> None:
    metrics = [
        f"{name}[id(session)]@3" for name in ("recall_any", "recall_all", "recall")
    ]
    assert scores(metrics) == [1.0, 0.0, 0.5]


def test_in_the_profile_k_counts_sessions() -> None:
    metrics = [f"recall[id(level=session)]@{k}" for k in (1, 2, 3)]
    assert scores(metrics, profile="longmemeval") == [0.5, 0.5, 1.0]


def test_a_session_takes_the_best_grade_of_its_turns() -> None:
    labels = {"q": {"a_1": 1.0, "a_2": 3.0, "a_3": 0.0, "b_1": 0.0, "b_2": -1.0}}
    assert roll_up_labels(labels, session_of) == {"q": {"a": 3.0, "b": 0.0}}


def test_gold_may_list_sessions_already() -> None:
    turns, gold = ["s_1_4", "s_2_1"], {"q": ["s_2"]}
    metrics = ["rr[id(level=session, gold=session)]"]
    assert scores(metrics, turns, gold=gold) == [0.5]
    with pytest.raises(MismatchError, match="gold=session"):
        scores(["rr[id(level=session)]"], turns, gold=gold)


def test_another_separator_may_part_session_and_turn() -> None:
    gold = {"q": ["D2:9"]}
    assert scores(["rr[id(level=session, sep=:)]"], ["D1:3", "D2:7"], gold=gold) == [
        0.5
    ]


def test_an_id_without_a_separator_is_its_own_session() -> None:
    assert session_of("plain") == "plain"
    assert session_of("_7") == "_7"


def test_documents_may_name_the_session_they_come_from() -> None:
    samples = [
        {
            "id": "q",
            "relevant": ["monday"],
            "retrieved": [
                {"id": "t1", "source": "sunday", "text": "x"},
                {"id": "t2", "source": "monday", "text": "y"},
            ],
        }
    ]
    assert karat.evaluate(samples, metrics=["rr[id(level=source)]"]).means == {
        "rr[id(level=source)]": 0.5
    }
    with pytest.raises(DataError, match="document 'a' names no source"):
        scores(["rr[id(level=source)]"], ["a"], gold={"q": ["a"]})


def test_a_mapping_rolls_up_a_run_by_hand() -> None:
    sessions = {"t1": "s1", "t2": "s1", "t3": "s2"}
    turns = DocumentRun({"q": [Document("t1"), Document("t2"), Document("t3")]})
    run = roll_up(turns, lambda turn: sessions[turn.id or ""], Policies())
    gold = roll_up_labels({"q": {"t2": 1.0, "t3": 1.0}}, sessions.__getitem__)
    result = karat.evaluate(run, gold=gold, metrics=["recall@1", "recall@3"])
    assert result.means == {"recall@1": 0.5, "recall@3": 1.0}


def test_first_ranks_are_those_of_sessions() -> None:
    gold = Gold({"q": {"a_1": 1.0, "a_3": 1.0, "b_2": 1.0}})
    matcher = read_matcher("id(level=session)")
    matches = matcher.match(
        RankedRun({"q": TURNS}), gold, judged=True, policies=Policies()
    )
    assert matches.first_ranks() == [{"a": 1, "b": 5}]
    assert matches.hits.retrieved.tolist() == [5]


def test_abstention_questions_are_undefined_and_counted() -> None:
    run = {"q1": TURNS, "q2_abs": TURNS}
    gold = {"q1": GOLD["q"], "q2_abs": []}
    result = karat.evaluate(
        run, gold=gold, metrics=["recall[id(level=session)]@5"], profile="longmemeval"
    )
    (column,) = result.columns.values()
    assert (column.mean, column.n, column.undefined) == (1.0, 1, 1)


@pytest.mark.parametrize("spelling", ["id(level=week)", "id(gold=week)"])
def test_other_levels_are_an_error(spelling: str) -> None:
    with pytest.raises(ParameterError, match="must be one of"):
        read_matcher(spelling)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_longmemeval_scores_the_same(case: dict[str, Any]) -> None:
    k, inputs, expected = case["k"], case["inputs"], case["expected"]
    ranking = [inputs["corpus_ids"][place] for place in inputs["rankings"]]
    sessions = case["metric"].endswith("turn2session")
    matcher = "id(level=session)" if sessions else "id"
    # Native numbers differ where it counts turns of one session several times in
    # ndcg_any; its compat front does the same.
    names = ["recall_any", "recall_all"] + ["ndcg_any"] * (not sessions)
    metrics = [f"{name}[{matcher}]@{k}" for name in names]
    if k == 0:
        with pytest.raises(ParameterError, match="an integer >= 1"):
            karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics=metrics)
        return
    result = karat.evaluate(
        {"q": ranking},
        gold={"q": inputs["correct_docs"]},
        metrics=metrics,
        profile="longmemeval",
    )
    if not inputs["correct_docs"]:
        # Its reporter leaves such questions out, and so do we.
        assert [c.n for c in result.columns.values()][:2] == [0, 0]
        return
    assert list(result.means.values()) == pytest.approx(
        [expected[name] for name in names], abs=1e-12
    )


@pytest.mark.parametrize("listed", ["turn", "session"])
def test_ids_that_are_sessions_already_are_refused(listed: str) -> None:
    """They would all be one: recall 1.0, where it is 1/4."""
    run = {"q": ["sess_1", "sess_9", "sess_8"]}
    gold = {"q": ["sess_1", "sess_2", "sess_3", "sess_4"]}
    with pytest.raises(MismatchError, match="match='id'"):
        karat.evaluate(run, gold, match=f"id(level=session, gold={listed})")
    assert karat.evaluate(run, gold, match="id", metrics="recall").means == {
        "recall": 0.25
    }


def test_ids_without_the_separator_are_asked_about() -> None:
    run = {"q": ["s7:1", "s9:2"]}
    result = karat.evaluate(run, {"q": ["s9:2"]}, match="id(level=session)")
    assert [notice.kind for notice in result.warnings] == ["sessions"]
    with pytest.raises(MismatchError, match="sep"):
        karat.evaluate(run, {"q": ["s7:3"]}, match="id(level=session)")
    found = karat.evaluate(
        run, {"q": ["s7:3"]}, match="id(level=session, sep=:)", metrics="rr"
    )
    assert found.means == {"rr": 1.0}


def test_sessions_without_a_number_are_asked_about() -> None:
    run = {"q": ["chat_1", "call_1"]}
    result = karat.evaluate(run, {"q": ["chat_2"]}, match="id(level=session)")
    (notice,) = (n for n in result.warnings if n.kind == "sessions")
    assert "'chat_2' as 'chat'" in str(notice)
    numbered = karat.evaluate(
        {"q": ["s7_1", "s8_1"]}, {"q": ["s7_2"]}, match="id(level=session)"
    )
    assert not any(n.kind == "sessions" for n in numbered.warnings)


def test_only_ids_of_one_session_are_counted_when_asked_about() -> None:
    run = {"q": ["chat_1", "call_1", "note_1"]}
    result = karat.evaluate(run, {"q": ["chat_2"]}, match="id(level=session)")
    (notice,) = (n for n in result.warnings if n.kind == "sessions")
    assert str(notice).startswith("2 ids are compared without their turn")
    run = {"q": ["a", "b", "c", "d"]}
    result = karat.evaluate(run, {"q": ["a"]}, match="id(level=session)")
    (notice,) = (n for n in result.warnings if n.kind == "sessions")
    assert str(notice).startswith("4 ids have no turn behind a separator")
    assert str(notice).endswith("(for example a, b, c)")


def test_one_turn_is_no_reason_to_refuse_its_session() -> None:
    match = "id(level=session)"
    assert scores(["rr"], ["s_1"], gold={"q": ["s_1"]}, match=match) == [1.0]
    with pytest.raises(MismatchError, match="makes all ids one session, 's'"):
        scores(["rr"], ["s_1"], gold={"q": ["s_2"]}, match=match)
    assert scores(["rr"], ["s_1"], gold={"q": ["s_2"]}, match=match, force=True) == [1]
