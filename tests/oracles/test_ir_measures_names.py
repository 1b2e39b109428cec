"""Every measure in the registry of ir_measures: the same number, or what is missing."""

import ir_measures
import numpy as np
import pytest
from ir_measures import measures

import karat
from karat.extend import UsageError, read_metric
from karat.metrics import MISSING
from tests.oracles.cases import Batch, random_batch

NEEDS_CUTOFF = {
    *("P", "R", "Success", "Judged", "P_IA", "StRecall", "ERR", "ERR_IA", "nERR_IA"),
    *("alpha_DCG", "alpha_nDCG"),
}
# ERR asks a script in Perl that reads topics which are numbers; it has an exact twin in
# test_exact. The others have tests of their own, with gold of their own kind.
BY_SUBTOPIC = {
    *("AP_IA", "ERR_IA", "MAP_IA", "NRBP", "P_IA", "StRecall", "alpha_DCG", "nNRBP"),
    *("alpha_nDCG", "nERR_IA", "\u03b1_DCG", "\u03b1_nDCG"),
}
USER_MODELS = {
    *("BPM", "INSQ", "INST", "NERR8", "NERR9", "NERR10", "NERR11", "SDCG", "RBP"),
}
NOT_AT_HAND = {"ERR", *BY_SUBTOPIC, *USER_MODELS}


def spelled(name: str) -> str:
    measure = measures.registry[name]
    if name == "IPrec":
        return "IPrec@0.3"
    needs = measure.NAME in NEEDS_CUTOFF or name in NEEDS_CUTOFF
    required = getattr(measure.SUPPORTED_PARAMS.get("cutoff"), "required", False)
    return f"{name}@5" if needs or required else name


@pytest.mark.parametrize("name", sorted(measures.registry))
def test_every_name_parses(name: str) -> None:
    read_metric(spelled(name))


@pytest.mark.parametrize("name", sorted(MISSING))
def test_what_others_have_and_karat_does_not_is_said(name: str) -> None:
    with pytest.raises(
        UsageError, match=r"is not known here: it (needs|asks|compares)"
    ):
        read_metric(name)


@pytest.fixture(scope="module")
def batch() -> Batch:
    whole = random_batch(21, 300, (0, 0, 1, 2, 3), ties=False)
    kept = [query for query in whole.gold if whole.scores.get(query)]
    return Batch(
        # Of what was not retrieved, ir_measures takes the score to be 0.
        # Nor does its Accuracy bear that everything retrieved is relevant.
        {q: {d: s + 1 for d, s in whole.scores[q].items()} | {"x": 0.1} for q in kept},
        {q: whole.rankings[q] for q in kept},
        {q: whole.gold[q] for q in kept},
        {q: whole.cases[q] for q in kept},
    )


@pytest.mark.parametrize("name", sorted(measures.registry.keys() - NOT_AT_HAND))
def test_values_are_equal(name: str, batch: Batch) -> None:
    text = spelled(name)
    theirs = {
        row.query_id: row.value
        for row in ir_measures.iter_calc(
            [ir_measures.parse_measure(text)],
            {q: {d: int(g) for d, g in row.items()} for q, row in batch.gold.items()},
            batch.scores,
        )
    }
    profile = "trec_eval-9" if name == "IPrec" else None
    result = karat.evaluate(
        batch.scores, gold=batch.gold, metrics=[text], profile=profile
    )
    [column] = result.values()
    for query in batch.gold:
        ours = float(np.nan_to_num(column[query]))
        assert ours == pytest.approx(theirs.get(query, 0.0), abs=1e-12), query


def test_a_mapping_of_gains_is_read_as_ir_measures_writes_it(batch: Batch) -> None:
    measure = ir_measures.nDCG(gains={0: 1, 1: 5, 2: 3}) @ 5
    whole = {q: {d: int(g) for d, g in row.items()} for q, row in batch.gold.items()}
    theirs = {
        row.query_id: row.value
        for row in ir_measures.iter_calc([measure], whole, batch.scores)
    }
    result = karat.evaluate(batch.scores, gold=batch.gold, metrics=[str(measure)])
    assert [*result] == ["ndcg(gains=0:1;1:5;2:3)@5"]
    scores = np.nan_to_num(result["ndcg(gains=0:1;1:5;2:3)@5"].scores)
    np.testing.assert_allclose(
        scores, [theirs[query] for query in result.queries], rtol=0, atol=1e-12
    )


def test_a_condensed_list_is_a_rule_of_the_whole_evaluation(batch: Batch) -> None:
    with pytest.raises(UsageError, match="--judged-only"):
        read_metric("AP(judged_only=True)")
    measure = ir_measures.AP(judged_only=True)
    whole = {q: {d: int(g) for d, g in row.items()} for q, row in batch.gold.items()}
    theirs = {
        row.query_id: row.value
        for row in ir_measures.iter_calc([measure], whole, batch.scores)
    }
    result = karat.evaluate(
        batch.scores, gold=batch.gold, metrics=["ap"], judged_only=True
    )
    scores = np.nan_to_num(result["ap"].scores)
    np.testing.assert_allclose(
        scores, [theirs[query] for query in result.queries], rtol=0, atol=1e-12
    )


def test_mrr_at_10_is_what_ms_marco_counts(batch: Batch) -> None:
    """Over all queries of the qrels, 0 where the run lacks one; ties have their own."""
    gold = {q: {d: int(g) for d, g in row.items()} for q, row in batch.gold.items()}
    relevant = {q: row for q, row in gold.items() if any(g > 0 for g in row.values())}
    run = {q: row for number, (q, row) in enumerate(batch.scores.items()) if number % 7}
    marco = ir_measures.providers.registry["msmarco"]
    theirs = marco.calc_aggregate([ir_measures.RR @ 10], relevant, run)
    result = karat.evaluate(run, gold=relevant, metrics=["MRR@10"])
    assert result.means["rr@10"] == pytest.approx(
        theirs[ir_measures.RR @ 10], abs=1e-12
    )
