"""Measures of rankings that serve many subtopics, against ndeval and by the book."""

from itertools import count
from math import log2
from pathlib import Path
from random import Random

import ir_measures
import numpy as np
import pytest

import karat
from karat import Gold
from karat.compat.ir_measures import provider
from karat.extend import DataError, FormatError, ParameterError, read_metric
from tests.metrics.judged_runs import one
from tests.oracles.recorded import Scores, recorded

Judgements = list[tuple[str, str, str, int]]

OURS = {
    "ERR-IA@5": "err_ia@5",
    "ERR-IA@20": "err_ia@20",
    "nERR-IA@5": "nerr_ia@5",
    "nERR-IA@20": "nerr_ia@20",
    "alpha-DCG@5": "alpha_dcg@5",
    "alpha-DCG@20": "alpha_dcg@20",
    "alpha-nDCG@5": "alpha_ndcg@5",
    "alpha-nDCG@10": "alpha_ndcg@10",
    "alpha-nDCG@20": "alpha_ndcg@20",
    "P-IA@5": "p_ia@5",
    "P-IA@20": "p_ia@20",
    "strec@5": "st_recall@5",
    "strec@20": "st_recall@20",
    "NRBP": "nrbp",
    "nNRBP": "nnrbp",
    "MAP-IA": "ap_ia",
}
WITH_ALPHA = ("err", "nerr", "alpha", "nrbp", "nnrbp")


def judged(random: Random) -> tuple[Judgements, dict[str, dict[str, float]]]:
    """Judgements of some queries, and rankings of what was judged and what was not."""
    qrels: Judgements = []
    run = {}
    for number in range(5):
        query = f"q{number}"
        names = [f"d{n:03}" for n in random.sample(range(1000), random.randint(1, 40))]
        topics = range(random.randint(1, 6))
        rows = [
            (query, str(topic), name, random.choice((-1, 0, 1, 1, 2)))
            for name in names
            for topic in topics
            if random.random() < 0.5
        ]
        rows.append((query, "0", "always", 2))
        random.shuffle(rows)
        qrels += rows
        found = random.sample([*names, "always", *(f"x{n}" for n in range(30))], 12)
        run[query] = {name: 30.0 - place for place, name in enumerate(found)}
    return qrels, run


def gold_of(qrels: Judgements, folder: Path) -> Gold:
    path = folder / "diversity.qrels"
    path.write_text("".join(f"{q} {t} {d} {g}\n" for q, t, d, g in qrels))
    return karat.read_gold(path)


@pytest.mark.parametrize("seed", range(4))
def test_all_equal_ndeval(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    qrels, run = judged(random)
    alpha, beta, level = (
        random.choice((0.5, 0.3, 0.8, 1.0)),
        random.choice((0.5, 0.8)),
        random.choice((1, 2)),
    )

    def ask() -> Scores:
        import pyndeval  # noqa: PLC0415

        evaluator = pyndeval.RelevanceEvaluator(
            qrels, [*OURS], relevance_level=level, alpha=alpha, beta=beta
        )
        ranked = [(q, d, s) for q, row in run.items() for d, s in row.items()]
        found: Scores = evaluator.evaluate(ranked)
        return found

    theirs = recorded("pyndeval", str(seed), ask)
    metrics = []
    for name in OURS.values():
        params: dict[str, float] = {"threshold": level}
        if name.startswith(WITH_ALPHA):
            params |= {"alpha": alpha}
        if "nrbp" in name:
            params |= {"beta": beta}
        stem, at, k = name.partition("@")
        told = ", ".join(f"{key}={value}" for key, value in params.items())
        metrics.append(f"{stem}({told}){at}{k}")
    result = karat.evaluate(run, gold=gold_of(qrels, tmp_path), metrics=metrics)
    for column, name in zip(result.values(), OURS, strict=True):
        for query in run:
            assert column[query] == pytest.approx(theirs[query][name], abs=1e-12), name


def test_ir_measures_says_the_same(tmp_path: Path) -> None:
    qrels, run = judged(Random(99))
    names = ["alpha_nDCG(alpha=0.3)@10", "ERR_IA(rel=2)@5", "nNRBP(beta=0.8)", "AP_IA"]
    asked = [*map(ir_measures.parse_measure, names)]
    rows = [ir_measures.Qrel(q, d, g, t) for q, t, d, g in qrels]

    def ask() -> Scores:
        found: Scores = {}
        # Of several at once with their own parameters, ir_measures 0.4.3 computes one.
        for measure in asked:
            for row in ir_measures.iter_calc([measure], rows, run):
                found.setdefault(row.query_id, {})[str(measure)] = row.value
        return found

    theirs = recorded("pyndeval", "by ir_measures", ask)
    result = karat.evaluate(run, gold=gold_of(qrels, tmp_path), metrics=names)
    ours: dict[str, dict[str, float]] = {}
    for row in provider().iter_calc(asked, rows, run):
        ours.setdefault(str(row.measure), {})[row.query_id] = row.value
    for name, values in ours.items():
        for query in run:
            assert values[query] == pytest.approx(theirs[query][name], abs=1e-12), name
    assert {*ours} == {*map(str, asked)}
    for column, measure in zip(result.values(), asked, strict=True):
        for query in run:
            wanted = theirs[query][str(measure)]
            assert column[query] == pytest.approx(wanted, abs=1e-12), measure


def by_the_book(
    ranking: list[str], subtopics: dict[str, set[str]], alpha: float, k: int
) -> float:
    """Alpha-nDCG as its paper has it, step by step."""

    def gains(order: list[str]) -> list[float]:
        seen: dict[str, int] = {}
        paid = []
        for name in order:
            served = sorted(subtopics.get(name, ()))
            paid.append(sum((1 - alpha) ** seen.get(topic, 0) for topic in served))
            seen |= {topic: seen.get(topic, 0) + 1 for topic in served}
        return paid

    def dcg(order: list[str]) -> float:
        return sum(
            gain / log2(rank + 1)
            for gain, rank in zip(gains(order[:k]), count(1), strict=False)
        )

    ideal: list[str] = []
    left = sorted(subtopics, reverse=True)
    while left:
        ideal.append(max(left, key=lambda name: round(gains([*ideal, name])[-1], 12)))
        left.remove(ideal[-1])
    return dcg(ranking) / dcg(ideal)


@pytest.mark.parametrize("seed", range(5))
def test_alpha_ndcg_is_what_its_paper_says(seed: int, tmp_path: Path) -> None:
    random = Random(1000 + seed)
    qrels, run = judged(random)
    result = karat.evaluate(
        run, gold=gold_of(qrels, tmp_path), metrics=["alpha_ndcg(alpha=0.4)@30"]
    )
    [column] = result.values()
    for query, row in run.items():
        subtopics: dict[str, set[str]] = {}
        for asked, topic, name, grade in qrels:
            if asked == query and grade > 0:
                subtopics.setdefault(name, set()).add(topic)
        wanted = by_the_book([*row], subtopics, 0.4, 30)
        assert column[query] == pytest.approx(wanted, abs=1e-12)


def test_subtopics_are_kept_by_files_of_every_kind(tmp_path: Path) -> None:
    qrels, run = judged(Random(5))
    gold = gold_of(qrels, tmp_path)
    whole = karat.evaluate(run, gold=gold, metrics=["alpha_ndcg@5", "ndcg@5"])
    path = tmp_path / "diversity.qrels"
    assert "labelled by subtopic" in str(karat.evaluate(run, gold=path))
    whole.save(tmp_path / "saved.json")
    again = karat.load(tmp_path / "saved.json")
    assert again == whole
    np.testing.assert_array_equal(
        again.score("err_ia@5").scores, whole.score("err_ia@5").scores
    )
    as_json = tmp_path / "gold.json"
    as_json.write_text(
        """{"q": [{"id": "a", "subtopics": {"price": 1, "safety": 0}},
                  {"id": "b", "subtopics": {"safety": 2}}]}"""
    )
    result = karat.evaluate({"q": ["a"]}, gold=as_json, metrics=["st_recall", "recall"])
    assert [column.mean for column in result.values()] == [0.5, 0.5]


SERVED = {"a": {"price": 1, "safety": 1}, "b": {"safety": 1}}
BOTH = Gold({"q": {"a": 1, "b": 1}}, subtopics={"q": SERVED})
DISCOUNTS = [1 / log2(rank + 1) for rank in range(1, 1001)]
RECIPROCALS = [1 / rank for rank in range(1, 1001)]


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        ("alpha_dcg(alpha=0)", (1 / log2(3) + 2 / log2(4)) / (2 * sum(DISCOUNTS))),
        ("alpha_dcg(alpha=0)@2000", (1 / log2(3) + 2 / 2) / (2 * sum(DISCOUNTS))),
        ("alpha_dcg(alpha=0)@999", (1 / log2(3) + 2 / 2) / (2 * sum(DISCOUNTS[:999]))),
        ("alpha_dcg(alpha=0)@2", 1 / log2(3) / (2 * sum(DISCOUNTS[:2]))),
        ("err_ia(alpha=0)", (1 / 2 + 2 / 3) / (2 * sum(RECIPROCALS))),
        ("err_ia(alpha=1)", (1 / 2 + 1 / 3) / 2),
        ("p_ia", 3 / 3 / 2),
        ("p_ia@2", 1 / 2 / 2),
        ("p_ia@5", 3 / 5 / 2),
        ("st_recall", 1),
        ("st_recall@2", 1 / 2),
        ("ap_ia", (1 / 3 + (1 / 2 + 2 / 3) / 2) / 2),
        ("nrbp(beta=0.6)", (1 - 0.5 * 0.6) / 2 * (0.6 + (1 + 0.5) * 0.6**2)),
        ("alpha_ndcg", (1 / log2(3) + 1.5 / 2) / (2 + 0.5 / log2(3))),
    ],
)
def test_a_ranking_by_hand(metric: str, score: float) -> None:
    means = karat.evaluate({"q": ["x", "b", "a"]}, BOTH, metrics=metric).means
    assert means == {metric: pytest.approx(score)}
    assert karat.evaluate({"q": []}, BOTH, metrics=metric).means == {metric: 0}


@pytest.mark.parametrize("metric", ["alpha_ndcg", "alpha_dcg", "err_ia", "p_ia"])
def test_the_letter_stands_for_the_cutoff_of_each_query(metric: str) -> None:
    relevant = [{"id": name, "subtopics": topics} for name, topics in SERVED.items()]
    samples = [
        {"id": f"q{k}", "k": k, "retrieved": ["b", "x", "a"], "relevant": relevant}
        for k in (1, 2, 3)
    ]
    scores = karat.evaluate(samples, metrics=f"{metric}@k")[f"{metric}@k"].scores
    fixed = [f"{metric}@{k}" for k in (1, 2, 3)]
    means = karat.evaluate(samples[:1], metrics=fixed).means
    assert scores.tolist() == pytest.approx([*means.values()])
    assert scores[0] != scores[1]


def test_gold_without_subtopics_is_told_what_it_lacks() -> None:
    with pytest.raises(DataError, match=r"alpha_ndcg needs gold that names the subtop"):
        karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics=["alpha_ndcg@5"])


def test_a_document_is_judged_once_for_an_subtopic(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r":3: .*judged twice for subtopic '1'"):
        gold_of([("q", "1", "a", 1), ("q", "2", "a", 1), ("q", "1", "a", 0)], tmp_path)


@pytest.mark.parametrize(
    "text", ["alpha_ndcg(alpha=2)", "nrbp(beta=1)", "err_ia(alpha=-1)"]
)
def test_parameters_are_checked(text: str) -> None:
    with pytest.raises(ParameterError, match="must be"):
        karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics=[text])


def test_no_subtopic_served_is_undefined() -> None:
    hits = one("ab", {"a": 0, "b": -1})
    for name in OURS.values():
        assert np.isnan(read_metric(name).score(hits)).all()


def test_remarks_and_signatures_name_no_subtopics(tmp_path: Path) -> None:
    path = tmp_path / "signed.qrels"
    path.write_text("# by hand\n# in may\nq 0 a 1\nq human:ann b 1\nq judge:m c 0\n")
    assert not karat.read_gold(path).subtopics
