"""Is B better than A? The numbers equal SciPy's, and the verdict follows them."""

import builtins
import json
import math
import pickle  # noqa: TID251
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import karat
from karat import Comparison, Evaluation, KaratError
from karat.comparison.differences import Difference, Test
from karat.extend import (
    FormatError,
    MetricScores,
    MismatchError,
    Policies,
    Query,
    UsageError,
)

RNG = np.random.default_rng(7)
QUERIES = [f"q{n}" for n in range(60)]
GOLD = {query: {f"{query}-a": 1, f"{query}-b": 2} for query in QUERIES}


def run(skill: float, seed: int) -> dict[str, list[str]]:
    """A run that has the gold near the top the more often, the more skill it has."""
    dice = np.random.default_rng(seed)
    found = {}
    for query in QUERIES:
        row = [f"{query}-x{place}" for place in range(12)]
        for item in GOLD[query]:
            top = dice.random() < skill
            row.insert(int(dice.integers(0, 3) if top else dice.integers(4, 12)), item)
        found[query] = row
    return found


OLD, NEW = run(0.3, 1), run(0.8, 2)


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return karat.compare(OLD, NEW, gold=GOLD, metrics=["ndcg@10", "hit@1", "rr"])


def scores(of: dict[str, list[str]], metric: str) -> Any:
    return karat.evaluate(of, gold=GOLD, metrics=[metric])[metric].scores


def difference(old: Any, new: Any, metric: str = "ap", **how: Any) -> Difference:
    """What a comparison says of two runs with these scores."""
    clusters = how.pop("clusters", None)
    queries = [f"q{n}" for n in range(len(old))]
    facts = {}
    if clusters is not None:
        pairs = zip(queries, clusters.tolist(), strict=True)
        facts = {q: Query(q, metadata={"document": n}) for q, n in pairs}
        how["cluster"] = "document"
    runs = [
        Evaluation(
            run=run,
            gold="gold",
            queries=queries,
            columns={
                metric: MetricScores(metric, scores, binary=metric.startswith("hit"))
            },
            missing=np.zeros(len(old), bool),
            policies=Policies(),
            facts=facts,
        )
        for run, scores in (("a", old), ("b", new))
    ]
    return karat.compare(*runs, metrics=[metric], **how)[metric]


def test_the_difference_and_its_tests_equal_scipy(compared: Comparison) -> None:
    found = compared["ndcg@10"]
    old, new = scores(OLD, "ndcg@10"), scores(NEW, "ndcg@10")
    assert found.baseline_mean == pytest.approx(old.mean(), abs=1e-12)
    assert found.difference == pytest.approx((new - old).mean(), abs=1e-12)
    t = karat.compare(OLD, NEW, gold=GOLD, metrics=["ndcg@10"], test="t")["ndcg@10"]
    expected = scipy.stats.ttest_rel(new, old)
    assert t.p == pytest.approx(expected.pvalue, abs=1e-9)
    assert t.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.test == "sign-flip"
    assert (found.verdict, found.n) == ("better", 60)
    low, high = found.interval or (0, 0)
    assert low < found.difference < high
    assert found.wins + found.ties + found.losses == 60


def test_binary_metrics_are_tested_alike(compared: Comparison) -> None:
    """Of 0/1 scores, the sign-flip test is McNemar's exact test."""
    found = compared["hit@1"]
    differences = scores(NEW, "hit@1") - scores(OLD, "hit@1")
    gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
    exact = scipy.stats.binomtest(min(gained, lost), gained + lost).pvalue
    assert found.test == "sign-flip"
    assert found.p == pytest.approx(exact, abs=0.002)


def test_the_other_way_round_is_worse(compared: Comparison) -> None:
    back = karat.compare(NEW, OLD, gold=GOLD, metrics=["ndcg@10"])["ndcg@10"]
    assert back.verdict == "worse"
    assert back.difference == pytest.approx(-compared["ndcg@10"].difference, abs=1e-12)


def test_no_different_needs_a_margin() -> None:
    again = {q: [row[0], row[2], row[1], *row[3:]] for q, row in NEW.items()}
    plain = karat.compare(NEW, again, gold=GOLD, metrics=["recall@10"])["recall@10"]
    assert plain.verdict == "undecided"
    assert plain.interval is not None
    assert max(map(abs, plain.interval)) < 0.1
    margin = {"recall@10": 0.1}
    found = karat.compare(NEW, again, gold=GOLD, metrics=["recall@10"], margin=margin)
    assert found["recall@10"].verdict == "no different"
    assert (
        "within 0.1" in found["recall@10"].sentence() or found["recall@10"].ties == 60
    )
    with pytest.raises(UsageError, match="a margin for rr, which is not compared"):
        karat.compare(NEW, again, gold=GOLD, metrics=["ap"], margin={"rr": 0.1})


def test_few_queries_get_no_verdict() -> None:
    few = {query: GOLD[query] for query in QUERIES[:10]}
    found = karat.compare(OLD, NEW, gold=few, metrics=["rr"])["rr"]
    assert found.verdict == "undecided"
    assert found.smallest_p == pytest.approx(2**-9)
    assert "10 queries are too few" in found.sentence()


@pytest.mark.parametrize("queries", [1, 2, 3, 6, 15])
@pytest.mark.parametrize("test", ["sign-flip", "t", "wilcoxon"])
def test_any_number_of_queries_can_be_compared(queries: int, test: Test) -> None:
    few = {query: GOLD[query] for query in QUERIES[:queries]}
    others = {"new": NEW, "same": OLD, "third": run(0.4, 5)}
    for all_pairs in (False, True):
        options: dict[str, Any] = {"all_pairs": all_pairs, "test": test}
        found = karat.compare(OLD, others, gold=few, metrics=["rr", "hit@1"], **options)
        for one in found.differences:
            assert one.n == queries
            assert queries == 15 or one.verdict == "undecided"
            if test == "sign-flip":
                assert one.interval is not None
                assert one.interval.low < one.interval.high
        assert "n = " in str(found)


def test_several_candidates_are_corrected_for_their_number() -> None:
    others = {"new": NEW, "like old": run(0.3, 3), "worse": run(0.1, 4)}
    found = karat.compare(OLD, others, gold=GOLD, metrics=["rr"])
    assert found.candidates == ("new", "like old", "worse")
    for one in found.differences:
        assert one.adjusted_p >= one.p - 1e-12
    assert found.difference("rr", "new").verdict == "better"
    pairs = karat.compare(OLD, others, gold=GOLD, metrics=["rr"], all_pairs=True)
    assert len(pairs.differences) == 6
    with pytest.raises(FormatError, match="no comparison by 'ap'; there are rr"):
        found.difference("ap")


def test_movers_name_queries_and_ranks(compared: Comparison) -> None:
    biggest = compared.movers[0]
    assert abs(biggest.difference) >= abs(compared.movers[-1].difference)
    trace = {item: OLD[biggest.query].index(item) + 1 for item in GOLD[biggest.query]}
    assert {item: before for item, (before, _) in biggest.ranks.items()} == trace


def test_movers_and_boards_follow_the_first_metric_that_is_not_0_or_1() -> None:
    gold = {query: ["a", "b"] for query in "pqr"}
    old = {query: ["x", "y", "z", "a"] for query in gold}
    new = {"p": ["a", "x"], "q": ["a", "b"], "r": ["x", "a"]}
    metrics = ["hit@1", "rr", "recall@5"]
    found = karat.compare(old, new, gold=gold, metrics=metrics)
    # By rr p and q changed alike, and q more by recall.
    changed = [(mover.query, mover.metric) for mover in found.movers]
    assert changed == [("q", "rr"), ("p", "rr"), ("r", "rr")]
    title = found.movers_table(2).title
    assert title == (
        "queries that changed most by rr, losses first: 2 of 3; -o FILE.html has all"
    )
    runs = {"old": {"p": ["a", "x"], "q": ["x"]}, "new": {"p": ["a", "b"], "q": ["x"]}}
    board = karat.leaderboard(runs, gold=gold, metrics=["hit@1", "recall@2"])
    assert board.leading == "recall@2"
    assert [one.run for one in board.ranked()] == ["new", "old"]


def test_only_unchanged_queries_are_compared() -> None:
    relabelled = {**GOLD, "q0": {"q0-a": 3}, "extra": {"z": 1}}
    del relabelled["q1"]
    one = karat.evaluate(OLD, gold=GOLD, metrics=["rr"])
    two = karat.evaluate({**NEW, "extra": ["z"]}, gold=relabelled, metrics=["rr"])
    found = karat.compare(one, two)
    assert (found.added, found.removed) == (("extra",), ("q1",))
    assert found.relabelled == ("q0",)
    assert found["rr"].n == 58
    assert "1 query in both with other gold" in str(found)
    other = karat.evaluate(NEW, gold={**GOLD, "q0": {"q0-a": 3}}, metrics=["rr"])
    assert karat.compare(one, other).relabelled == ("q0",)


def test_what_was_not_scored_alike_is_refused() -> None:
    one = karat.evaluate(OLD, gold=GOLD, metrics=["rr"])
    strict = karat.evaluate(NEW, gold=GOLD, metrics=["rr"], threshold=2)
    with pytest.raises(UsageError, match=r"threshold: None and 2\.0"):
        karat.compare(one, strict)
    assert karat.compare(one, strict, force=True)["rr"].n == 60
    other = karat.evaluate(NEW, gold=GOLD, metrics=["ap"])
    with pytest.raises(UsageError, match="no metric in common"):
        karat.compare(one, other)
    with pytest.raises(UsageError, match="has no scores by ap; it has rr"):
        karat.compare(one, one, metrics=["ap"])


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"x": ["a"]}, "no query in common"),
        ({"q0": {"q0-a": float("nan")}}, "finite"),
        ("no-such-file.run", "no such file"),
    ],
)
def test_bad_input_ends_in_a_sentence(other: Any, sentence: str) -> None:
    with pytest.raises(KaratError, match=sentence):
        karat.compare(OLD, other, gold=GOLD, metrics=["rr"])
    with pytest.raises(UsageError, match="nothing to compare"):
        karat.compare(OLD, gold=GOLD)


def test_queries_go_together_by_name() -> None:
    """Also where two runs have them in another order, or one has more of them."""
    one = karat.evaluate(OLD, gold=GOLD, metrics=["rr"])
    turned = {"more": {"z": 1}, **dict(reversed(GOLD.items()))}
    two = karat.evaluate({**NEW, "more": ["z"]}, gold=turned, metrics=["rr"])
    found, plain = karat.compare(one, two)["rr"], karat.compare(OLD, NEW, gold=GOLD)
    assert found.difference == pytest.approx(plain["rr"].difference, abs=1e-12)
    assert (found.wins, found.losses) == (plain["rr"].wins, plain["rr"].losses)


def test_gold_may_list_its_items_in_any_order() -> None:
    turned = {query: dict(reversed(row.items())) for query, row in GOLD.items()}
    one = karat.evaluate(OLD, gold=GOLD, metrics=["rr"], name="baseline")
    two = karat.evaluate(NEW, gold=turned, metrics=["rr"], name="candidate")
    plain = karat.compare(OLD, NEW, gold=GOLD, metrics=["rr"])
    assert karat.compare(one, two).changes == plain.changes


def test_nothing_in_common_is_said() -> None:
    one = karat.evaluate({"a": ["x"]}, gold={"a": ["x"]}, metrics=["rr"])
    two = karat.evaluate({"b": ["x"]}, gold={"b": ["x"]}, metrics=["rr"])
    with pytest.raises(MismatchError, match="no query in common"):
        karat.compare(one, two)


def test_the_same_run_differs_in_nothing() -> None:
    found = karat.compare(OLD, OLD, gold=GOLD, metrics=["rr", "hit@1"])
    assert found["rr"].difference == 0
    assert found["rr"].p == 1
    assert "the same on all 60 queries" in found["rr"].sentence()
    assert found.changes["candidate"].kind == "none"


def test_clusters_are_units() -> None:
    facts = {
        query: Query(query, metadata={"talk": n // 6})
        for n, query in enumerate(QUERIES)
    }
    options: dict[str, Any] = {"gold": GOLD, "metrics": ["rr"], "queries": facts}
    found = karat.compare(OLD, NEW, cluster="talk", **options)
    plain = karat.compare(OLD, NEW, **options)
    assert found["rr"].difference == plain["rr"].difference
    assert found["rr"].smallest_p > plain["rr"].smallest_p
    with pytest.raises(UsageError, match=r"no query has a field 'speaker'.*talk"):
        karat.compare(OLD, NEW, cluster="speaker", **options)


def test_slices_are_corrected_for_their_number() -> None:
    facts = {
        query: Query(query, tags=(f"t{n % 3}",)) for n, query in enumerate(QUERIES)
    }
    found = karat.compare(
        OLD, NEW, gold=GOLD, metrics=["rr"], queries=facts, by_tag=True
    )
    assert [*found.slices] == ["t0", "t1", "t2"]
    assert all(rows[0].n == 20 for rows in found.slices.values())
    assert all(rows[0].adjusted_p >= rows[0].p for rows in found.slices.values())
    with pytest.raises(UsageError, match="no query has a tag"):
        karat.compare(OLD, NEW, gold=GOLD, metrics=["rr"], by_tag=True)


def test_a_comparison_is_a_plain_value(compared: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "comparison.json"
    compared.save(path)
    again = Comparison.load(path)
    assert again.to_json() == compared.to_json()
    assert str(again) == str(compared)
    assert pickle.loads(pickle.dumps(compared)) == compared
    assert math.isfinite(json.loads(path.read_text())["differences"][0]["p"])
    for other in ({"schema_version": 2}, {"kind": "comparison", "schema_version": 1}):
        path.write_text(
            json.dumps({**json.loads(compared.to_json()), "kind": 1, **other})
        )
        with pytest.raises(FormatError, match="not a saved comparison of this karat"):
            Comparison.load(path)


def test_saved_evaluations_compare_as_runs_do(
    compared: Comparison, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("old.json", "new.json")]
    for path, found in zip(paths, (OLD, NEW), strict=True):
        result: Evaluation = karat.evaluate(
            found, gold=GOLD, metrics=["ndcg@10", "hit@1", "rr"]
        )
        result.save(path)
    again = karat.compare(*paths)
    for one, two in zip(again.differences, compared.differences, strict=True):
        assert (one.p, one.difference) == (two.p, two.difference)
    assert again.changes["new.json"].kind == compared.changes["candidate"].kind


def test_a_correction_keeps_clusters_and_never_flatters() -> None:
    facts = {q: Query(q, metadata={"u": n // 20}) for n, q in enumerate(QUERIES)}
    short = {query: row for query, row in NEW.items() if query != "q0"}
    short_gold = {query: row for query, row in GOLD.items() if query != "q0"}
    options: dict[str, Any] = {"metrics": ["rr"], "queries": facts}
    base, new = (karat.evaluate(r, gold=GOLD, **options) for r in (OLD, NEW))
    other = karat.evaluate(short, gold=short_gold, **options)
    found = karat.compare(base, {"new": new, "short": other}, cluster="u")
    assert found.candidates == ("new", "short")
    for one in found.differences:
        assert one.adjusted_p >= one.p >= one.smallest_p
        assert one.verdict == "undecided"
    assert "(Holm), intervals not adjusted" in found.method
    assert found.removed == ("q0",)


def test_saved_files_are_known_beside_gold(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    karat.evaluate(OLD, gold=GOLD, metrics=["rr"], name="old").save(path)
    found = karat.compare(path, NEW, gold=GOLD)
    assert (found.baseline, [one.metric for one in found.differences]) == (
        "old",
        ["rr"],
    )


def test_items_found_below_k_are_no_regression() -> None:
    more = {query: [*row, f"{query}-c"] for query, row in OLD.items()}
    gold = {query: {**row, f"{query}-c": 1} for query, row in GOLD.items()}
    found = karat.compare(OLD, more, gold=gold, metrics=["ndcg@5"])
    assert found.changes["candidate"].sentence.startswith(
        "at depth 5: coverage improvement: 0"
    )


@pytest.mark.parametrize("margin", [0.01, {"rr": "0.1"}, {"rr": -1}, {"rr": 5}])
def test_margins_that_cannot_be_are_refused(margin: Any) -> None:
    with pytest.raises(UsageError, match="margin"):
        karat.compare(OLD, NEW, gold=GOLD, metrics=["rr"], margin=margin)


def test_less_is_better_where_the_metric_says_so(tmp_path: Path) -> None:
    metrics = ["unjudged@2", "num_ret", "rr"]
    found = karat.compare(OLD, NEW, gold=GOLD, metrics=metrics)
    unjudged, retrieved, rr = found.differences
    assert (unjudged.difference < 0, unjudged.verdict) == (True, "better")
    assert unjudged.wins > unjudged.losses
    assert (rr.verdict, retrieved.verdict) == ("better", "undecided")
    longer = {query: [*row, f"{query}-y"] for query, row in OLD.items()}
    (more,) = karat.compare(OLD, longer, gold=GOLD, metrics=["num_ret"]).differences
    assert more.verdict == "different"
    assert more.sentence().startswith("candidate differs from baseline by num_ret")
    board = karat.leaderboard({"o": OLD, "n": NEW}, gold=GOLD, metrics=["unjudged@2"])
    assert [one.run for one in board.ranked()] == ["n", "o"]
    path = tmp_path / "saved.json"
    board["o"].save(path)
    again = karat.load(path)
    assert again["unjudged@2"].higher_is_better is False
    assert again == board["o"]


def test_options_that_would_change_nothing_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("old.json", "new.json")]
    for path, given in zip(paths, (OLD, NEW), strict=True):
        karat.evaluate(given, gold=GOLD, metrics=["rr"], name=path.stem).save(path)
    with pytest.raises(UsageError, match=r"^threshold, match would change nothing"):
        karat.compare(*paths, threshold=2, match="id")
    assert karat.compare(*paths, queries=None).differences
    assert karat.compare(paths[0], NEW, gold=GOLD, match="id").differences


def test_the_verdict_is_from_p_and_the_interval_agrees() -> None:
    """Few losses among ties: today's 14 of 100 is worse, and so are 8 of 50."""
    base = np.full(100, 0.5)
    for broken, n in ((14, 100), (6, 100), (8, 50)):
        drops = np.repeat([-0.3, 0.0], [broken, n - broken])
        found = difference(base[:n], base[:n] + drops, "ndcg@10")
        assert (found.verdict, found.p) == ("worse", 2.0 ** (1 - broken))
        assert found.interval is not None
        assert found.interval.high < 0
    dice = np.random.default_rng(5)
    for _ in range(100):
        n = int(dice.integers(15, 90))
        change = np.clip(dice.normal(dice.uniform(-0.3, 0.3), 0.2, n), -0.5, 0.5)
        change[dice.random(n) < dice.random()] = 0.0
        found = difference(np.full(n, 0.5), 0.5 + change)
        assert found.interval is not None
        low, high, *_ = found.interval
        assert (found.verdict == "better") == (low > 0)
        assert (found.verdict == "worse") == (high < 0)
        assert (found.verdict == "undecided") == (found.p > 0.05)


def test_what_would_settle_it_is_a_round_number() -> None:
    dice = np.random.default_rng(6)
    base = np.full(60, 0.5)
    near = difference(base, base + dice.normal(0.01, 0.15, 60))
    assert near.verdict == "undecided"
    assert re.search(r"p = 0\.\d{4}; about \d+0 more queries would", near.sentence())
    even = np.tile([0.2, -0.2], 30)
    even[0] = 0.205
    far = difference(base, base + even)
    assert far.sentence().endswith("take more queries than is practical")


def test_few_clusters_get_no_verdict() -> None:
    clusters = np.repeat(np.arange(5), 6)
    pairs = np.zeros(30), np.full(30, 0.4)
    found = difference(*pairs, clusters=clusters)
    assert (found.verdict, found.smallest_p) == ("undecided", 2.0**-4)
    assert "30 queries in 5 clusters are too few: p cannot be below" in found.sentence()
    six = np.repeat(np.arange(6), 5)
    assert difference(*pairs, clusters=six).verdict == "better"


def test_ties_alone_prove_no_margin_and_the_interval_does() -> None:
    base = np.full(50, 0.5)
    found = difference(base, base, margin={"ap": 0.02})
    assert found.verdict == "undecided"
    many = np.full(2000, 0.5)
    assert difference(many, many, margin={"ap": 0.02}).verdict == "no different"


def test_tests_and_corrections_are_named_and_agree_with_their_intervals() -> None:
    others = {"new": NEW, "like old": run(0.3, 3), "nearly": run(0.4, 9)}
    options: dict[str, Any] = {"gold": GOLD, "metrics": ["rr", "ndcg@10"]}
    default = karat.compare(OLD, others, **options)
    assert (default.test, default.correction) == ("sign-flip", "maxt")
    assert "sign-flip" in default.method
    assert "3 comparisons (MaxT); n = 60" in default.method
    for one in default.differences:
        low, high = one.interval or (0, 0)
        assert (one.adjusted_p <= 0.05) == (not low <= 0 <= high)
    plain = karat.compare(OLD, others, correction="none", **options)
    for one, two in zip(default.differences, plain.differences, strict=True):
        assert one.p == two.p == two.adjusted_p
        assert one.interval is not None
        assert two.interval is not None
        assert one.interval.low < two.interval.low
    for test in ("t", "wilcoxon"):
        found = karat.compare(OLD, others, test=test, **options)
        assert (found.test, found.correction) == (test, "holm")
        assert (found["rr"].interval is None) == (test == "wilcoxon")
    expected = scipy.stats.wilcoxon(scores(OLD, "rr"), scores(others["nearly"], "rr"))
    p = found.difference("rr", "nearly").p
    assert p == pytest.approx(expected.pvalue, abs=0.03)
    wrong: list[dict[str, Any]] = [{"test": "f"}, {"correction": "x"}]
    wrong += [{"test": "t", "correction": "maxt"}]
    wrong += [{"test": "wilcoxon", "margin": {"rr": 0.1}}]
    wrong += [{"test": "wilcoxon", "cluster": "talk"}]
    for choice in wrong:
        with pytest.raises(UsageError, match=r"there are|use (holm|sign-flip)"):
            karat.compare(OLD, others, **choice, **options)


def test_a_plan_says_how_many_queries_a_difference_takes(compared: Comparison) -> None:
    sd = (scores(NEW, "rr") - scores(OLD, "rr")).std(ddof=1)
    needed = compared["rr"].queries_for(0.02)
    assert needed == pytest.approx((2.8016 * sd / 0.02) ** 2, rel=0.01)
    (row,) = [row for row in compared.plan(0.02).rows if row[0].startswith("rr")]
    assert int(row[-1].replace(",", "")) == pytest.approx(needed, rel=0.05)
    assert "0.05" in compared.plan(0.05).title


def test_gold_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = tmp_path / "gold.json"
    gold.write_text(json.dumps(GOLD))
    opened: list[str] = []
    read = builtins.open

    def counted(file: Any, *args: Any, **options: Any) -> Any:
        opened.append(str(file))
        return read(file, *args, **options)

    monkeypatch.setattr(builtins, "open", counted)
    karat.evaluate(OLD, gold=gold, metrics=["rr"])
    once = opened.count(str(gold))
    karat.compare(OLD, NEW, run(0.3, 3), gold=gold, metrics=["rr"])
    assert opened.count(str(gold)) == 2 * once


def test_no_p_is_shown_as_0() -> None:
    gained = np.repeat([1.0, 0.0], [16, 44])
    found = difference(gained * 0, gained, "hit@1")
    table = Comparison("a", ("b",), (found,)).summary()
    assert table.rows[0][5] == "<0.0001"


@pytest.mark.parametrize("hole", [False, True])
def test_all_pairs_have_the_p_that_each_has_alone(hole: bool) -> None:  # noqa: FBT001
    source = random.Random(5)
    gold: dict[str, list[str]] = {f"q{n}": ["a", "b"] for n in range(40)}
    runs = {}
    for name in ("one", "two", "three"):
        runs[name] = {q: source.sample("abcdefgh", 8) for q in gold}
    if hole:
        runs["two"] = {q: found for q, found in runs["two"].items() if q > "q2"}
    options: dict[str, Any] = {"gold": gold, "metrics": ["rr", "ap"], "missing": "skip"}
    first, *others = runs
    found = karat.compare(
        karat.evaluate(runs[first], name=first, **options),
        {name: karat.evaluate(runs[name], name=name, **options) for name in others},
        all_pairs=True,
    )
    assert len(found.differences) == 6
    for one in found.differences:
        alone = karat.compare(runs[one.baseline], runs[one.candidate], **options)
        assert one.p == pytest.approx(alone[one.metric].p, abs=1e-12)
