"""Verdicts of a judge beside those of people, and what later evaluations say of it."""

import json
from pathlib import Path

import numpy as np
import pytest

import karat
from karat.extend import Claims, DataError, FormatError, JudgeSession, Settings
from karat.judging.agreement import claim_labels, save_calibration
from karat.trust import compare_claims
from tests.judging.models import Model, session_of, support, verdicts
from tests.stats.kappas import cohen_kappa

PEOPLE = {
    "q1": {"Bread rises": True, "Rye is a very old grain": True},
    "q2": {"Salt is white": False, "Tea is a hot drink of leaves": True},
    "q3": {"Ovens are hot": True},
}
SAMPLES = [
    {"id": query, "contexts": ["One is here.", "Two is here."], "claims": [*row]}
    for query, row in PEOPLE.items()
]
FINDS = {"Bread rises": [1], "Salt is white": [2], "Ovens are hot": [1]}


def test_verdicts_are_compared_claim_by_claim() -> None:
    result = karat.evaluate(
        SAMPLES, metrics="context_recall", judge=Claims(session_of(support(FINDS)))
    )
    found = compare_claims(result, PEOPLE)
    people, judge = np.array([1.0, 1, 0, 1, 1]), np.array([1.0, 0, 1, 0, 1])
    assert (found.n, found.queries, found.failed) == (5, 3, 0)
    assert found.figures.equal.value == pytest.approx(2 / 5)
    assert found.figures.kappa.value == pytest.approx(cohen_kappa(people, judge))
    assert [(row.rate, row.n) for row in found.rates] == [(0.5, 4), (0.0, 1)]
    recall = [row.rate for row in found.recall]
    assert recall == pytest.approx([2.5 / 3, 2 / 3, -0.5 / 3, 0.5 / 3])
    assert found.recall[-1].rate == pytest.approx(0.5 / 3)
    text = found.table().as_text()
    assert "context_recall, mean error" in text
    assert "intervals are over 3 queries" in text
    json.dumps(found.to_dict(), allow_nan=False)


def test_claims_without_a_verdict_are_counted_and_strangers_refused() -> None:
    sample = {"id": "q", "contexts": ["One is here."], "claims": ["A", "B"]}
    # Whatever is asked, it speaks of the first claim alone.
    judge = Claims(session_of(lambda _: verdicts({1: {"alone": [1]}})))
    result = karat.evaluate([sample], metrics="context_recall", judge=judge)
    found = compare_claims(result, {"q": {"A": True, "B": True}})
    assert (found.n, found.failed) == (1, 1)
    assert "failed: 1 claim without a verdict" in found.table().as_text()
    with pytest.raises(DataError, match="no claim in common"):
        compare_claims(result, {"q": {"C": True}})


def test_labels_of_people_are_read_and_what_is_wrong_has_a_line(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    claims = [
        {"text": "Rye.", "supported": True},
        {"text": "Salt.", "supported": False},
    ]
    path.write_text(json.dumps({"id": "q", "claims": claims}) + "\n", "utf-8")
    assert claim_labels(path) == {"q": {"Rye.": True, "Salt.": False}}
    for line in ('{"id": "q"}', '{"id": "q", "claims": [{"text": "Rye."}]}', "[]"):
        path.write_text(f"\n{line}\n", "utf-8")
        with pytest.raises(FormatError, match=r"people\.jsonl:2"):
            claim_labels(path)
    path.write_text("", "utf-8")
    with pytest.raises(FormatError, match="holds no claims"):
        claim_labels(path)


def test_a_judge_that_was_compared_is_called_calibrated(tmp_path: Path) -> None:
    settings = Settings(journal=tmp_path / "journal.sqlite")
    judge = Claims(JudgeSession(Model(support(FINDS)), settings))

    def kinds(judge: Claims) -> dict[str, str]:
        result = karat.evaluate(SAMPLES, metrics="context_recall", judge=judge)
        return {notice.kind: str(notice) for notice in result.warnings}

    assert "uncalibrated" in kinds(judge)
    result = karat.evaluate(SAMPLES, metrics="context_recall", judge=judge)
    assert settings.journal is not None
    for _ in range(2):
        save_calibration(compare_claims(result, PEOPLE), judge.facts, settings.journal)
    told = kinds(judge)
    assert "uncalibrated" not in told
    assert "against people on 5 claims: kappa -0.3636" in told["calibrated"]
    assert "context_recall off by 0.1667 on average" in told["calibrated"]
    others = Claims(JudgeSession(Model(support(FINDS)), settings), votes=3)
    assert "uncalibrated" in kinds(others)
