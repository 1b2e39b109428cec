"""The Future AGI front gives the numbers and reasons of the documented functions."""

import json
from collections.abc import Mapping
from math import inf, log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from karat import KaratError
from karat.compat.futureagi import TEMPLATES, EvalResult, Evaluator

GOLDEN = Path(__file__).parents[1] / "golden" / "futureagi.json"
CASES = [
    case
    for case in json.loads(GOLDEN.read_text("utf-8"))["cases"]
    if case["system"] == "futureagi/functions"
]
CUT = [name for name in TEMPLATES if name.endswith("_at_k")]

PARIS = "Paris is the capital of France."
EUROPE = "France is in Europe."
LOUVRE = "The Louvre is in Paris."


def run(
    template: str | list[str], hypothesis: Any, reference: Any, **config: Any
) -> list[EvalResult]:
    inputs = {"hypothesis": hypothesis, "reference": reference}
    return Evaluator().evaluate(template, inputs, eval_config=config).eval_results


def one(template: str, hypothesis: Any, reference: Any, **config: Any) -> EvalResult:
    (result,) = run(template, json.dumps(hypothesis), json.dumps(reference), **config)
    return result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_vector_of_the_original_is_met(case: Mapping[str, Any]) -> None:
    (result,) = (
        Evaluator()
        .evaluate(
            eval_templates=case["metric"],
            inputs=case["inputs"],
            eval_config=case["config"],
        )
        .eval_results
    )
    expected = case["expected"]
    assert result.name == case["metric"]
    if "error" in expected:
        assert result.output is None
        assert result.error == result.reason != ""
    else:
        assert result.error is None
        assert result.output == pytest.approx(expected["value"], abs=1e-12)
        assert result.reason == expected["reason"]


def test_no_vector_is_missing() -> None:
    assert len(CASES) == 63


values = st.sampled_from(["a", "b", "1", 1, 1.0, True, None, 2.5, "c"])


def by_hand(retrieved: list[Any], relevant: list[Any], k: int) -> dict[str, float]:
    """The formulas of the documentation, on sets of Python values."""
    wanted, found = set(relevant), set(retrieved[:k])
    paid = [
        1 / log2(rank + 1)
        for rank, value in enumerate(retrieved[:k], 1)
        if value in wanted and value not in retrieved[: rank - 1]
    ]
    ideal = sum(1 / log2(rank + 1) for rank in range(1, min(len(wanted), k) + 1))
    ranks = [rank for rank, value in enumerate(retrieved, 1) if value in wanted]
    return {
        "recall_at_k": len(found & wanted) / len(wanted),
        "precision_at_k": len(found & wanted) / k,
        "ndcg_at_k": sum(paid) / ideal,
        "mrr": 1 / ranks[0] if ranks else 0.0,
        "hit_rate": float(bool(ranks)),
    }


@given(
    st.lists(values, max_size=8),
    st.lists(values, min_size=1, max_size=6),
    st.none() | st.integers(1, 10),
)
def test_any_ranking_scores_as_the_formulas_say(
    retrieved: list[Any], relevant: list[Any], k: int | None
) -> None:
    expected = by_hand(retrieved, relevant, k or len(retrieved) or 1)
    results = run(list(TEMPLATES), json.dumps(retrieved), json.dumps(relevant), k=k)
    assert [result.name for result in results] == list(TEMPLATES)
    for result in results:
        assert result.output == pytest.approx(expected[result.name], abs=1e-12)


def test_a_batch_is_scored_item_by_item() -> None:
    results = run(
        "recall_at_k",
        [json.dumps([PARIS, EUROPE]), json.dumps(["x", "y", "z", LOUVRE])],
        [json.dumps([PARIS, LOUVRE]), json.dumps([LOUVRE])],
        k=3,
    )
    assert [result.output for result in results] == [0.5, 0.0]
    assert [result.reason for result in results] == ["Recall@3: 0.5", "Recall@3: 0.0"]
    assert all(result.runtime >= 0 for result in results)


def test_a_batch_may_be_long() -> None:
    hypotheses = [json.dumps(["a", str(n)]) for n in range(500)]
    references = [json.dumps([str(n % 2)]) for n in range(500)]
    results = run("mrr", hypotheses, references)
    assert [result.output for result in results] == [0.5, 0.5, *[0.0] * 498]


def test_a_bad_item_leaves_the_others_their_results() -> None:
    results = run("recall_at_k", ['["a"]', "5", '["a"]'], ['["a"]', '["a"]', "[]"])
    assert [result.output for result in results] == [1.0, None, None]
    assert "hypothesis must be a list" in results[1].reason
    assert "at least one relevant item" in results[2].reason


def test_several_templates_really_run_one_after_the_other() -> None:
    results = run(["mrr", "recall_at_k"], ['["x", "a"]', '["a"]'], ['["a"]', '["a"]'])
    assert [(result.name, result.output) for result in results] == [
        ("mrr", 0.5),
        ("mrr", 1.0),
        ("recall_at_k", 1.0),
        ("recall_at_k", 1.0),
    ]


def test_lists_need_not_be_json() -> None:
    assert [r.output for r in run("hit_rate", [["a"], ["b"]], [["a"], ["a"]])] == [1, 0]
    assert [r.output for r in run("recall_at_k", [1, 2], [2, 3])] == [0.5]
    # A list of texts is a batch of them, each read as a list of one.
    assert [r.output for r in run("hit_rate", ["a", "b"], ["a", "c"])] == [1.0, 0.0]


@pytest.mark.parametrize(
    "names",
    [("response", "ground_truth"), ("output", "expected_output")],
)
def test_inputs_go_by_the_other_names_of_the_client(names: tuple[str, str]) -> None:
    inputs = dict(zip(names, ('["a"]', '["a"]'), strict=True))
    assert Evaluator().evaluate("mrr", inputs).eval_results[0].output == 1.0


@pytest.mark.parametrize("template", CUT)
@pytest.mark.parametrize("k", [0, -1, "x", "2.5", None, [], float("nan")])
def test_an_unusable_k_means_the_whole_ranking(template: str, k: Any) -> None:
    result = one(template, ["x", "a", "y"], ["a"], k=k)
    assert result.reason.startswith(f"{TEMPLATES[template]}@3: ")


@pytest.mark.parametrize(
    ("k", "used"), [("2", 2), (2.7, 2), (True, 1), (" 3 ", 3), (10**30, 10**30)]
)
def test_k_is_read_as_python_reads_integers(k: Any, used: int) -> None:
    result = one("recall_at_k", ["x", "a"], ["a"], k=k)
    assert result.reason == f"Recall@{used}: {float(used > 1)}"


def test_an_infinite_k_is_an_error_of_the_item() -> None:
    assert one("recall_at_k", ["a"], ["a"], k=inf).error == "k must be finite, got inf"


@pytest.mark.parametrize("template", ["mrr", "hit_rate"])
def test_lists_of_lists_are_several_queries_in_one(template: str) -> None:
    result = one(template, [["x", "a"], ["b"], []], [["a"], ["c"], ["d"]])
    mean = {"mrr": 0.5 / 3, "hit_rate": 1 / 3}[template]
    assert result.output == pytest.approx(mean, abs=1e-12)
    assert result.reason == f"{TEMPLATES[template]}: {result.output} across 3 queries"


@pytest.mark.parametrize("template", ["mrr", "hit_rate"])
@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [
        ([["a"]], ["a"]),
        ([], [["a"]]),
        ([["a"], ["b"]], [["a"]]),
        ([["a"]], [[]]),
        (["a", ["b"]], ["a"]),
        (["a"], [{"a": 1}]),
        ([["a"]], [[["a"]]]),
    ],
)
def test_lists_of_lists_must_fit_each_other(
    template: str, hypothesis: Any, reference: Any
) -> None:
    assert one(template, hypothesis, reference).output is None


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("['a', 'x']", 1.0),
        ("a", 1.0),
        ("[a]", 0.0),
        ('["a"', 0.0),
        ("('a',)", None),
        ("{'a'}", None),
        ('{"a": 1}', None),
        ("null", None),
        ("", 0.0),
        ("[{1}]", None),
        ("['\\d', 'a']", 1.0),
        ("[" * 100_000, None),
        ("[" + "9" * 5000 + "]", None),
    ],
)
def test_text_that_is_no_json_is_read_as_python_or_as_one_item(
    text: str, output: float | None
) -> None:
    (result,) = run("hit_rate", text, '["a"]')
    assert result.output == output


@pytest.mark.parametrize(
    ("template", "inputs", "config"),
    [
        ("recall", {"hypothesis": "[]", "reference": "[]"}, {}),
        (["mrr", "recal_at_k"], {"hypothesis": "[]", "reference": "[]"}, {}),
        ("mrr", {"hypothesis": "[]"}, {}),
        ("mrr", {"hypothesis": ["[]", "[]"], "reference": ["[]"]}, {}),
        ("mrr", {"hypothesis": "[]", "reference": "[]"}, {"K": 3}),
    ],
)
def test_a_call_that_cannot_be_carried_out_raises(
    template: Any, inputs: Any, config: Any
) -> None:
    with pytest.raises(KaratError):
        Evaluator().evaluate(template, inputs, eval_config=config)


def test_keys_and_options_of_the_service_are_taken_and_not_needed() -> None:
    evaluator = Evaluator(fi_api_key="k", fi_secret_key="s", max_workers=8)
    inputs = {"hypothesis": '["a"]', "reference": '["a"]'}
    results = evaluator.evaluate("mrr", inputs, timeout=5, model_name="turing_flash")
    assert results.eval_results[0].output == 1.0
