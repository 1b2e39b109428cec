"""Documents of one group are alternatives: one item, which any of them satisfies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from karat import Dataset, Gold, Run, evaluate, explain, read_gold
from karat.data.memory_runs import RankedRun, ScoredRun
from karat.extend import DataError, FormatError, Source
from karat.matching.ids import Id
from karat.reading.meaning.shapes import interpret
from karat.reading.trec import TrecRun
from karat.reading.write import write
from tests.oracles.cases import ITEM_METRICS, assert_scores, column
from tests.oracles.exact import Case

NAMES = "abcdef"


@st.composite
def grouped(draw: st.DrawFn) -> tuple[list[str], dict[str, float], dict[str, str]]:
    """A ranking without repetitions, graded documents, and groups of some of them."""
    ranking = draw(st.permutations(NAMES + "xyz"))[: draw(st.integers(0, 8))]
    grades = st.sampled_from([-1.0, 0.0, 1.0, 1.0, 2.0, 3.0])
    labels = draw(st.dictionaries(st.sampled_from(NAMES), grades, min_size=1))
    groups = st.dictionaries(st.sampled_from(NAMES), st.sampled_from("aGH"))
    return ranking, labels, draw(groups)


def slow_case(
    ranking: list[str], labels: Mapping[str, float], groups: Mapping[str, str]
) -> Case:
    """Item by item: which documents satisfy it, and at which ranks they stand."""
    members: dict[tuple[str, ...], list[str]] = {}
    for document, grade in labels.items():
        alone = document not in groups or grade <= 0
        key = ("own", document) if alone else ("group", groups[document])
        members.setdefault(key, []).append(document)
    return Case(
        len(ranking),
        tuple(
            (rank, item)
            for rank, document in enumerate(ranking, 1)
            for item, documents in members.items()
            if document in documents
        ),
        {item: max(labels[d] for d in found) for item, found in members.items()},
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(grouped(), grouped())
def test_every_metric_counts_a_group_once(first: Any, second: Any) -> None:
    rows = {"p": first, "q": second}
    gold = Gold(
        {query: labels for query, (_, labels, _) in rows.items()},
        groups={query: groups for query, (_, _, groups) in rows.items()},
    )
    cases = {query: slow_case(*row) for query, row in rows.items()}
    runs: list[Run] = [RankedRun({q: ranking for q, (ranking, _, _) in rows.items()})]
    if all(ranking for ranking, _, _ in rows.values()):
        scored = {q: {d: -n for n, d in enumerate(r)} for q, (r, _, _) in rows.items()}
        lines = [f"{q} Q0 {d} 0 {n} t" for q, r in scored.items() for d, n in r.items()]
        runs += [ScoredRun(scored), TrecRun("\n".join(lines).encode())]
    for run in runs:
        result = evaluate(run, gold=gold, metrics=[*ITEM_METRICS], force=True)
        for metric, oracle in ITEM_METRICS.items():
            assert_scores(column(result, metric).scores, cases, oracle)


SAMPLE: dict[str, Any] = {
    "id": "q",
    "retrieved": ["x", "b", "c"],
    "relevant": [
        {"id": "a", "group": "either"},
        {"id": "b", "group": "either"},
        {"id": "c", "grade": 2},
        "d",
    ],
}


def test_a_sample_says_which_documents_are_alternatives() -> None:
    # Three things to find, of which b and c satisfy two.
    result = evaluate([SAMPLE], metrics=["recall", "precision@3", "rr"])
    found = pytest.approx({"recall": 2 / 3, "precision@3": 2 / 3, "rr": 1 / 2})
    assert result.means == found
    (trace,) = result.traces
    assert trace.first_ranks == {"either": 2, "c": 3, "d": None}
    alike = evaluate([{**SAMPLE, "relevant": ["a", "b", "c", "d"]}], metrics=["recall"])
    assert alike.means == {"recall": 0.5}


@pytest.mark.parametrize("duplicates", ["first", "collapse", "keep"])
def test_a_second_alternative_earns_nothing_more(duplicates: str) -> None:
    gold = Gold({"q": {"a": 1.0, "b": 1.0}}, groups={"q": {"a": "g", "b": "g"}})
    options: dict[str, Any] = {"gold": gold, "duplicates": duplicates}
    both = evaluate({"q": ["a", "b", "a"]}, metrics=["ap", "ndcg", "recall"], **options)
    assert both.means == {"ap": 1.0, "ndcg": 1.0, "recall": 1.0}


def test_what_is_judged_not_to_help_is_no_alternative() -> None:
    gold = Gold({"q": {"a": 1.0, "b": 0.0}}, groups={"q": {"a": "g", "b": "g"}})
    assert evaluate({"q": ["b"]}, gold=gold, metrics=["hit"]).means == {"hit": 0.0}


def test_groups_show_in_an_explanation_and_in_the_fingerprint() -> None:
    ranking, worked, *_ = explain([SAMPLE], "q", metrics=["recall"]).tables
    assert ranking.rows[-1][0] == "d"
    assert worked.rows[0][2] == "2 found / 3 relevant"
    labels = {"q": {"a": 1.0, "b": 1.0}}
    one, other = Gold(labels), Gold(labels, groups={"q": {"a": "g", "b": "g"}})
    assert one.fingerprint("q") != other.fingerprint("q")


@pytest.mark.parametrize("format", ["json", "jsonl", "yaml", "csv", "parquet"])
def test_groups_come_back_from_a_file(format: str, tmp_path: Path) -> None:
    gold = interpret([SAMPLE], Source("samples", "samples", {}), "objects").gold
    assert gold is not None
    assert gold.groups == {"q": {"a": "either", "b": "either"}}
    path = tmp_path / f"gold.{format}"
    write(Dataset(gold=gold), path, format, "gold")
    back = read_gold(path)
    assert (back.documents, back.groups) == (gold.documents, gold.groups)


def test_a_format_without_room_for_groups_refuses_them(tmp_path: Path) -> None:
    gold = Gold({"q": {"a": 1.0, "b": 1.0}}, groups={"q": {"a": "g", "b": "g"}})
    with pytest.raises(FormatError, match="ids only; the gold has groups of alter"):
        write(Dataset(gold=gold), tmp_path / "gold.qrels", "trec_qrels", "gold")


def test_alternatives_are_sessions_only_if_the_gold_lists_sessions() -> None:
    gold = Gold({"q": {"s1_1": 1.0, "s2_1": 1.0}}, groups={"q": {"s1_1": "g"}})
    with pytest.raises(DataError, match="cannot be rolled up to sessions; list sess"):
        evaluate({"q": ["s1_1"]}, gold=gold, match=Id(level="session"))
    sessions = Gold({"q": {"s1": 1.0, "s2": 1.0}}, groups={"q": {"s1": "g", "s2": "g"}})
    found = evaluate(
        {"q": ["s3_1", "s2_4"]},
        gold=sessions,
        metrics=["recall", "rr"],
        match=Id(level="session", gold="session"),
    )
    assert found.means == {"recall": 1.0, "rr": 0.5}
