"""Where a verdict begins and ends, and what is said of it, at each bound."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import karat
from karat import Comparison, Evaluation
from karat.extend import (
    FormatError,
    MetricScores,
    MismatchError,
    Policies,
    Query,
    UsageError,
)

DASH = "\N{EN DASH}"


def scored(name: str, values: Any, **others: Any) -> Evaluation:
    """An evaluation with these scores by ap, and no hits."""
    values = np.asarray(values, float)
    metric = others.pop("metric", "ap")
    queries = [f"q{n}" for n in range(len(values))]
    return Evaluation(
        run=name,
        gold="gold",
        queries=queries,
        columns={metric: MetricScores(metric, values, queries)},
        missing=np.zeros(len(values), bool),
        policies=others.pop("policies", Policies()),
        **others,
    )


def wins(count: int, of: int, by: float = 0.25) -> list[float]:
    """Scores that are 0.5, but for so many that are better."""
    return [0.5 + by] * count + [0.5] * (of - count)


def compared(*values: Any, **options: Any) -> Comparison:
    old, *others = values
    runs = {f"run {n}": scored("", one) for n, one in enumerate(others, 1)}
    return karat.compare(scored("old", old), runs, **options)


def test_a_verdict_takes_fifteen_queries() -> None:
    for size, verdict in ((14, "undecided"), (15, "better")):
        found = compared(wins(0, size), wins(size, size))["ap"]
        assert (found.verdict, found.few) == (verdict, size < 15)
    few = compared(wins(0, 14), wins(14, 14))["ap"].sentence()
    assert few.endswith("; 14 queries are too few: p cannot be below 0.00012")


def test_a_corrected_p_of_exactly_one_in_twenty_is_a_finding() -> None:
    """Six wins have p = 1/32; of eight tests, the fifth counts 8/5 of that."""
    better = wins(6, 20)
    found = compared(*(wins(0, 20), *[better] * 5, *[wins(1, 20)] * 3), correction="bh")
    assert [one.p for one in found.differences[:5]] == [1 / 32] * 5
    assert {one.adjusted_p for one in found.differences[:5]} == {0.05}
    assert {one.verdict for one in found.differences[:5]} == {"better"}
    assert {one.verdict for one in found.differences[5:]} == {"undecided"}
    more = compared(*(wins(0, 20), *[better] * 4, *[wins(1, 20)] * 4), correction="bh")
    assert {one.verdict for one in more.differences} == {"undecided"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"verdict": "better"}, "b is better than a by ap: +0.2500, p = 0.0100"),
        ({"verdict": "worse"}, "b is worse than a by ap: +0.2500, p = 0.0100"),
        ({"verdict": "different"}, "b differs from a by ap: +0.2500, p = 0.0100"),
        (
            {"verdict": "no different", "margin": 0.3},
            "b is no different from a by ap, within 0.3: +0.2500, p = 0.0100",
        ),
        (
            {"verdict": "undecided", "adjusted_p": 0.5},
            (
                "b cannot be distinguished from a by ap: +0.2500, p = 0.5000; about 10 "
                "more queries would settle it"
            ),
        ),
        (
            {"verdict": "better", "adjusted_p": 0.0001},
            "b is better than a by ap: +0.2500, p = 0.0001",
        ),
        (
            {"verdict": "better", "adjusted_p": 0.00009},
            "b is better than a by ap: +0.2500, p < 0.0001",
        ),
        ({"wins": 0}, "ap is the same on all 20 queries"),
        ({"wins": 0, "losses": 1}, "b is better than a by ap: +0.2500, p = 0.0100"),
        ({"n": 0}, "ap: no query has a score in both runs"),
        (
            {"interval": compared(wins(0, 20), wins(20, 20))["ap"].interval},
            "b is better than a by ap: +0.2500 (95% interval ",
        ),
        (
            {"n": 30, "units": 5},
            (
                "b is better than a by ap: +0.2500; 30 queries in 5 clusters are too "
                "few: p cannot be below 0.062"
            ),
        ),
        (
            {"n": 5, "units": 5},
            (
                "b is better than a by ap: +0.2500; 5 queries are too few: p cannot be "
                "below 0.062"
            ),
        ),
    ],
)
def test_a_verdict_in_words(change: dict[str, Any], sentence: str) -> None:
    one = compared(wins(0, 20), wins(20, 20))["ap"]
    plain = {"baseline": "a", "candidate": "b", "p": 0.01, "adjusted_p": 0.01}
    one = replace(one, **{**plain, "interval": None, "spread": 0.1, **change})
    assert one.sentence().startswith(sentence)
    assert one.sentence() == sentence or one.interval is not None
    (row,) = Comparison("a", ("b",), (one,)).summary().rows
    same = not one.wins and not one.losses and one.n
    margin = " within 0.3" if one.margin else ""
    assert row[1] == ("equal" if same else f"{one.verdict}{margin}")


@pytest.mark.parametrize(
    ("spread", "needed"),
    [(0.0, "10"), (0.02, "10"), (0.03, "20"), (0.1, "200"), (0.3, "1,800")],
)
def test_how_many_queries_are_needed_is_a_round_number(
    spread: float, needed: str
) -> None:
    """(2.8 * spread / 0.02) ** 2, to two digits, and tens at least."""
    one = replace(compared(wins(0, 20), wins(6, 20))["ap"], spread=spread)
    (row,) = Comparison("a", ("b",), (one,)).plan(0.02).rows
    assert row[2:] == ["20", needed]
    assert row[1] == f"{spread:.4f}"
    unknown = replace(one, spread=math.nan)
    assert Comparison("a", ("b",), (unknown,)).plan().rows[0][3] == DASH


def test_so_many_times_the_queries_there_are_is_more_than_practical() -> None:
    one = replace(compared(wins(0, 20), wins(1, 20))["ap"], difference=0.02)
    for spread, said in (
        (0.1454, "about 400 more queries would settle it"),
        (0.1472, "settling it would take more queries than is practical"),
        (0.001, "about 10 more queries would settle it"),
    ):
        assert replace(one, spread=spread).open_question == said
    none = replace(one, difference=0.0)
    assert none.open_question == "settling it would take more queries than is practical"


def test_no_p_is_a_dash() -> None:
    nothing = compared([math.nan] * 20, wins(0, 20))
    (one,) = nothing.differences
    assert (one.n, one.left_out, one.verdict) == (0, 20, "undecided")
    assert math.isnan(one.difference)
    assert math.isnan(one.spread)
    (row,) = nothing.summary().rows
    assert row[2:] == [DASH, DASH, DASH, DASH, "0", "0/0/0"]
    assert nothing.notes[0] == (
        "common queries without a score in one of the runs, left out: 20"
    )


@pytest.mark.parametrize("test", ["sign-flip", "t", "wilcoxon"])
def test_each_test_is_of_the_queries_that_both_have(test: Any) -> None:
    old, new = wins(0, 20), wins(12, 20)
    gaps = [*old, math.nan, 1.0], [*new, 0.0, math.nan]
    plain, left = (
        compared(*pair, test=test, by_tag=False)["ap"] for pair in ((old, new), gaps)
    )
    assert (left.n, left.left_out, left.p) == (20, 2, plain.p)
    assert left.interval == plain.interval
    assert left.baseline_mean == 0.5
    assert left.candidate_mean == pytest.approx(0.65)
    assert (left.wins, left.ties, left.losses) == (12, 8, 0)


def test_a_margin_holds_where_the_whole_interval_lies_within() -> None:
    old, new = wins(0, 400), [0.5 + (-1) ** n * 0.01 for n in range(400)]
    found = compared(old, new)["ap"]
    assert found.interval is not None
    low, high = found.interval
    assert low == pytest.approx(-high)
    for margin, verdict in ((high * 1.01, "no different"), (high * 0.99, "undecided")):
        assert compared(old, new, margin={"ap": margin})["ap"].verdict == verdict
    for shift in (0.005, -0.005):
        moved = compared(old, np.array(new) + shift, margin={"ap": 0.0045})["ap"]
        assert moved.verdict == ("better" if shift > 0 else "worse")
    # It is found no different even where it differs beyond chance.
    near = compared(old, np.array(new) + 0.005, margin={"ap": 0.02})["ap"]
    assert (near.verdict, near.p < 0.05) == ("no different", True)
    assert near.outcome == "no different within 0.02"


def test_margins_lie_within_the_bounds_of_their_metric() -> None:
    old, new = wins(0, 20), wins(6, 20)
    for wrong in (0, 1, -0.1, "0.1", None):
        with pytest.raises(UsageError, match="for ap must be between 0 and 1, got"):
            compared(old, new, margin={"ap": wrong})
    assert compared(old, new, margin={"AP": 0.99})["ap"].margin == 0.99
    with pytest.raises(UsageError, match=r"given by metric, as in {'ndcg@10': 0.1}"):
        compared(old, new, margin=0.1)


def test_corrections_need_the_queries_that_they_are_for() -> None:
    long, short = scored("long", wins(0, 20)), scored("short", wins(6, 18))
    runs = {"short": short, "new": scored("new", wins(6, 20))}
    assert karat.compare(long, runs).correction == "holm"
    with pytest.raises(UsageError, match="MaxT needs the same queries in all runs"):
        karat.compare(long, runs, correction="maxt")
    alike = {"one": runs["new"], "two": runs["new"]}
    assert karat.compare(long, alike).correction == "maxt"
    assert karat.compare(long, alike, all_pairs=True).correction == "holm"
    assert karat.compare(long, alike, correction="bh").correction == "bh"
    assert karat.compare(long, alike, correction="maxt").correction == "maxt"
    # One comparison has nothing to be corrected for, whatever was asked.
    alone = karat.compare(long, runs["new"], correction="holm")
    assert (alone.correction, alone["ap"].adjusted_p) == ("none", alone["ap"].p)


@pytest.mark.parametrize(
    ("correction", "said"),
    [
        ("maxt", "; p and intervals corrected for 2 comparisons (MaxT); n = 20"),
        ("holm", "; p corrected for 2 comparisons (Holm), intervals not adjusted; n"),
        ("bh", "; p corrected for 2 comparisons (false discovery rate), intervals"),
        ("none", "; p and intervals of 2 comparisons, not corrected; n = 20"),
    ],
)
def test_the_method_names_test_correction_and_queries(
    correction: str, said: str
) -> None:
    values = wins(0, 20), wins(6, 20), wins(7, 20)
    found = compared(*values, correction=correction)
    assert said in found.method
    assert found.method.endswith("n = 20; gold: gold")
    bare = replace(found, provenance={}, differences=found.differences[:1])
    assert bare.method == (
        "paired sign-flip test of the mean difference, level 0.05; n = 20"
    )
    t = compared(*values, test="t").method
    assert t.startswith("paired t test, level 0.05; ")


def test_runs_of_other_sizes_say_so() -> None:
    long, short = scored("long", wins(0, 20)), scored("short", wins(6, 18))
    found = karat.compare(long, {"short": short, "new": scored("", wins(6, 20))})
    assert "; n = 18 to 20" in found.method
    assert ": 18 to 20 queries; " in found.summary().title
    assert found.removed == ("q18", "q19")
    assert "2 queries only in the baseline: q18, q19" in found.summary().notes
    one = karat.compare(scored("a", [0.5]), scored("b", [1.0])).summary()
    assert one.title == "b compared with a: 1 query; undecided on 1"


def test_runs_have_names_of_their_own_or_a_number() -> None:
    gold = {f"q{n}": ["a"] for n in range(20)}
    old, new = (dict.fromkeys(gold, row) for row in (["b", "a"], ["a"]))
    options: dict[str, Any] = {"gold": gold, "metrics": ["rr"]}
    assert karat.compare(old, new, **options).candidates == ("candidate",)
    three = karat.compare(old, new, old, new, **options)
    assert three.candidates == ("candidate 1", "candidate 2", "candidate 3")
    # A run is rankings by query, or scores by query; runs by name are one more level.
    weighed = {q: {"a": 2.0, "b": 1.0} for q in gold}
    for run in (weighed, {q: tuple(row) for q, row in new.items()}):
        assert karat.compare(old, run, **options).candidates == ("candidate",)
        named = karat.compare(old, {"x": run}, **options)
        assert (named.candidates, named["rr"].verdict) == (("x",), "better")
    results = [karat.evaluate(run, name="same", **options) for run in (old, new, new)]
    assert karat.compare(*results).candidates == ("same (2)", "same (3)")
    assert karat.compare(results[0], {1: results[1]}).candidates == ("1",)


def test_a_saved_evaluation_may_be_named(tmp_path: Path) -> None:
    gold = {f"q{n}": ["a"] for n in range(20)}
    path = tmp_path / "new.json"
    karat.evaluate(gold, gold=gold, metrics="ap", name="other").save(path)
    base = karat.evaluate({q: ["b", "a"] for q in gold}, gold=gold, metrics="ap")
    for given in (path, str(path)):
        assert karat.compare(base, {"mine": given}).candidates == ("mine",)
    assert karat.compare(base, path).candidates == ("other",)


def test_metrics_that_are_compared() -> None:
    gold = {f"q{n}": {"a": 1, "b": 0} for n in range(20)}
    run = {q: ["b", "a"] for q in gold}
    metrics = ["rr", "ap", "num_q", "gm_ap", "judged@2"]
    every = karat.evaluate(run, gold=gold, metrics=metrics, name="every")
    # Means only, and how much is judged only where nothing else was asked for.
    found = karat.compare(every, every)
    assert [one.metric for one in found.differences] == ["rr", "ap"]
    some = karat.evaluate(run, gold=gold, metrics=["ap", "judged@2"], name="some")
    assert [d.metric for d in karat.compare(every, some).differences] == ["ap"]
    judged = karat.evaluate(run, gold=gold, metrics=["judged@2"])
    both = karat.compare(every, judged)
    assert [one.metric for one in both.differences] == ["judged@2"]
    with pytest.raises(UsageError, match="some has no scores by rr; it has ap, judged"):
        karat.compare(every, some, metrics=["ap", "rr"])
    for metric, average in (("gm_ap", "geometric"), ("num_q", "sum")):
        with pytest.raises(UsageError, match=f"{metric} is reported as a {average}"):
            karat.compare(every, every, metrics=[metric])
    other = karat.evaluate(run, gold=gold, metrics=["recall@5"], name="other")
    said = "some has scores by ap, judged@2, other by recall@5: no metric in common"
    with pytest.raises(UsageError, match=said):
        karat.compare(some, other)
    twice = karat.compare(every, every, metrics=["AP", "ap", "map"])
    assert [one.metric for one in twice.differences] == ["ap"]


def test_no_common_query_says_why() -> None:
    one = scored("one", wins(0, 3), fingerprints=["x", "y", "z"])
    two = replace(one, run="two", fingerprints=["a", "b", "c"])
    said = (
        "one and two have no query in common with the same gold: 3 and 3 queries, 3 in "
        "both, all of them with other labels; were they scored against the same gold?"
    )
    with pytest.raises(MismatchError) as caught:
        karat.compare(one, two)
    assert str(caught.value) == said
    other = replace(two, queries=["r", "s", "t"])
    with pytest.raises(MismatchError) as caught:
        karat.compare(one, other)
    assert str(caught.value) == (
        "one and two have no query in common; were they scored against the same gold?"
    )
    empty = [scored(name, []) for name in ("none", "nil")]
    with pytest.raises(MismatchError, match="none and nil have no query in common"):
        karat.compare(*empty)


def test_only_what_changes_scores_must_be_alike() -> None:
    one = scored("one", wins(0, 20))
    same = Policies(force=True, profile="beir")
    assert karat.compare(one, scored("two", wins(6, 20), policies=same))["ap"].n == 20
    skip = scored("two", wins(6, 20), policies=Policies(missing="skip"))
    with pytest.raises(UsageError) as caught:
        karat.compare(one, skip)
    assert str(caught.value) == (
        "one and two were not scored in the same way: missing: zero and skip. Score "
        "them in the same way, or compare them anyway with force=True (--force)"
    )
    by_id, by_text = (
        replace(one, run=name, matchers={"ap": name}) for name in ("id", "fuzzy")
    )
    with pytest.raises(UsageError, match="matcher of ap: id and fuzzy"):
        karat.compare(by_id, by_text)
    assert karat.compare(by_id, by_text, force=True)["ap"].n == 20
    # What only one was scored by is not compared.
    assert karat.compare(by_id, replace(one, matchers={}))["ap"].n == 20


def test_a_query_without_the_field_is_a_cluster_of_its_own() -> None:
    facts = {
        f"q{n}": Query(f"q{n}", metadata={"page": n // 6} if n < 18 else {})
        for n in range(20)
    }
    old, new = (
        scored(name, wins(count, 21), facts=facts)
        for name, count in (("old", 0), ("new", 21))
    )
    found = karat.compare(old, new, cluster="page")
    # Three pages, two queries without one, and one of which nothing is known.
    assert found["ap"].units == 6
    assert found["ap"].verdict == "better"
    assert found.notes[0] == "queries of one page are counted as one cluster"
    assert karat.compare(old, new)["ap"].units == 21
    with pytest.raises(UsageError, match=r"'talk' to cluster by; fields of .*: page$"):
        karat.compare(old, new, cluster="talk")
    with pytest.raises(UsageError, match=r"fields of queries: none$"):
        karat.compare(*(scored(n, wins(0, 20)) for n in "ab"), cluster="talk")


def test_a_difference_is_had_by_metric_and_candidate() -> None:
    found = compared(wins(0, 20), wins(6, 20), wins(9, 20))
    assert found.difference("ap") == found["ap"] == found.differences[0]
    assert found.difference("ap", "run 2") == found.differences[1]
    with pytest.raises(FormatError) as caught:
        found.difference("ap", "run 3")
    assert str(caught.value).startswith(
        "no comparison of 'run 3' by 'ap'; there are ap of run 1, run 2"
    )
    with pytest.raises(FormatError, match="no comparison by 'rr'; there are ap of"):
        found.difference("rr")


def test_rows_hold_the_limits_where_there_are_any() -> None:
    values = wins(0, 20), wins(6, 20)
    (row,) = compared(*values).rows()
    one = compared(*values)["ap"]
    assert one.interval is not None
    assert (row["low"], row["high"]) == tuple(one.interval)
    assert (row["metric"], row["n"], row["wins"], row["ties"]) == ("ap", 20, 6, 14)
    (bare,) = compared(*values, test="wilcoxon").rows()
    assert (bare["low"], bare["high"]) == (None, None)
    assert compared(*values).notes == (
        "the kind of change was not examined: these are scores without hits",
    )
    assert compared(*values).headroom_table() is None


def test_no_list_is_a_comparison(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("[1, 2]", "utf-8")
    with pytest.raises(FormatError, match=r"list\.json: is not a saved comparison"):
        Comparison.load(path)
    saved = json.loads(karat.compare(*(scored(n, wins(0, 20)) for n in "ab")).to_json())
    path.write_text(json.dumps(saved | {"schema_version": 1}), "utf-8")
    with pytest.raises(FormatError, match="is not a saved comparison of this karat"):
        Comparison.load(path)
