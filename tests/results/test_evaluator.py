"""An evaluator gives for every run what `evaluate` gives for it."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import karat
from karat import Gold
from karat.extend import DataError, Document, Hits, Item, Metric, Semantic, UsageError

WORDS = [
    "rye",
    "oats",
    "barley",
    "wheat",
    "maize",
    "rice",
    "millet",
    "sorghum",
    "spelt",
    "teff",
]


def some_text(source: random.Random) -> str:
    return " ".join(source.choices(WORDS, k=source.randint(3, 9)))


def scored(source: random.Random) -> dict[str, dict[str, float]]:
    """A run with ties, missing and extra queries."""
    names = [f"d{number}" for number in range(12)]
    return {
        f"q{number}": {
            name: round(source.random(), 1)
            for name in source.sample(names, source.randint(1, 12))
        }
        for number in source.sample(range(12), 9)
    }


def listed(source: random.Random) -> dict[str, list[str]]:
    return {query: [*row, *row][:9] for query, row in scored(source).items()}


def with_texts(source: random.Random) -> dict[str, list[Document]]:
    return {
        query: [Document(id=name, text=some_text(source)) for name in row]
        for query, row in scored(source).items()
    }


def labels(source: random.Random) -> dict[str, dict[str, int]]:
    return {
        query: {name: source.randint(0, 3) for name in row}
        for query, row in scored(source).items()
    }


def texts(source: random.Random) -> Gold:
    queries = [f"q{number}" for number in range(10)]
    items = {
        q: tuple(Item(f"i{n}", some_text(source)) for n in (1, 2)) for q in queries
    }
    answers = {q: (Item("a", source.choice(WORDS), group="answers"),) for q in queries}
    return Gold(passages=items, answers=answers)


def embed(given: list[str]) -> list[list[float]]:
    return [[float(text.count(word)) + 0.01 for word in WORDS] for text in given]


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]] = {
    "dicts": (scored, labels, {}),
    "lists": (listed, labels, {"duplicates": "keep"}),
    "documents": (with_texts, labels, {"judged": True, "threshold": 2}),
    "session": (scored, labels, {"match": "id(level=session)"}),
    "profile": (scored, labels, {"profile": "trec_eval-9"}),
    "letter": (scored, labels, {"metrics": ["recall@k"], "k": 3}),
    "exact": (with_texts, texts, {"match": "exact"}),
    "normalized": (with_texts, texts, {"match": "normalized"}),
    "chunk": (with_texts, texts, {"match": "chunk"}),
    "contains": (with_texts, texts, {"match": "contains"}),
    "fuzzy": (with_texts, texts, {"match": "fuzzy(0.5)"}),
    "span": (with_texts, texts, {}),
    "semantic": (with_texts, texts, {"match": Semantic(embed, threshold=0.9)}),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_it_gives_what_evaluate_gives(case: str, seed: int) -> None:
    make_run, make_gold, options = CASES[case]
    source = random.Random(f"{case} {seed}")
    gold = make_gold(source)
    evaluator = karat.Evaluator(gold, **options)
    for _ in range(3):
        run = make_run(source)
        ours = evaluator.evaluate(run, name="system", keep=2)
        expected = karat.evaluate(run, gold=gold, name="system", keep=2, **options)
        assert ours == expected
        assert ours.warnings == expected.warnings
        assert str(ours) == str(expected)


def test_lists_go_together_by_position() -> None:
    evaluator = karat.Evaluator([["a"], ["b"]], "recall")
    assert evaluator.evaluate(
        [["a"], ["c"]],
    ).means == {"recall": 0.5}
    with pytest.raises(karat.KaratError, match="by position"):
        evaluator.evaluate([["a"]])


def test_strings_are_read_as_the_run_has_them() -> None:
    """Whether they are ids or texts is decided for each run, as `evaluate` does."""
    gold = {"q": ["rye"]}
    evaluator = karat.Evaluator(gold, "recall")
    for run in ({"q": ["rye", "oats"]}, {"q": [Document(text="rye")]}):
        expected = karat.evaluate(run, gold=gold, metrics="recall")
        assert evaluator.evaluate(run) == expected


def test_the_gold_is_out_of_reach() -> None:
    gold = {"q": {"a": 1}}
    evaluator = karat.Evaluator(gold, "recall")
    before = evaluator.evaluate({"q": ["a"]})
    gold["q"]["b"] = 1
    assert evaluator.evaluate({"q": ["a"]}) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metrics": "ndgc@10"}, "did you mean 'ndcg'"),
        ({"treshold": 2}, "did you mean 'threshold'"),
        ({"metric": "rr"}, "unknown option of Evaluator 'metric'; .* 'metrics'"),
        ({"ties": "coin"}, "ties must be one of"),
    ],
)
def test_what_is_wrong_is_said_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        karat.Evaluator({"q": ["a"]}, **options)


RUN, GOLD = {"q": ["b", "a"]}, {"q": ["a"]}


def test_gold_may_come_second() -> None:
    assert karat.evaluate(RUN, GOLD) == karat.evaluate(RUN, gold=GOLD)
    assert karat.leaderboard({"run": RUN}, GOLD)["run"].means["rr"] == 0.5
    assert karat.diagnose(RUN, GOLD, k=1).misses == (
        karat.diagnose(RUN, gold=GOLD, k=1).misses
    )
    assert karat.explain(RUN, "q", GOLD) == karat.explain(RUN, "q", gold=GOLD)
    with pytest.raises(DataError, match="give the gold apart: gold="):
        karat.compare(RUN, RUN, GOLD)


@pytest.mark.parametrize(
    ("called", "options", "said"),
    [
        (karat.compare, {"metric": "rr"}, "option of compare 'metric'; .* 'metrics'"),
        (karat.leaderboard, {"metric": "rr"}, "option of leaderboard 'metric'; "),
        (karat.diagnose, {"fource": True}, "option of diagnose 'fource'; .* 'force'"),
        (karat.diagnose, {"metrics": "rr"}, "diagnose takes no metrics"),
    ],
)
def test_options_are_refused_by_who_was_called(
    called: Callable[..., Any], options: dict[str, Any], said: str
) -> None:
    runs = (RUN, RUN) if called is karat.compare else ({"run": RUN},)
    with pytest.raises(UsageError, match=said):
        called(*runs, gold=GOLD, **options)


def test_one_run_where_several_are_expected_is_told() -> None:
    with pytest.raises(UsageError, match=r"as in {'bm25': run}"):
        karat.leaderboard([RUN], GOLD)
    with pytest.raises(
        UsageError, match=r"runs must be a list of runs, .* runs=\[run\]"
    ):
        karat.doctor(GOLD, runs=RUN)  # type: ignore[arg-type]


def test_gold_that_samples_carry_is_not_for_it() -> None:
    with pytest.raises(karat.KaratError, match="no field holds gold"):
        karat.Evaluator([{"id": "q", "retrieved": ["a"]}])


def answer(reply: Any) -> Metric:
    """A metric that answers this, whatever was asked."""

    class Answer(Metric):
        name = "answer"

        def score(self, hits: Hits) -> Any:
            del hits
            return reply

    return Answer()


@pytest.mark.parametrize(
    "reply", [[0.5, 0.5], [], 0.5, [[0.5]], ["good"], [None], [0.5j], [object()]]
)
def test_a_metric_that_returns_no_number_per_query_is_told(reply: Any) -> None:
    with pytest.raises(UsageError, match="'answer' must return a number for each of 1"):
        karat.evaluate(RUN, GOLD, metrics=[answer(reply)])


@pytest.mark.parametrize("reply", [[1], [True], [0.5], np.array([1], np.uint8)])
def test_numbers_of_any_kind_are_scores(reply: Any) -> None:
    result = karat.evaluate(RUN, GOLD, metrics=[answer(reply)])
    assert result["answer"].scores.tolist() == [float(reply[0])]
    outside = karat.evaluate(RUN, GOLD, metrics=[answer([1.5])])
    with pytest.raises(UsageError, match=r"must score within its bounds \(0.0, 1.0\)"):
        str(outside)
