"""What is contradicted, supported in part, vital or joint is told apart and counted."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import karat
from karat import explain
from karat.data.judgements import Verdict
from karat.data.tables import DASH
from karat.extend import (
    Claims,
    FormatError,
    IncompleteError,
    JudgeSession,
    Prompt,
    Settings,
)
from karat.judging.support import majority
from karat.results.loading import from_dict
from tests.judging.models import Model, claims_in, session_of, support, verdicts
from tests.judging.test_claims import SAMPLE, SCHEMA, judged

CLAIMS = ["One", "Two", "Three", "Four"]
TOLD: dict[int, dict[str, Any]] = {
    1: {"alone": [2], "against": [1]},
    2: {"against": [3]},
    3: {"parts": [1, 2]},
    4: {},
}


def told() -> Model:
    return Model(lambda _: verdicts(TOLD))


def test_contradicted_claims_are_told_apart_from_missing_ones() -> None:
    sample = {**SAMPLE, "claims": CLAIMS}
    metrics = ["context_recall", "contradiction", "contradiction@1", "contradiction@2"]
    result = judged(told(), [sample], metrics=metrics)
    assert result.means == {
        "context_recall": 1 / 4,
        "contradiction": 2 / 4,
        "contradiction@1": 1 / 4,
        "contradiction@2": 1 / 4,
    }
    labels = [verdict.label for verdict in result.traces[0].verdicts]
    assert labels == ["support", "contradict", "partial", "none"]
    by_kind = {notice.kind: str(notice) for notice in result.warnings}
    assert "1 claim is contradicted by what was retrieved" in by_kind["contradict"]
    assert "1 claim is supported in part" in by_kind["partial"]


def test_contradictions_change_no_other_metric() -> None:
    metrics = ["recall", "rr", "ap", "ndcg", "precision", "context_precision", "hit@1"]
    sample = {**SAMPLE, "claims": CLAIMS}
    silent = {n: {**v, "against": []} for n, v in TOLD.items()}
    without = judged(Model(lambda _: verdicts(silent)), [sample], metrics=metrics)
    assert judged(told(), [sample], metrics=metrics).means == without.means


def test_labels_and_contradictions_are_saved_and_read_again() -> None:
    result = judged(told(), [{**SAMPLE, "claims": CLAIMS}], metrics=["contradiction"])
    saved = json.loads(json.dumps(result.to_dict()))
    jsonschema.validate(saved, json.loads(SCHEMA.read_text("utf-8")))
    again = from_dict(saved)
    assert again.traces[0].verdicts == result.traces[0].verdicts
    assert again.score("contradiction@1").mean == 0.25


def test_an_explanation_shows_the_labels() -> None:
    judge = Claims(session_of(told()))
    shown = explain(
        [{**SAMPLE, "claims": CLAIMS}], "q1", metrics="contradiction", judge=judge
    )
    reasoned = shown.tables[-1]
    assert [row[1:3] for row in reasoned.rows] == [
        ["yes", "2"],
        ["contradicted", "3"],
        ["in part", "1, 2"],
        ["no", DASH],
    ]
    # Rank 3 contradicts a claim, and so counts for nothing.
    counting = [text.title for text in shown.texts if text.title.endswith(", counts")]
    assert counting == ["rank 2, counts"]
    assert shown.tables[1].rows[0] == [
        *("contradiction", "0.5000", "2 contradicted / 4 relevant")
    ]


def test_a_context_that_is_for_and_against_a_claim_is_no_verdict() -> None:
    both = {n: {"alone": [1], "against": [1]} for n in (1, 2)}
    model = Model(lambda _: verdicts(both))
    result = judged(model, [{**SAMPLE, "claims": ["One", "Two"]}])
    assert "context 1 both for and against it" in result["rr"].failures[0]


def test_all_parts_of_joint_support_count_for_precision() -> None:
    joint = {1: {"parts": [1, 3], "complete": True}, 2: {}}
    model = Model(lambda _: verdicts(joint))
    metrics = ["precision@3", "precision@2", "context_precision", "recall@2", "recall"]
    result = judged(model, [{**SAMPLE, "claims": ["One", "Two"]}], metrics=metrics)
    expected = {
        "precision@3": 2 / 3,
        "precision@2": 1 / 2,
        "context_precision": (1 / 1 + 2 / 3) / 2,
        "recall@2": 0.0,
        "recall": 0.5,
    }
    assert result.means == pytest.approx(expected)
    saved = json.loads(json.dumps(result.to_dict()))
    jsonschema.validate(saved, json.loads(SCHEMA.read_text("utf-8")))
    again = from_dict(saved)
    means = {metric: again.score(metric).mean for metric in metrics}
    assert means == pytest.approx(expected)
    assert again.traces[0].first_ranks == {"claim-1": 3, "claim-2": None}


def test_vital_claims_weigh_more_than_welcome_ones() -> None:
    claims = [
        {"text": "One", "importance": "vital"},
        {"text": "Two", "importance": "okay"},
        {"text": "Three", "grade": 1},
        "Four",
    ]
    metrics = [
        *("context_recall", "context_recall(weights=grade)"),
        *("context_recall(threshold=1)", "context_recall(weights=grade)@1"),
    ]
    known = Model(support({"One": [2], "Two": [1]}))
    result = judged(known, [{**SAMPLE, "claims": claims}], metrics=metrics)
    assert result.means == pytest.approx(
        {
            "context_recall": 2 / 4,
            "context_recall(weights=grade)": 1.5 / 3.5,
            "context_recall(threshold=1)": 1 / 3,
            "context_recall(weights=grade)@1": 0.5 / 3.5,
        }
    )
    with pytest.raises(FormatError, match="a claim is vital or okay, not 'nice'"):
        judged(known, [{**SAMPLE, "claims": [{"text": "One", "importance": "nice"}]}])


def test_a_split_says_which_claims_are_vital() -> None:
    def answer(prompt: Prompt) -> str:
        if prompt.name == "split":
            claims = [
                {"text": "Dough rises", "importance": "vital"},
                {"text": "Salt", "importance": "okay"},
            ]
            return json.dumps({"claims": claims})
        return support({"Dough rises": [1]})(prompt)

    metrics = ["context_recall", "context_recall(weights=grade)"]
    result = judged(Model(answer), metrics=metrics)
    expected = {"context_recall": 0.5, "context_recall(weights=grade)": 1 / 1.5}
    assert result.means == pytest.approx(expected)


def test_most_votes_decide_what_is_contradicted() -> None:
    against, silent = (Verdict("c", against=(2,)),), (Verdict("c"),)
    assert majority([against, silent, against])[0].label == "contradict"
    assert majority([against, silent, silent])[0].label == "none"


def test_the_question_is_shown_and_prompts_can_be_replaced(tmp_path: Path) -> None:
    model = Model(support({"One": [1]}))
    sample = {**SAMPLE, "claims": ["One"]}
    settings = Settings(journal=tmp_path / "j.sqlite")
    own = {"support": "Decide which contexts support which claims, as a lawyer would."}
    results = [
        karat.evaluate([sample], judge=Claims(model, settings, prompts=prompts))
        for prompts in (None, own, own)
    ]
    # Other words are another question, and the same ones are not asked twice.
    first, second = model.asked
    assert "How is bread made?" in first.user == second.user
    assert second.system.startswith(own["support"])
    versions = [r.provenance["judge"]["prompts"] for r in results]
    assert versions == [first.version, second.version, second.version]
    assert versions[0] != versions[1]


def test_claims_without_a_verdict_count_as_failures_of_a_run() -> None:
    model = Model(lambda p: verdicts({n: {} for n in claims_in(p) if n != 2}))
    samples = [{**SAMPLE, "id": f"q{n}", "claims": ["One", "Two"]} for n in range(3)]
    settings = Settings(journal=None, max_failures=1, concurrency=1)
    with pytest.raises(IncompleteError, match="2 rows failed, and 1 may"):
        karat.evaluate(samples, judge=Claims(JudgeSession(model, settings)))
