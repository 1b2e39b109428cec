"""Whether the order of two systems hangs on how much of a passage is enough."""

from typing import Any

import karat
from karat import explain
from karat.leaderboards import order_flips

GOLD = (
    "Refunds are issued within fourteen days of the return, by the means of payment "
    "that was used for the order, and always include the cost of delivery."
)
MOST = "Refunds are issued within fourteen days of the return, by the means of payment "
MORE = "that was used for the order, and always include"


def sample(query: str, *texts: str) -> dict[str, object]:
    return {
        "id": query,
        "retrieved": [{"text": text} for text in texts],
        "passages": [GOLD],
    }


# One finds most of every passage, the other all of half of them.
WIDE = [sample("a", MOST + MORE), sample("b", MOST + MORE)]
DEEP = [sample("a", GOLD), sample("b", "Nothing of the kind is said here at all.")]


def flips(one: list[dict[str, object]], other: list[dict[str, object]]) -> list[str]:
    runs = {"one": one, "other": other}
    options: dict[str, Any] = {"metrics": ["recall@1"], "match": "span"}
    evaluations = [karat.evaluate(run, **options) for run in runs.values()]
    return order_flips(runs, evaluations, **options)


def test_an_order_that_hangs_on_tau_is_told() -> None:
    (sentence,) = flips(WIDE, DEEP)
    assert "the order of one and other by recall@1 flips" in sentence


def test_an_order_that_holds_for_every_tau_is_not_mentioned() -> None:
    assert flips(WIDE, WIDE) == []
    assert flips([sample("a", GOLD), sample("b", GOLD)], DEEP) == []


def test_metrics_that_are_not_matched_by_coverage_are_left_alone() -> None:
    runs = {"one": {"q": ["a"]}, "other": {"q": ["b"]}}
    gold = {"q": ["a", "b"]}
    evaluations = [karat.evaluate(run, gold=gold) for run in runs.values()]
    assert order_flips(runs, evaluations, gold=gold) == []


def test_explaining_shows_the_words_that_cover_a_passage() -> None:
    *_, evidence = explain(WIDE, "a", metrics=["recall@1"], match="span").tables
    assert evidence.columns[0] == "gold item"
    ((_, rank, covered, enough, words),) = evidence.rows
    assert (rank, enough) == ("1", "no")
    assert 0.7 < float(covered.rstrip("%")) / 100 < 0.9
    assert words.startswith("Refunds are issued within")


def test_explaining_shows_what_differs_in_covered_text() -> None:
    changed = [sample("a", GOLD.replace("fourteen", "thirty"))]
    *_, evidence = explain(changed, "a", metrics=["recall@1"], match="span").tables
    assert evidence.columns[-1] == "differs"
    assert evidence.rows[0][-1] == "fourteen -> thirty"
