"""Claims without a verdict, stated twice or voted on: nothing becomes a silent zero."""

import math
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.extend import Claims, JudgeSession, Prompt, Settings
from karat.results.loading import from_dict
from tests.judging.models import Model, claims_in, session_of, support, verdicts
from tests.judging.test_claims import SAMPLE, judged


def both(verdict: dict[str, Any]) -> str:
    return verdicts({1: verdict, 2: verdict})


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "it is empty"),
        ("I cannot say.", "no whole JSON object"),
        ('{"verdicts": [{"claim": 1, "alone": [1', "no whole JSON object"),
        ('{"answer": 1}', "no list of verdicts"),
        (verdicts({}), "claim 2 has no verdict"),
        (verdicts({1: {}, 2: {}, 3: {}}), "not asked about"),
        (both({"alone": [9]}), "context 9, which was not shown"),
        (both({"parts": [0]}), "context 0, which was not shown"),
        (both({"alone": ["first"]}), "of another form"),
        (both({"complete": "perhaps"}), "of another form"),
        (both({})[:-2] + "," + both({})[14:], "two verdicts"),
    ],
)
def test_a_claim_without_a_valid_verdict_is_a_failure_and_not_a_zero(
    reply: str, reason: str
) -> None:
    samples = [
        {**SAMPLE, "claims": ["One", "Two"]},
        {**SAMPLE, "id": "q2", "claims": ["Good"]},
    ]

    def answer(prompt: Prompt) -> str:
        return verdicts({1: {"alone": [1]}}) if len(claims_in(prompt)) == 1 else reply

    model = Model(answer)
    result = judged(model, samples, metrics=["context_recall"])
    column = result["context_recall"]
    assert column.mean == 1.0
    assert (column.n, column.undefined, column.failed) == (1, 0, 1)
    assert reason in column.failures[0]
    assert math.isnan(column.scores[0])
    assert result.status("context_recall", 0) == "failed"
    told = next(notice for notice in result.warnings if notice.kind == "failed")
    assert told.examples == (f"q1: {column.failures[0]}",)
    assert from_dict(result.to_dict()).warnings == result.warnings
    assert len({prompt.user for prompt in model.asked}) == len(model.asked) == 4
    assert result.traces[0].verdicts[0].failure is not None


def test_a_claim_without_a_verdict_counts_neither_way_and_is_told() -> None:
    def answer(prompt: Prompt) -> str:
        return verdicts({n: {"alone": [2]} for n in claims_in(prompt) if n != 2})

    sample = {**SAMPLE, "claims": ["One", "Two", "Three"]}
    result = judged(Model(answer), [sample], metrics=["recall", "rr"])
    assert result.means == {"recall": 1.0, "rr": 0.5}
    assert result["recall"].failed == 0
    told = next(notice for notice in result.warnings if notice.kind == "unjudged")
    assert str(told).startswith("1 claim has no valid verdict and counts neither way")
    assert told.examples == ("q1",)
    assert [v.failure is None for v in result.traces[0].verdicts] == [True, False, True]


def test_means_have_a_range_where_claims_lack_verdicts() -> None:
    def answer(prompt: Prompt) -> str:
        if "Lost" in prompt.user:
            return "I cannot say."
        return verdicts({n: {"alone": [2]} for n in claims_in(prompt) if n != 2})

    samples = [
        {**SAMPLE, "claims": ["One", "Two", "Three"]},
        {**SAMPLE, "id": "q2", "claims": ["Four"]},
    ]
    metrics = ["recall", "rr", "precision@2", "contradiction", "context_precision"]
    result = judged(Model(answer), samples, metrics=metrics)
    # Of q1 two claims are found at rank 2 of 2, and one has no verdict; all of q2 is
    # found there.
    assert result.ranges == {
        "recall": (pytest.approx((2 / 3 + 1) / 2), 1.0),
        "rr": (0.5, 0.75),
        "precision@2": (0.5, 0.75),
        "contradiction": (0.0, pytest.approx(1 / 6)),
        "context_precision": (0.5, 0.75),
    }
    assert "recall 0.8333 .. 1.0000, rr 0.5000 .. 0.7500" in str(result.warnings)
    assert "0.8333 .. 1.0000" in str(result).splitlines()[3]
    assert from_dict(result.to_dict()).warnings == result.warnings
    failed = {**SAMPLE, "id": "q3", "claims": ["Lost"]}
    parts = [
        judged(Model(answer), [one], metrics=metrics) for one in (*samples, failed)
    ]
    whole = karat.Evaluation.merge(parts)
    assert whole.ranges["recall"] == pytest.approx((5 / 9, 1.0))
    assert judged(Model(answer), samples[1:], metrics=metrics).ranges == {}


def test_a_range_is_no_error_where_undefined_scores_are() -> None:
    def answer(prompt: Prompt) -> str:
        if prompt.name == "split":
            return "I cannot say." if "lost" in prompt.user else '{"claims": ["One"]}'
        return verdicts({n: {"alone": [1]} for n in claims_in(prompt)})

    references = {"q1": "One.", "q2": "All is lost."}
    samples = [
        {"id": query, "query": "Q?", "contexts": ["One."], "reference": text}
        for query, text in references.items()
    ]
    result = judged(
        Model(answer), samples, metrics=["context_recall"], undefined="error"
    )
    assert result.ranges == {"context_recall": (0.5, 1.0)}
    assert "0.5000 .. 1.0000" in str(result)


@pytest.mark.parametrize("nothing", ["", "none", None, "n/a", "null", ["none"]])
def test_a_claim_that_nothing_supports_counts_however_that_is_written(
    nothing: object,
) -> None:
    lists = {"alone": nothing, "parts": nothing, "against": nothing}
    said: dict[int, Any] = {1: {"alone": [1]}, 2: {**lists, "complete": "n/a"}}
    sample = {**SAMPLE, "claims": ["One", "Two"]}
    result = judged(Model(lambda _: verdicts(said)), [sample], metrics=["recall"])
    assert result.means == {"recall": 0.5}
    assert result.ranges == {}


def test_a_verdict_in_another_form_is_none() -> None:
    reply = '{"verdicts": [{"claim": 1, "supported": true, "contexts": [1]}]}'
    sample = {**SAMPLE, "claims": ["One"]}
    result = judged(Model(lambda _: reply), [sample], metrics=["recall"])
    assert "of another form" in result["recall"].failures[0]
    assert result.ranges == {"recall": (0.0, 1.0)}


def test_a_claim_without_a_verdict_is_asked_about_again_when_errors_are_retried(
    tmp_path: Path,
) -> None:
    sample = {**SAMPLE, "claims": ["One", "Two"]}
    forgets = Model(lambda p: verdicts({n: {} for n in claims_in(p) if n != 2}))
    whole = Model(lambda p: verdicts({n: {"alone": [1]} for n in claims_in(p)}))

    def recall(model: Model, **options: Any) -> float:
        settings = Settings(journal=tmp_path / "j.sqlite", **options)
        claims = Claims(JudgeSession(model, settings))
        return karat.evaluate([sample], metrics="recall", judge=claims)["recall"].mean

    assert recall(forgets) == 0.0
    assert recall(whole) == 0.0
    assert whole.asked == []
    assert recall(whole, retry_errors=True) == 1.0
    assert len(whole.asked) == 1


def test_a_claim_that_is_stated_twice_counts_once() -> None:
    model = Model(support({"One": [1]}))
    sample = {**SAMPLE, "claims": ["One", "Two", "One"]}
    result = judged(model, [sample], metrics=["recall"])
    assert result.means == {"recall": 0.5}
    assert claims_in(model.asked[0]) == [1, 2]


def test_votes_tell_ties_and_failures() -> None:
    def answer(prompt: Prompt) -> str:
        if "assessor 2" in prompt.user:
            return verdicts({1: {"alone": []}, 2: {"alone": [1]}})
        return verdicts({1: {"alone": [1]}, 2: {"alone": ["?"]}})

    sample = {**SAMPLE, "claims": ["One", "Two"]}
    claims = Claims(session_of(Model(answer)), votes=2)
    result = karat.evaluate([sample], metrics="recall", match=claims)
    assert result["recall"].mean == 0.5
    told = next(notice for notice in result.warnings if notice.kind == "votes")
    assert "1 tie counts as not supported; 1 vote failed, on 1 claim" in str(told)
    assert [v.disagreement for v in result.traces[0].verdicts] == [0.5, 0.5]
