"""Gates: what fails a build, what passes, and what cannot be told."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import karat as package
from karat import Evaluation
from karat.data.judgements import Verdict
from karat.extend import MetricScores, Policies, Query, UsageError
from karat.gates import (
    Gate,
    check_failures,
    check_gates,
    failed_queries,
    outcome_of,
    read_gate,
)
from tests.comparison.test_compare import GOLD, NEW, OLD, run

METRICS = ["ndcg@10", "rr"]


def evaluated(run: Any, name: str = "run") -> Evaluation:
    return package.evaluate(run, gold=GOLD, metrics=METRICS, name=name)


def status(text: str, kind: Any, run: Any, baseline: Any = None) -> str:
    base = None if baseline is None else evaluated(baseline, "base")
    (result,) = check_gates([read_gate(text, kind)], [evaluated(run)], baseline=base)
    return result.status


def test_levels_and_lower_limits() -> None:
    mean = evaluated(NEW).means["rr"]
    assert status(f"rr={mean - 0.001}", "mean", NEW) == "pass"
    assert status(f"rr={mean + 0.001}", "mean", NEW) == "fail"
    assert status(f"rr={mean - 0.001}", "low", NEW) == "fail"
    low, _ = evaluated(NEW)["rr"].interval or (0, 0)
    assert status(f"rr={low - 0.001}", "low", NEW) == "pass"
    assert status(f"rr={mean + 1e-10}", "mean", NEW) == "pass"


@pytest.mark.parametrize(
    ("drop", "status"),
    [(0.2, "fail"), (0.26, "pass"), (0.25, "pass"), (0.25 - 1e-10, "pass")],
)
def test_a_drop_that_is_larger_than_allowed_fails(drop: float, status: str) -> None:
    """5 of 20 queries are lost: 1.00 becomes 0.75, and sums may be rounded."""
    names = [f"q{n}" for n in range(20)]
    gold = {name: ["a"] for name in names}
    old = package.evaluate(
        {name: ["a"] for name in names}, gold=gold, metrics="recall@5"
    )
    lost = {name: ["b" if n < 5 else "a"] for n, name in enumerate(names)}
    new = package.evaluate(lost, gold=gold, metrics="recall@5", force=True)
    gate = Gate("recall@5", drop, "drop")
    (result,) = check_gates([gate], [new], baseline=old, force=True)
    assert result.status == status
    if status == "fail":
        said, p, losers = re.split(r"\(p = (0\.06\d\d)\)", result.sentence)
        assert said == (
            "recall@5 dropped by 0.2500 on 20 queries, more than 0.2: it may be chance "
        )
        assert float(p) == pytest.approx(0.0625, abs=0.002)
        shown = ", ".join(f"q{n} -1.0000" for n in range(5))
        assert losers == f"; 5 queries lost: {shown}"
    noisy = check_gates([gate], [new], baseline=old, allow_noise=True, force=True)
    assert noisy[0].status == ("inconclusive" if status == "fail" else "pass")


@pytest.mark.parametrize("allow_noise", [False, True])
def test_a_drop_beyond_chance_fails_and_an_improvement_never(
    *, allow_noise: bool
) -> None:
    old, new = evaluated(OLD, "old"), evaluated(NEW, "new")
    for drop in (0.0, 0.01):
        gate = Gate("ndcg@10", drop, "drop")
        (worse,) = check_gates([gate], [old], baseline=new, allow_noise=allow_noise)
        assert worse.status == "fail"
        assert "beyond chance (p = 0.0001)" in worse.sentence
        for base in (old, new):
            (found,) = check_gates([gate], [new], baseline=base)
            assert found.status == "pass"


def test_a_level_without_an_interval_fails() -> None:
    one = package.evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics="num_ret")
    (found,) = check_gates([Gate("num_ret", 0.5, "low")], [one])
    assert found.status == "fail"
    assert found.sentence == "num_ret has no lower limit"


def test_a_gate_has_the_p_of_the_comparison() -> None:
    """Also where a query has no score, and signs are drawn for it all the same."""
    gold: Any = {"none": {"none": 0}, **GOLD}
    runs = (run(0.45, 5), OLD)
    old, new = (package.evaluate(one, gold=gold, metrics=["rr"]) for one in runs)
    worse = package.compare(*runs, gold=gold, metrics=["rr"])["rr"]
    assert 0.0002 < worse.p < 0.5
    assert worse.wins + worse.losses > 16
    (found,) = check_gates([Gate("rr", 0.0, "drop")], [new], baseline=old)
    assert f"(p = {worse.p:.4f})" in found.sentence


def test_proof_is_read_from_the_interval_and_not_from_ties() -> None:
    old, new = evaluated(OLD, "old"), evaluated(NEW, "new")

    def status(run: Evaluation, drop: float, **options: Any) -> str:
        gate = Gate("ndcg@10", drop, "drop")
        (found,) = check_gates([gate], [run], baseline=old, **options)
        return found.status

    assert status(new, 0.0, require_noninferior=True) == "pass"
    assert status(old, 0.0001, require_noninferior=True) == "fail"
    assert status(old, 0.0001) == "pass"
    alone = package.evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics=["rr", "num_ret"])
    gates = [Gate("rr", 1.0, "drop"), Gate("num_ret", 5.0, "drop")]
    proof: Any = {"baseline": alone, "require_noninferior": True}
    largest, unbounded = check_gates(gates, [alone], **proof)
    assert largest.status == "pass"
    assert unbounded.sentence.endswith("not ruled out (95% interval -inf to +inf)")
    # Who demands proof does not also put up with noise.
    gate = Gate("ndcg@10", 0.0, "drop")
    less = evaluated({**OLD, "q0": ["x"]}, "less")
    both: Any = {"require_noninferior": True, "allow_noise": True}
    (found,) = check_gates([gate], [less], baseline=old, **both)
    assert found.status == "fail"


def test_every_tag_is_held_to_the_drop() -> None:
    """Ten queries of one tag are lost, and thirty of the other won."""
    tags = {f"q{n}": "lost" if n < 10 else "won" for n in range(40)}
    queries = {query: Query(query, tags=(tag,)) for query, tag in tags.items()}
    gold = {query: ["a"] for query in tags}
    runs = [
        {q: ["a", "b"] if tag == best else ["b", "a"] for q, tag in tags.items()}
        for best in ("lost", "won")
    ]
    old, new = (
        package.evaluate(run, gold=gold, metrics="rr", queries=queries, name=name)
        for run, name in zip(runs, ("old", "new"), strict=True)
    )
    gate = Gate("rr", 0.05, "drop")

    def found(run: Evaluation, base: Evaluation, **options: Any) -> dict[str, str]:
        checked = check_gates([gate], [run], baseline=base, by_tag=True, **options)
        return {result.slice: result.status for result in checked}

    expected = {"": "pass", "lost": "fail", "won": "pass"}
    assert found(new, old) == expected
    assert found(new, old, allow_noise=True) == expected
    assert found(old, new) == {"": "fail", "lost": "pass", "won": "fail"}
    *_, won = check_gates([gate], [old], baseline=new, by_tag=True)
    assert won.sentence.startswith("won: rr dropped by 0.5000 on 30 queries")
    # P is that of the tag's own queries.
    lost = check_gates([gate], [new], baseline=old, by_tag=True)[1]
    assert lost.sentence.startswith("lost: rr dropped by 0.5000 on 10 queries")
    assert "beyond chance (p = 0.0020)" in lost.sentence
    assert "30 queries lost: q10 -0.5000" in won.sentence
    assert found(new, new) == dict.fromkeys(expected, "pass")
    # Queries of a tag that lost are named, and no others.
    none = package.evaluate(
        {q: ["b", "a"] for q in tags}, gold=gold, metrics="rr", queries=queries
    )
    all_of = package.evaluate(gold, gold=gold, metrics="rr", queries=queries)
    checked = check_gates([gate], [none], baseline=all_of, by_tag=True)
    assert [result.sentence.partition("; ")[2][:15] for result in checked] == [
        "40 queries lost",
        "10 queries lost",
        "30 queries lost",
    ]
    # The baseline may know the tags, too.
    bare = package.evaluate(runs[1], gold=gold, metrics="rr")
    assert found(bare, old) == expected
    with pytest.raises(UsageError, match="--queries FILE adds them"):
        found(bare, bare)


@pytest.mark.parametrize(
    ("lost", "tags", "p", "status"),
    [(6, 8, "0.0312", "inconclusive"), (7, 2, "0.0156", "fail")],
)
def test_noise_is_held_to_a_level_for_all_tags_together(
    lost: int, tags: int, p: str, status: str
) -> None:
    """All queries of one tag are lost: 0.0312 is chance among eight tags.

    0.0156 is not among two: the level is 0.05 by three, all queries being one more.
    """
    of = {f"q{n}": f"tag{n // lost}" for n in range(lost * tags)}
    queries = {query: Query(query, tags=(tag,)) for query, tag in of.items()}
    gold = {query: ["a"] for query in of}
    before = {query: ["a", "b"] for query in of}
    after = {q: ["b", "a"] if tag == "tag0" else ["a"] for q, tag in of.items()}
    old, new = (
        package.evaluate(run, gold=gold, metrics="rr", queries=queries)
        for run in (before, after)
    )
    options: dict[str, Any] = {"baseline": old, "by_tag": True}
    gate = Gate("rr", 0.25, "drop")
    strict = check_gates([gate], [new], **options)
    noisy = check_gates([gate], [new], **options, allow_noise=True)
    assert [one.status for one in strict].count("fail") == 1
    assert f"(p = {p})" in strict[1].sentence
    assert [one.status for one in noisy[:3]] == ["pass", status, "pass"]


def test_no_common_score_is_inconclusive() -> None:
    old, new = (
        Evaluation(
            *("r", "g", ["a", "b"]),
            {"rr": MetricScores("rr", np.array(scores), ["a", "b"])},
            np.zeros(2, bool),
            Policies(),
            fingerprints=["x", "y"],
        )
        for scores in ([1.0, np.nan], [np.nan, 1.0])
    )
    (result,) = check_gates([Gate("rr", 0.1, "drop")], [new], baseline=old)
    assert result.status == "inconclusive"
    assert result.sentence == "rr: no query in common has a score"
    others = package.evaluate({"z": ["a"]}, gold={"z": ["a"]}, metrics=["rr"])
    (result,) = check_gates([Gate("rr", 0.1, "drop")], [others], baseline=new)
    assert result.status == "inconclusive"
    assert "have no query in common" in result.sentence


def test_queries_that_are_not_compared_are_told() -> None:
    """A gate that passes because the bad queries left says so."""
    ids = [f"q{n}" for n in range(6)]
    gold = {query: ["a"] for query in ids}
    run = {query: ["a"] for query in ids}
    old = package.evaluate(run, gold=gold, metrics="rr")
    changed = {"q0": ["a"], "q1": ["a", "b"], "z": ["y"], "q2": ["a"]}
    new = package.evaluate({**run, "z": ["a"]}, gold=changed, metrics="rr")
    (result,) = check_gates([Gate("rr", 0.1, "drop")], [new], baseline=old)
    assert result.status == "pass"
    assert result.left_out == (
        "1 query only in the candidate: z; 3 queries only in the baseline: q3, q4, q5; "
        "1 query in both with other gold, and not compared: q1"
    )
    (same,) = check_gates([Gate("rr", 0.1, "drop")], [old], baseline=old)
    assert not same.left_out


def test_what_a_judge_alone_would_fail_is_inconclusive() -> None:
    found = evaluated(NEW)
    verdict = Verdict("claim-1", "It rains.", failure="no reply")
    matches = {"id": replace(found.matches["id"], verdicts={0: (verdict,)})}
    judged = replace(found, matches=matches)
    gates = [Gate("rr", 0.99), Gate("rr", 0.01)]

    def statuses(one: Evaluation) -> list[str]:
        return [result.status for result in check_gates(gates, [one])]

    assert statuses(judged) == ["inconclusive", "pass"]
    spelled = package.evaluate(NEW, gold=GOLD, metrics="rr[id]")
    spelled = replace(spelled, matches=matches)
    (same,) = check_gates([read_gate("RR[id]=0.99")], [spelled])
    assert same.status == "inconclusive"
    assert outcome_of(check_gates(gates, [judged])) == "inconclusive"
    assert statuses(replace(judged, provenance={"agreement": 0.8})) == ["fail", "pass"]
    # A claim without a verdict is a query that failed in part, and counts once.
    assert failed_queries(judged) == [("q0", "in part: no reply")]
    column = replace(judged["rr"], failures={0: "no reply at all"})
    assert failed_queries(replace(judged, columns={"rr": column})) == [
        ("q0", "no reply at all")
    ]


def test_failed_queries_fail_unless_so_many_may() -> None:
    scores = MetricScores("rr", np.array([1.0, np.nan]), failures={1: "no reply"})
    missing = np.zeros(2, bool)
    one = Evaluation("r", "g", ["a", "b"], {"rr": scores}, missing, Policies())
    (result,) = check_failures([one])
    assert (result.run, result.status) == ("r", "fail")
    assert str(result.gate) == "failed queries <= 0"
    assert result.sentence == "1 query failed, 'b' for one: no reply"
    assert check_failures([one], 1) == []
    # So many of all runs together.
    assert len(check_failures([one, replace(one, run="s")], 1)) == 2


def test_a_failure_outranks_what_is_inconclusive() -> None:
    gates = [read_gate("rr=0.01"), read_gate("rr=1")]
    assert outcome_of(check_gates(gates, [evaluated(NEW)])) == "fail"
    assert outcome_of(check_gates(gates[:1], [evaluated(NEW)])) == "pass"


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        ("rr", "mean", "--fail-under takes METRIC=VALUE"),
        ("rr>=0.8", "mean", "--fail-under takes METRIC=VALUE"),
        ("rr=80", "low", "--fail-under-low rr=80: rr lies between 0 and 1; 0.8?"),
        ("rr=-1", "drop", "--max-drop rr=-1: a drop of rr lies between 0 and 1"),
    ],
)
def test_a_gate_that_cannot_be_is_refused(text: str, kind: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_gate(text, kind)
    assert sentence in str(caught.value)


def test_a_gate_may_spell_its_metric_in_any_way() -> None:
    assert read_gate("nDCG@10=0.5").metric == "ndcg@10"
    assert read_gate("recall[fuzzy(0.8)]@5=0.5").metric == "recall[fuzzy(0.8)]@5"


def test_a_drop_needs_a_baseline_that_has_the_metric() -> None:
    gate = read_gate("rr=0.1", "drop")
    with pytest.raises(UsageError, match="needs a baseline"):
        check_gates([gate], [evaluated(NEW)])
    base = package.evaluate(NEW, gold=GOLD, metrics=["ap"])
    with pytest.raises(UsageError, match="the baseline was scored by ap"):
        check_gates([gate], [evaluated(NEW)], baseline=base)


@pytest.mark.slow
def test_noise_that_is_allowed_hardly_ever_fails_and_a_drop_does() -> None:
    """Of 500 commits that change nothing at most 5 % fail, with tags too."""
    dice = np.random.default_rng(3)
    size, noise = 100, 0.15
    names = [f"q{n}" for n in range(size)]
    base = dice.beta(2, 2, size)
    gate = Gate("rr", 0.0, "drop")
    facts = {q: Query(q, tags=(f"tag{n % 5}",)) for n, q in enumerate(names)}

    def scored(values: Any) -> Evaluation:
        return Evaluation(
            *("r", "g", names, {"rr": MetricScores("rr", np.clip(values, 0, 1))}),
            np.zeros(size, bool),
            Policies(),
            fingerprints=names,
            facts=facts,
        )

    def failures(drop: float, times: int, **options: Any) -> int:
        return sum(
            outcome_of(
                check_gates(
                    [gate],
                    [scored(base - drop + dice.normal(0, noise, size))],
                    baseline=scored(base),
                    allow_noise=True,
                    **options,
                )
            )
            == "fail"
            for _ in range(times)
        )

    assert failures(0, 500) <= 25
    assert failures(0, 500, by_tag=True) <= 25
    assert failures(2 * 2.8 * noise / np.sqrt(size), 200) >= 190


def test_a_rise_is_a_change_for_the_worse_where_less_is_better() -> None:
    # Of the top two, the old run has judged fewer.
    old, new = (
        package.evaluate(run, gold=GOLD, metrics=["unjudged@2", "num_ret"], name=name)
        for run, name in ((OLD, "old"), (NEW, "new"))
    )
    assert new.means["unjudged@2"] < old.means["unjudged@2"]
    gate = read_gate("unjudged@2=0.01", "drop")
    (better,) = check_gates([gate], [new], baseline=old)
    (worse,) = check_gates([gate], [old], baseline=new)
    assert (better.status, worse.status) == ("pass", "fail")
    assert worse.sentence.startswith("unjudged@2 rose by 0.2833 on 60 queries, more")
    assert "33 queries lost: q3 +1.0000" in worse.sentence
    assert worse.sentence.endswith(" 28 more")
    proof: Any = {"baseline": old, "require_noninferior": True}
    (shown,) = check_gates([gate], [new], **proof)
    assert shown.status == "pass"
    (same,) = check_gates([gate], [old], **proof)
    assert same.status == "fail"
    assert (
        "; a rise of more than 0.01 on other queries is not ruled out" in same.sentence
    )
    with pytest.raises(UsageError, match="of unjudged@2 less is better"):
        read_gate("unjudged@2=0.5")


def test_queries_of_one_cluster_are_one_unit_of_a_drop() -> None:
    facts = {
        query: Query(query, metadata={"page": number // 10})
        for number, query in enumerate(GOLD)
    }
    old, new = (
        package.evaluate(run, gold=GOLD, metrics=["rr"], name=name, queries=facts)
        for run, name in ((NEW, "old"), (OLD, "new"))
    )
    gate = read_gate("rr=0.0", "drop")
    (alone,) = check_gates([gate], [new], baseline=old)
    (clustered,) = check_gates([gate], [new], baseline=old, cluster="page")
    assert alone.sentence != clustered.sentence
    with pytest.raises(UsageError, match="no query has a field 'chapter'"):
        check_gates([gate], [new], baseline=old, cluster="chapter")
